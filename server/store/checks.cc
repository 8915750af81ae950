#include "server/store/checks.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"

namespace param {
namespace {

// One of two rows with the same (rank, metric, labels), or null. Sorts pointers: a result of a
// large job has thousands of rows and a set of them would cost as much as storing them.
template <typename T>
const T* FindTwice(const std::vector<T>& rows) {
  const auto key = [](const T* row) { return std::tie(row->rank, row->metric, row->labels); };
  std::vector<const T*> sorted;
  sorted.reserve(rows.size());
  for (const T& row : rows) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(),
            [&key](const T* a, const T* b) { return key(a) < key(b); });
  const auto twice = std::adjacent_find(
      sorted.begin(), sorted.end(), [&key](const T* a, const T* b) { return key(a) == key(b); });
  return twice == sorted.end() ? nullptr : *twice;
}

}  // namespace

absl::Status CheckSequence(std::uint64_t seq) {
  if (seq <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("sequence number ", seq, " is above 2^63-1"));
}

absl::Status CheckResult(const PutCaseResult& write) {
  const int index = write.result.index;
  if (const Measurement* m = FindTwice(write.result.measurements)) {
    return absl::InvalidArgumentError(absl::StrCat("case ", index, ": rank ", m->rank, ": metric ",
                                                   m->metric, " is given twice"));
  }
  for (const SampleBlob& s : write.samples) {
    if (s.case_index == index) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("case ", index, ": samples of case ", s.case_index));
  }
  if (const SampleBlob* s = FindTwice(write.samples)) {
    return absl::InvalidArgumentError(absl::StrCat("case ", index, ": rank ", s->rank,
                                                   ": samples of ", s->metric, " are given twice"));
  }
  std::set<int> ranks;
  for (const RankStatus& rank : write.result.ranks) {
    if (ranks.insert(rank.rank).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("case ", index, ": rank ", rank.rank, " is given twice"));
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
