#pragma once
// Two jobs against each other, case by case. Pure.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/output/table.h"
#include "param/v1/job.pb.h"
#include "proto/convert/json.h"

namespace param {

// What can be said about B's median time against A's.
enum class Verdict {
  kSame,     // the 95 % intervals of the medians touch: the difference may be noise
  kFaster,   // B's interval lies below A's
  kSlower,   // B's interval lies above A's
  kNoNoise,  // one side is a single number (an imported mean): there is no interval
  kNoTime,   // one side has no time: it did not pass
};
std::string VerdictText(Verdict verdict);  // "same", "faster", ...

struct ComparedCase {
  std::string case_id;
  const v1::CaseResult* a = nullptr;  // borrowed
  const v1::CaseResult* b = nullptr;
  const v1::Summary* time_a = nullptr;  // null: no time
  const v1::Summary* time_b = nullptr;
  double ratio = 0;  // B's median over A's; NaN without times
  Verdict verdict = Verdict::kNoTime;
};

struct Comparison {
  std::vector<ComparedCase> both;  // in A's order
  std::vector<const v1::CaseResult*> only_a, only_b;
};

// Cases are matched by their identity, which knows no nodes and no backend. INVALID_ARGUMENT when
// the jobs are of different benchmarks or of different versions of one. Borrows from both.
absl::StatusOr<Comparison> CompareJobs(const v1::GetJobResponse& a, const v1::GetJobResponse& b);

// How many cases of B are slower than A by more than `percent` and beyond noise. Where there is no
// interval the percentage alone decides. Cases that passed in A and have no time in B count too.
int CountSlower(const Comparison& comparison, double percent);

Table ComparisonTable(const v1::GetJobResponse& a, const Comparison& comparison);

// {"a": {...}, "b": {...}, "cases": [...], "only_a": [...], "only_b": [...]}.
Json ComparisonJson(const v1::GetJobResponse& a, const v1::GetJobResponse& b,
                    const Comparison& comparison);
// One object of "cases".
Json ComparedCaseJson(const ComparedCase& one);

// "j-4k7q2mzd6b (2 ranks on n1, n2, backend fake)".
std::string SideText(const v1::Job& job);

}  // namespace param
