#pragma once
// From what the ranks of a case reported to its result: pooling, derived metrics, verdict. Pure.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/core/job.h"

namespace param {

// What one rank reported about one case.
struct RankReport {
  struct Series {
    std::string unit;
    std::vector<double> values;
  };
  std::map<std::pair<std::string, line::Labels>, Series> series;  // by (metric, labels)
  Scalars scalars;
  std::map<std::string, std::string> info;
  bool ended = false;
  line::CaseStatus status = line::CaseStatus::kFailed;
  std::string reason;
};

// The worst of two: PASSED < SKIPPED < WRONG < FAILED.
line::CaseStatus Worse(line::CaseStatus a, line::CaseStatus b);

// Fills `record` (planned and index are set) from the reports, by rank; `nodes` names each rank's
// node. Independent ranks are pooled: n = iterations x ranks, rates per rank; of ranks
// that work together sample i is the slowest rank's (BenchmarkSpec::pooling). A rank that has not
// ended counts as FAILED with `missing_reason`. Derived metrics come from `bench`; where `derive`
// gives NaN the case does not have the metric. slowest_rank is the rank with the worst median.
void Conclude(const BenchmarkSpec& bench, const std::vector<RankReport>& reports,
              const std::vector<std::string>& nodes, const std::string& missing_reason,
              CaseRecord& record);

}  // namespace param
