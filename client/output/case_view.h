#pragma once
// Reading a case's result: which parameters tell cases apart, medians, which node is slow.
// Pure functions over wire messages; shared by the tables and the report.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "param/v1/job.pb.h"
#include "param/v1/result.pb.h"
#include "proto/catalog/spec.h"

namespace param {

// Null when the coordinator knows a benchmark that this program does not.
const BenchmarkSpec* SpecOf(absl::string_view benchmark);

// The summary of `metric` over all ranks (rank -1) or of one rank, without labels; else null.
const v1::Summary* FindSummary(const v1::CaseResult& result, absl::string_view metric, int rank);

// The names of parameters worth a column: those that differ among the cases or from their default,
// the first three of the benchmark and its first choice.
std::vector<std::string> ShownParams(const BenchmarkSpec* bench,
                                     const std::vector<const v1::CaseResult*>& cases);

// A parameter as a person reads it: "1024", "bf16", "64 KiB", "0.5 s"; "-" when it is missing.
std::string ParamText(const BenchmarkSpec* bench, const v1::CaseResult& result,
                      absl::string_view name);

// The benchmark's rates ("FLOP/s", "B/s"), where more is better, and the first of them; else null.
std::vector<const MetricSpec*> RateMetrics(const BenchmarkSpec* bench);
const MetricSpec* RateMetric(const BenchmarkSpec* bench);

// How a node's time compares with the other nodes of the job: the node's slowest rank in each case
// over the median of the nodes, and of these ratios the median over the cases.
struct NodeTime {
  std::string node;
  int ranks = 0;
  double time_p50 = 0;  // s; of the only case, NaN when there are several
  double ratio = 0;     // 1: like the median node
  bool slowest = false;
};
// In the order of the job's nodes; empty when fewer than two nodes have times.
std::vector<NodeTime> CompareNodes(const v1::Job& job,
                                   const std::vector<const v1::CaseResult*>& cases);

// Which rank was the slowest of a case, and by how much beyond the median rank.
struct SlowRank {
  std::string node;
  int rank = 0;
  double ratio = 1;
};
std::optional<SlowRank> SlowestOf(const v1::CaseResult& result);

// The middle value; the mean of the two in the middle for an even count; NaN for none.
double MedianOf(std::vector<double> values);

}  // namespace param
