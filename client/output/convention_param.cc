// PARAM's comms.py: one COMMS-RES row per size (train/comms/pt/comms.py, reportBenchTimeColl).

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/convention_tools.h"
#include "proto/base/statistics.h"

namespace param {
namespace {

// The bytes that PARAM counts: those of one message for multicast, nothing for barrier.
double MessageBytes(const CollectiveView& view) {
  if (view.op == CollectiveOp::kBarrier) return 0;
  return view.op == CollectiveOp::kMulticast ? view.bytes_per_rank : view.bytes_total;
}

// Divided by the ranks where each has one share, but not for gather and scatter.
std::int64_t ElementsPerRank(const CollectiveView& view, int ranks) {
  const std::int64_t elements = view.size / view.element_bytes;
  switch (view.op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAllToAll:
    case CollectiveOp::kAllToAllV:
      return elements / std::max(1, ranks);
    default:
      return elements;
  }
}

std::string Header(const std::string& label) {
  return absl::StrFormat("\n\tCOMMS-RES-%s%18s%18s%18s%12s%12s%12s%12s%15s%12s%20s\n", label,
                         "total-size (B)", "nElementsPerRank", "Time(us):p50", "p75", "p95", "Min",
                         "Max", "AlgBW(GB/s)", "BusBW(GB/s)", "TotalTime(us):p50");
}

std::string Row(const std::string& label, const CollectiveView& view, std::vector<double> times,
                int ranks) {
  std::sort(times.begin(), times.end());
  const double p50 = Percentile(times, 0.5);
  const double bytes = MessageBytes(view);
  const double algbw = bytes / p50 / 1e9;
  // Where PARAM knows no factor it prints the algorithm's bandwidth again.
  const double factor = BusFactor(view.op, ranks);
  const double busbw = std::isnan(factor) ? algbw : algbw * factor;
  return absl::StrFormat("\tCOMMS-RES-%s%18d%18d%18.1f%12.1f%12.1f%12.1f%12.1f%15.3f%12.3f%20.1f\n",
                         label, static_cast<std::int64_t>(bytes), ElementsPerRank(view, ranks),
                         p50 * 1e6, Percentile(times, 0.75) * 1e6, Percentile(times, 0.95) * 1e6,
                         times.front() * 1e6, times.back() * 1e6, algbw, busbw,
                         0.0);  // always 0 in comms.py as well
}

void Render(const ToolConvention& tool, const v1::GetJobResponse& response,
            const std::vector<CollectiveView>& views, bool /*full*/, ConventionText* out) {
  const auto label = [&tool](const CollectiveView& view) {
    return absl::StrCat(tool.ops.at(view.op), "-", tool.dtypes.at(view.dtype));
  };
  for (const std::vector<CollectiveView>& group : GroupBy(views, label)) {
    absl::StrAppend(&out->text, Header(label(group.front())));
    for (const CollectiveView& view : group) {
      std::vector<double> times = RankMeanTimes(*view.result);
      if (times.empty()) {
        out->notes.push_back(LeftOut(view));
      } else {
        absl::StrAppend(&out->text,
                        Row(label(view), view, std::move(times), response.job().ranks()));
      }
    }
  }
}

}  // namespace

const ToolConvention& ParamConvention() {
  static const auto* const tool =
      new ToolConvention{"param",
                         {{CollectiveOp::kAllReduce, "all_reduce"},
                          {CollectiveOp::kAllGather, "all_gather"},
                          {CollectiveOp::kReduceScatter, "reduce_scatter"},
                          {CollectiveOp::kAllToAll, "all_to_all"},
                          {CollectiveOp::kAllToAllV, "all_to_allv"},
                          {CollectiveOp::kBroadcast, "broadcast"},
                          {CollectiveOp::kReduce, "reduce"},
                          {CollectiveOp::kGather, "gather"},
                          {CollectiveOp::kScatter, "scatter"},
                          {CollectiveOp::kIncast, "incast"},
                          {CollectiveOp::kMulticast, "multicast"},
                          {CollectiveOp::kBarrier, "barrier"}},
                         {{"f32", "float32"},
                          {"f16", "float16"},
                          {"bf16", "bfloat16"},
                          {"f64", "float64"},
                          {"i32", "int32"},
                          {"i64", "long"},
                          {"i8", "int8"},
                          {"u8", "uint8"}},
                         {"sum"},
                         {"op", "dtype", "size"},
                         Render};
  return *tool;
}

}  // namespace param
