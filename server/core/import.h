#pragma once
// Results that another tool measured: from what a client sent to the records of a job that has
// ended. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/job.h"
#include "server/core/store.h"

namespace param {

struct ImportedCase {
  GivenParams params;  // one value each
  line::CaseStatus status = line::CaseStatus::kPassed;
  std::string reason;
  std::map<std::string, std::string> info;
  std::vector<Measurement> measurements;  // over all ranks
};

struct ImportRequest {
  std::string benchmark, name;
  std::string format;  // "nccl-tests"
  std::string backend;
  int ranks = 0;
  std::vector<std::string> nodes;  // may be empty: the tool does not say
  std::map<std::string, std::string> environment;
  std::vector<ImportedCase> cases;
};

// The job, ended at `now_ns` as one attempt, and the writes that store it at once. Everything is
// untrusted: parameters are checked like those of a submit, metrics against the catalogue.
// INVALID_ARGUMENT names the case and the value.
struct ImportPlan {
  Job job;
  std::vector<Write> writes;
};
absl::StatusOr<ImportPlan> PlanImport(const ImportRequest& request, const std::string& owner,
                                      const std::string& request_id, const std::string& job_id,
                                      std::int64_t now_ns);

}  // namespace param
