#pragma once
// The store's twin in memory: the same answers as SqliteStore, nothing survives the process.
// For tests of what uses a store, and for throw-away fleets.

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/base/sync.h"
#include "server/core/store.h"

namespace param {

// Thread safe. `done` is called before Submit returns, on the caller's thread, without a lock held:
// it may call back into the store.
class MemoryStore final : public Store {
 public:
  MemoryStore() = default;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // The next `batches` batches fail with `status`, as on a full disk.
  void FailNext(absl::Status status, int batches = 1);

  void Submit(std::vector<Write> batch, Done done) override;
  absl::StatusOr<Job> GetJob(const std::string& job_id) override;
  absl::StatusOr<Job> FindByRequest(const std::string& request_id) override;
  absl::StatusOr<std::vector<Job>> ListJobs(const JobFilter& filter) override;
  absl::StatusOr<std::vector<CaseRecord>> GetCases(const std::string& job_id) override;
  absl::StatusOr<std::vector<Attempt>> GetAttempts(const std::string& job_id) override;
  absl::StatusOr<std::vector<RankEvent>> GetRankEvents(const AttemptKey& key) override;
  absl::StatusOr<std::vector<RankEnvironment>> GetEnvironment(const AttemptKey& key) override;
  absl::StatusOr<std::vector<LogRow>> GetLogs(const std::string& job_id, int rank,
                                              int limit) override;
  absl::StatusOr<std::vector<ResultRow>> ListResults(const ResultFilter& filter) override;
  absl::Status ReadSamples(const std::string& job_id, SamplePosition from,
                           const std::function<absl::Status(const SampleBlob&)>& each) override;
  absl::StatusOr<std::vector<NodeRecord>> ListNodes() override;

 private:
  struct StoredCase {
    CaseRecord record;
    int attempt = 0;  // whose result it is
    std::vector<SampleBlob> samples;
  };
  struct StoredJob {
    Job job;
    std::map<int, StoredCase> cases;
    std::map<int, Attempt> attempts;
    std::map<std::tuple<int, int, std::uint64_t>, RankEvent> events;  // by attempt, rank, seq
    std::map<std::pair<int, int>, RankEnvironment> environment;       // by attempt, rank
    std::map<std::tuple<int, int, std::uint64_t>, LogRow> logs;       // by attempt, rank, seq
  };
  struct State {
    std::map<std::string, StoredJob> jobs;
    std::map<std::string, NodeRecord> nodes;
  };
  // A batch in progress: copies of what it touches, put back when all of it went well.
  struct Staged;

  absl::Status ApplyBatch(const std::vector<Write>& batch) PARAM_REQUIRES(mu_);
  static CaseRecord Visible(const StoredJob& stored, const StoredCase& stored_case);

  Mutex mu_;
  State state_ PARAM_GUARDED_BY(mu_);
  absl::Status next_failure_ PARAM_GUARDED_BY(mu_);
  int failures_left_ PARAM_GUARDED_BY(mu_) = 0;
};

}  // namespace param
