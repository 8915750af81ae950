// nccl-tests 2.19: out of place and in place in one row (src/util.cu, writeResultHeader,
// writeBenchmarkLinePreamble, writeBenchmarkLineBody, getFloatStr, writeResultFooter).

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/convention_tools.h"
#include "proto/base/version.h"

namespace param {
namespace {

// One placement of a row.
struct Half {
  const CollectiveView* view = nullptr;
};

struct Totals {
  double busbw = 0;  // GB/s, summed
  int halves = 0;
  std::int64_t wrong = 0;
};

// Two decimals, fewer where the width leaves no room for them.
std::string FloatText(double value, int width) {
  int digits = 0;
  for (double limit = 1; value >= limit && digits < 20; limit *= 10) ++digits;
  if (digits < width - 2) return absl::StrFormat("%*.2f", width, value);
  if (digits < width - 1) return absl::StrFormat("%*.1f", width, value);
  if (digits < width + 1) return absl::StrFormat("%*.0f", width, value);
  return absl::StrFormat("%*.*e", width, width >= 7 ? 1 : 0, value);
}

std::string HeaderLine(absl::string_view size, absl::string_view count, absl::string_view type,
                       absl::string_view redop, absl::string_view root, absl::string_view time,
                       absl::string_view algbw, absl::string_view busbw, absl::string_view wrong) {
  const std::string half = absl::StrFormat("  %7s  %6s  %6s  %6s", time, algbw, busbw, wrong);
  return absl::StrFormat("# %10s  %12s  %8s  %6s  %6s%s%s \n", size, count, type, redop, root, half,
                         half);
}

std::string Header(const ToolConvention& tool, const v1::GetJobResponse& response,
                   CollectiveOp op) {
  std::string text =
      absl::StrCat("# columns of nccl-tests 2.19, written by param ", Version(), " from job ",
                   response.job().job_id(), "\n# Collective test starting: ", tool.ops.at(op),
                   "\n#\n# Using devices\n");
  // Nodes that are listed by rank; ranks of a node follow each other.
  const int nodes = response.job().nodes_size();
  for (int rank = 0; nodes > 0 && rank < response.job().ranks(); ++rank) {
    const int node = std::min(nodes - 1, rank * nodes / response.job().ranks());
    absl::StrAppend(
        &text, absl::StrFormat("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%s] %s\n", rank,
                               0, 0, response.job().nodes(node), 0, "-", response.job().backend()));
  }
  absl::StrAppend(
      &text, "#\n",
      absl::StrFormat("# %10s  %12s  %8s  %6s  %6s           out-of-place            "
                      "           in-place          \n",
                      "", "", "", "", ""),
      HeaderLine("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"),
      HeaderLine("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", ""));
  return text;
}

// "...; 3 of 16 elements are wrong" -> 3; 0 when the text says nothing of the kind.
std::int64_t CountIn(const std::string& reason) {
  static constexpr char kEnd[] = " elements are wrong";
  const std::size_t end = reason.rfind(kEnd);
  if (end == std::string::npos) return 0;
  const std::size_t begin = reason.rfind("; ", end);
  const std::string counts = reason.substr(begin == std::string::npos ? 0 : begin + 2);
  std::int64_t wrong = 0;
  return absl::SimpleAtoi(counts.substr(0, counts.find(' ')), &wrong) ? wrong : 0;
}

// How many elements were wrong over all ranks; a WRONG case without a count has one at least.
std::int64_t WrongElements(const v1::CaseResult& result) {
  if (result.status() != v1::WRONG) return 0;
  std::int64_t wrong = 0;
  for (const v1::RankStatus& rank : result.ranks()) wrong += CountIn(rank.reason());
  return std::max<std::int64_t>(1, wrong);
}

bool Checked(const v1::CaseResult& result) {
  const auto it = result.params().find("check");
  return it != result.params().end() && it->second.boolean();
}

std::string HalfText(const Half& half, int ranks, Totals* totals) {
  std::string nothing = absl::StrFormat("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
  if (half.view == nullptr) return nothing;
  const v1::CaseResult& result = *half.view->result;
  const std::int64_t wrong = WrongElements(result);
  totals->wrong += wrong;
  const std::string wrong_text =
      Checked(result) || wrong > 0 ? absl::StrFormat("  %6d", wrong) : std::string("     N/A");
  const std::vector<double> times = RankMeanTimes(result);
  if (times.empty()) {
    return absl::StrFormat("  %7s  %6s  %6s%s", "N/A", "N/A", "N/A", wrong_text);
  }
  const double time =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  const double algbw = half.view->bytes_total / time / 1e9;
  const double busbw = algbw * BusFactor(half.view->op, ranks);
  totals->busbw += busbw;
  ++totals->halves;
  return absl::StrCat("  ", FloatText(time * 1e6, 7), "  ", FloatText(algbw, 6), "  ",
                      FloatText(busbw, 6), wrong_text);
}

// What one rank contributes, in elements: a share where S is shared out.
std::int64_t Count(const CollectiveView& view) {
  const bool shared = view.op == CollectiveOp::kAllGather || view.op == CollectiveOp::kGather ||
                      view.op == CollectiveOp::kReduceScatter ||
                      view.op == CollectiveOp::kScatter || view.op == CollectiveOp::kAllToAll;
  const double bytes = shared ? view.bytes_per_rank : view.bytes_total;
  return static_cast<std::int64_t>(bytes) / view.element_bytes;
}

std::string Row(const ToolConvention& tool, const std::vector<CollectiveView>& placements,
                int ranks, Totals* totals, ConventionText* out) {
  Half out_of_place, in_place;
  const CollectiveView* any = nullptr;
  for (const CollectiveView& view : placements) {
    if (std::isnan(view.bytes_total) && view.result->status() != v1::WRONG) {
      out->notes.push_back(LeftOut(view));
      continue;
    }
    (view.in_place ? in_place : out_of_place).view = &view;
    if (any == nullptr || std::isnan(any->bytes_total)) any = &view;
  }
  if (any == nullptr) return "";
  const bool measured = !std::isnan(any->bytes_total);
  const std::int64_t size = measured ? static_cast<std::int64_t>(any->bytes_total) : any->size;
  return absl::StrCat(
      absl::StrFormat("%12d  %12d  %8s  %6s  %6d", size,
                      measured ? Count(*any) : any->size / any->element_bytes,
                      tool.dtypes.at(any->dtype), Reduces(any->op) ? any->redop : "none",
                      HasRoot(any->op) ? any->root : -1),
      HalfText(out_of_place, ranks, totals), HalfText(in_place, ranks, totals), "\n");
}

void Render(const ToolConvention& tool, const v1::GetJobResponse& response,
            const std::vector<CollectiveView>& views, bool /*full*/, ConventionText* out) {
  const auto op = [](const CollectiveView& view) { return std::string(CollectiveOpName(view.op)); };
  const auto row = [](const CollectiveView& view) {
    return absl::StrCat(view.size, " ", view.dtype, " ", view.redop, " ", view.root);
  };
  const auto table = [](const CollectiveView& view) {
    return absl::StrCat(view.dtype, " ", view.redop, " ", view.root);
  };
  for (const std::vector<CollectiveView>& program : GroupBy(views, op)) {
    absl::StrAppend(&out->text, Header(tool, response, program.front().op));
    Totals totals;
    for (const std::vector<CollectiveView>& sweep : GroupBy(program, table)) {
      for (const std::vector<CollectiveView>& placements : GroupBy(sweep, row)) {
        absl::StrAppend(&out->text, Row(tool, placements, response.job().ranks(), &totals, out));
      }
    }
    const double average = totals.halves == 0 ? 0 : totals.busbw / totals.halves;
    absl::StrAppend(
        &out->text,
        absl::StrFormat("# %-20s : %d %s\n", "Out of bounds values", totals.wrong,
                        totals.wrong == 0 ? "OK" : "FAILED"),
        absl::StrFormat("# %-20s : %g \n#\n", "Avg bus bandwidth", average),
        absl::StrFormat("# Collective test concluded: %s\n\n", tool.ops.at(program.front().op)));
  }
}

}  // namespace

const ToolConvention& NcclTestsConvention() {
  static const auto* const tool =
      new ToolConvention{"nccl-tests",
                         {{CollectiveOp::kAllReduce, "all_reduce_perf"},
                          {CollectiveOp::kAllGather, "all_gather_perf"},
                          {CollectiveOp::kReduceScatter, "reduce_scatter_perf"},
                          {CollectiveOp::kAllToAll, "alltoall_perf"},
                          {CollectiveOp::kAllToAllV, "alltoallv_perf"},
                          {CollectiveOp::kBroadcast, "broadcast_perf"},
                          {CollectiveOp::kReduce, "reduce_perf"},
                          {CollectiveOp::kGather, "gather_perf"},
                          {CollectiveOp::kScatter, "scatter_perf"}},
                         {{"i8", "int8"},
                          {"u8", "uint8"},
                          {"i32", "int32"},
                          {"i64", "int64"},
                          {"f16", "half"},
                          {"bf16", "bfloat16"},
                          {"f32", "float"},
                          {"f64", "double"},
                          {"f8e4m3", "f8e4m3"},
                          {"f8e5m2", "f8e5m2"}},
                         {"sum", "prod", "min", "max", "avg"},
                         {"op", "dtype", "size", "redop", "root", "in_place"},
                         Render};
  return *tool;
}

}  // namespace param
