#pragma once
// What every store refuses, whatever it keeps its rows in. All errors are INVALID_ARGUMENT.

#include <cstdint>

#include "absl/status/status.h"
#include "server/core/store.h"

namespace param {

// Sequence numbers are stored as signed 64-bit integers.
absl::Status CheckSequence(std::uint64_t seq);

// The same (rank, metric, labels) must not come twice, nor samples of another case.
absl::Status CheckResult(const PutCaseResult& write);

// The same case must not be planned twice.
absl::Status CheckPlan(const PutCases& write);

// Errors that name what is not there or there already.
absl::Status NoJob(const std::string& job_id);
absl::Status NoAttempt(const AttemptKey& key);
absl::Status NoCase(const std::string& job_id, int index);
absl::Status NoRequest(const std::string& request_id);
absl::Status RequestTaken(const std::string& request_id, const std::string& by_job_id);
absl::Status PlannedAlready(const std::string& job_id);

}  // namespace param
