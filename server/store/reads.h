#pragma once
// Reads of the store on one connection, inside the caller's transaction, so that the parts of an
// answer fit together. Their meaning is in server/core/store.h.

#include <string>
#include <vector>

#include "server/core/store.h"
#include "server/store/database.h"

namespace param {

absl::StatusOr<Job> ReadJob(Connection& db, const std::string& job_id);
absl::StatusOr<Job> ReadJobOfRequest(Connection& db, const std::string& request_id);
absl::StatusOr<std::vector<Job>> ReadJobs(Connection& db, const JobFilter& filter);
absl::StatusOr<std::vector<CaseRecord>> ReadCases(Connection& db, const std::string& job_id);
absl::StatusOr<std::vector<Attempt>> ReadAttempts(Connection& db, const std::string& job_id);
absl::StatusOr<std::vector<RankEvent>> ReadRankEvents(Connection& db, const AttemptKey& key);
absl::StatusOr<std::vector<RankEnvironment>> ReadEnvironment(Connection& db, const AttemptKey& key);
absl::StatusOr<std::vector<LogRow>> ReadLogs(Connection& db, const std::string& job_id, int rank,
                                             int limit);
absl::StatusOr<std::vector<ResultRow>> ReadResults(Connection& db, const ResultFilter& filter);
absl::Status ReadSamplesFrom(Connection& db, const std::string& job_id, SamplePosition from,
                             const std::function<absl::Status(const SampleBlob&)>& each);
absl::StatusOr<std::vector<NodeRecord>> ReadNodes(Connection& db);

}  // namespace param
