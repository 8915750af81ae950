#include "server/store/checks.h"

#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace param {

absl::Status CheckSequence(std::uint64_t seq) {
  if (seq <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("sequence number ", seq, " is above 2^63-1"));
}

absl::Status CheckResult(const PutCaseResult& write) {
  using Key = std::tuple<int, absl::string_view, const line::Labels&>;
  std::set<Key> seen;
  for (const Measurement& m : write.result.measurements) {
    if (!seen.emplace(m.rank, m.metric, m.labels).second) {
      return absl::InvalidArgumentError(absl::StrCat("case ", write.result.index, ": rank ", m.rank,
                                                     ": metric ", m.metric, " is given twice"));
    }
  }
  seen.clear();
  for (const SampleBlob& s : write.samples) {
    if (s.case_index != write.result.index) {
      return absl::InvalidArgumentError(
          absl::StrCat("case ", write.result.index, ": samples of case ", s.case_index));
    }
    if (!seen.emplace(s.rank, s.metric, s.labels).second) {
      return absl::InvalidArgumentError(absl::StrCat("case ", write.result.index, ": rank ", s.rank,
                                                     ": samples of ", s.metric,
                                                     " are given twice"));
    }
  }
  std::set<int> ranks;
  for (const RankStatus& rank : write.result.ranks) {
    if (!ranks.insert(rank.rank).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("case ", write.result.index, ": rank ", rank.rank, " is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const PutCases& write) {
  std::set<int> seen;
  for (const CaseRecord& record : write.cases) {
    if (!seen.insert(record.index).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("job ", write.job_id, ": case ", record.index, " is planned twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status NoJob(const std::string& job_id) {
  return absl::NotFoundError(absl::StrCat("no job ", job_id));
}

absl::Status NoAttempt(const AttemptKey& key) {
  return absl::NotFoundError(absl::StrCat("job ", key.job_id, " has no attempt ", key.attempt));
}

absl::Status NoCase(const std::string& job_id, int index) {
  return absl::NotFoundError(absl::StrCat("job ", job_id, " has no case ", index));
}

absl::Status NoRequest(const std::string& request_id) {
  return absl::NotFoundError(absl::StrCat("no job of request ", request_id));
}

absl::Status RequestTaken(const std::string& request_id, const std::string& by_job_id) {
  return absl::AlreadyExistsError(
      absl::StrCat("request ", request_id, " is that of job ", by_job_id));
}

absl::Status PlannedAlready(const std::string& job_id) {
  return absl::AlreadyExistsError(absl::StrCat("job ", job_id, " has its cases already"));
}

}  // namespace param
