// The OSU micro-benchmarks 7.4, blocking collectives (c/util/osu_util_mpi.c: print_preamble,
// print_stats; the size takes 10 columns, a time 18, the iterations 12).

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/convention_tools.h"
#include "proto/base/version.h"

namespace param {
namespace {

std::string Header(const ToolConvention& tool, const v1::GetJobResponse& response,
                   const CollectiveView& first, bool full) {
  const bool sized = first.op != CollectiveOp::kBarrier;
  std::string text = absl::StrCat("# columns of OSU 7.4, written by param ", Version(),
                                  " from job ", response.job().job_id(), "\n\n# OSU MPI ",
                                  tool.ops.at(first.op), " Latency Test v7.4\n");
  if (sized) {
    absl::StrAppend(&text, "# Datatype: ", tool.dtypes.at(first.dtype), ".\n",
                    absl::StrFormat("%-10s%18s", "# Size", "Avg Latency(us)"));
  } else {
    absl::StrAppend(&text, "# Avg Latency(us)");
  }
  if (full) {
    absl::StrAppend(
        &text, absl::StrFormat("%18s%18s%12s", "Min Latency(us)", "Max Latency(us)", "Iterations"));
  }
  return absl::StrCat(text, "\n");
}

// Bytes per rank, but for reduce_scatter what each rank puts in (osu_reduce_scatter.c).
std::int64_t SizeOf(const CollectiveView& view) {
  const bool whole =
      view.op == CollectiveOp::kReduceScatter || view.op == CollectiveOp::kReduceScatterV;
  return static_cast<std::int64_t>(whole ? view.bytes_total : view.bytes_per_rank);
}

std::string Row(const CollectiveView& view, const std::vector<double>& times, bool full) {
  const double average =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  std::string text = view.op == CollectiveOp::kBarrier
                         ? absl::StrFormat("%17.2f", average * 1e6)
                         : absl::StrFormat("%-10d%18.2f", SizeOf(view), average * 1e6);
  if (full) {
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    absl::StrAppend(&text, absl::StrFormat("%18.2f%18.2f%12d", *least * 1e6, *most * 1e6,
                                           SamplesPerRank(*view.result)));
  }
  return absl::StrCat(text, "\n");
}

void Render(const ToolConvention& tool, const v1::GetJobResponse& response,
            const std::vector<CollectiveView>& views, bool full, ConventionText* out) {
  const auto program = [](const CollectiveView& view) {
    return absl::StrCat(CollectiveOpName(view.op), " ", view.dtype);
  };
  for (const std::vector<CollectiveView>& group : GroupBy(views, program)) {
    absl::StrAppend(&out->text, Header(tool, response, group.front(), full));
    for (const CollectiveView& view : group) {
      const std::vector<double> times = RankMeanTimes(*view.result);
      if (times.empty()) {
        out->notes.push_back(LeftOut(view));
      } else {
        absl::StrAppend(&out->text, Row(view, times, full));
      }
    }
  }
}

}  // namespace

const ToolConvention& OsuConvention() {
  static const auto* const tool =
      new ToolConvention{"osu",
                         {{CollectiveOp::kAllReduce, "Allreduce"},
                          {CollectiveOp::kAllGather, "Allgather"},
                          {CollectiveOp::kAllGatherV, "Allgatherv"},
                          {CollectiveOp::kReduceScatter, "Reduce_scatter"},
                          {CollectiveOp::kReduceScatterV, "Reduce_scatter"},
                          {CollectiveOp::kAllToAll, "All-to-All Personalized Exchange"},
                          {CollectiveOp::kAllToAllV, "All-to-Allv Personalized Exchange"},
                          {CollectiveOp::kBroadcast, "Broadcast"},
                          {CollectiveOp::kReduce, "Reduce"},
                          {CollectiveOp::kGather, "Gather"},
                          {CollectiveOp::kScatter, "Scatter"},
                          {CollectiveOp::kBarrier, "Barrier"}},
                         {{"i8", "MPI_CHAR"},
                          {"u8", "MPI_UNSIGNED_CHAR"},
                          {"i32", "MPI_INT"},
                          {"i64", "MPI_INT64_T"},
                          {"f32", "MPI_FLOAT"},
                          {"f64", "MPI_DOUBLE"}},
                         {"sum", "prod", "min", "max"},
                         {"op", "dtype", "size"},
                         Render};
  return *tool;
}

}  // namespace param
