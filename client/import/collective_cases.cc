#include "client/import/collective_cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/statistics.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"

namespace param {
namespace {

v1::Summary OneNumber(double value) {
  v1::Summary s;
  s.set_n(1);
  for (const auto set :
       {&v1::Summary::set_min, &v1::Summary::set_p50, &v1::Summary::set_p75, &v1::Summary::set_p95,
        &v1::Summary::set_p99, &v1::Summary::set_max, &v1::Summary::set_mean,
        &v1::Summary::set_ci95_low, &v1::Summary::set_ci95_high}) {
    (s.*set)(value);
  }
  s.set_slowest_rank(-1);
  return s;
}

v1::Summary SummaryOf(std::vector<double> values) {
  if (values.size() == 1) return OneNumber(values.front());
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  v1::Summary s;
  s.set_n(static_cast<std::int64_t>(values.size()));
  s.set_min(values.front());
  s.set_p50(Percentile(values, 0.5));
  s.set_p75(Percentile(values, 0.75));
  s.set_p95(Percentile(values, 0.95));
  s.set_p99(Percentile(values, 0.99));
  s.set_max(values.back());
  s.set_mean(mean);
  s.set_stdev(std::sqrt(squares / (n - 1)));
  const auto [low, high] = MedianInterval(values);
  s.set_ci95_low(low);
  s.set_ci95_high(high);
  s.set_slowest_rank(-1);
  return s;
}

void AddMetric(v1::ImportedCase* out, const char* metric, const char* unit, v1::Summary summary) {
  v1::Measurement* m = out->add_measurements();
  m->set_rank(-1);
  m->set_metric(metric);
  m->set_unit(unit);
  *m->mutable_summary() = std::move(summary);
}

std::int64_t BytesOf(absl::string_view dtype) {
  if (absl::StartsWith(dtype, "f8") || absl::EndsWith(dtype, "8")) return 1;
  return absl::EndsWith(dtype, "16") ? 2 : absl::EndsWith(dtype, "32") ? 4 : 8;
}

void AddMetrics(const MeasuredCase& measured, const CollectiveLayout& layout, int ranks,
                v1::ImportedCase* out) {
  const std::vector<double> times =
      measured.times_s.empty() ? std::vector<double>{measured.time_s} : measured.times_s;
  AddMetric(out, "time", "s", SummaryOf(times));
  if (measured.op == CollectiveOp::kBarrier) return;
  std::vector<double> algbw, busbw;
  for (const double time : times) {
    algbw.push_back(static_cast<double>(layout.bytes) / time);
    busbw.push_back(algbw.back() * BusFactor(measured.op, ranks));
  }
  AddMetric(out, "algbw", "B/s", SummaryOf(std::move(algbw)));
  AddMetric(out, "busbw", "B/s", SummaryOf(std::move(busbw)));
  AddMetric(out, "bytes_total", "B", OneNumber(static_cast<double>(layout.bytes)));
  AddMetric(out, "bytes_per_rank", "B", OneNumber(static_cast<double>(layout.bytes_per_rank)));
}

v1::ImportedCase CaseOf(const MeasuredCase& measured) {
  v1::ImportedCase out;
  auto& params = *out.mutable_params();
  params["op"] = std::string(CollectiveOpName(measured.op));
  if (measured.op != CollectiveOp::kBarrier) params["size"] = absl::StrCat(measured.size);
  params["dtype"] = measured.dtype;
  if (!measured.redop.empty()) params["redop"] = measured.redop;
  if (measured.root > 0) params["root"] = absl::StrCat(measured.root);
  if (measured.in_place) params["in_place"] = "true";
  out.set_status(measured.wrong > 0 ? v1::WRONG : v1::PASSED);
  if (measured.wrong > 0) {
    out.set_reason(absl::StrCat(measured.wrong, " wrong elements, says the tool"));
  }
  if (measured.times_s.empty()) {
    (*out.mutable_info())["statistic"] = measured.statistic;
    (*out.mutable_info())["rates"] = "from the time";
  }
  return out;
}

}  // namespace

absl::Status CollectiveCases::Add(const MeasuredCase& measured, int ranks) {
  if (!(measured.time_s > 0) || !std::isfinite(measured.time_s)) {
    return absl::InvalidArgumentError(
        absl::StrCat(measured.where, ": a time of ", measured.time_s * 1e6, " us is no result"));
  }
  CollectiveRequest request;
  request.op = measured.op;
  request.size = measured.size;
  request.element_bytes = BytesOf(measured.dtype);
  request.ranks = ranks;
  request.root = static_cast<int>(measured.root);
  const absl::StatusOr<CollectiveLayout> layout = LayOut(request, 0);
  if (absl::IsUnimplemented(layout.status())) {  // the tool timed a row of nothing
    Note(absl::StrCat(measured.where, ": left out: ", layout.status().message()));
    return absl::OkStatus();
  }
  PARAM_RETURN_IF_ERROR(layout.status(), measured.where);
  v1::ImportedCase out = CaseOf(measured);
  const GivenParams given(out.params().begin(), out.params().end());
  PARAM_ASSIGN_OR_RETURN(const BenchmarkSpec* bench, FindBenchmark("collective"));
  PARAM_ASSIGN_OR_RETURN(const std::vector<Case> planned, ExpandCases(*bench, given),
                         measured.where);
  if (!seen_.insert(planned.front().id).second) {
    Note(absl::StrCat(measured.where, ": left out: the same case came before"));
    return absl::OkStatus();
  }
  AddMetrics(measured, *layout, ranks, &out);
  cases_.push_back(std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Imported> CollectiveCases::Finish(
    int ranks, const std::vector<std::string>& nodes, absl::string_view backend,
    const std::map<std::string, std::string>& environment) && {
  if (cases_.empty()) return absl::InvalidArgumentError("no result row was found");
  Imported out;
  out.request.set_benchmark("collective");
  out.request.set_backend(std::string(backend));
  out.request.set_ranks(ranks);
  for (const std::string& node : nodes) out.request.add_nodes(node);
  out.request.mutable_environment()->insert(environment.begin(), environment.end());
  for (v1::ImportedCase& one : cases_) *out.request.add_cases() = std::move(one);
  out.notes = std::move(notes_);
  return out;
}

absl::StatusOr<CollectiveOp> NcclTestsOperation(absl::string_view program) {
  program = program.substr(program.rfind('/') + 1);  // npos + 1 is 0
  const std::pair<absl::string_view, CollectiveOp> programs[] = {
      {"all_reduce_perf", CollectiveOp::kAllReduce},
      {"all_gather_perf", CollectiveOp::kAllGather},
      {"reduce_scatter_perf", CollectiveOp::kReduceScatter},
      {"alltoallv_perf", CollectiveOp::kAllToAllV},
      {"alltoall_perf", CollectiveOp::kAllToAll},
      {"broadcast_perf", CollectiveOp::kBroadcast},
      {"reduce_perf", CollectiveOp::kReduce},
      {"gather_perf", CollectiveOp::kGather},
      {"scatter_perf", CollectiveOp::kScatter}};
  for (const auto& [name, op] : programs) {
    if (absl::StartsWith(program, name)) return op;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", program, "\" measures nothing that benchmark collective has an operation for"));
}

absl::StatusOr<std::string> NcclTestsType(absl::string_view type) {
  const std::pair<absl::string_view, const char*> types[] = {
      {"int8", "i8"},       {"uint8", "u8"},     {"int32", "i32"},  {"int64", "i64"},
      {"half", "f16"},      {"float", "f32"},    {"double", "f64"}, {"bfloat16", "bf16"},
      {"f8e4m3", "f8e4m3"}, {"f8e5m2", "f8e5m2"}};
  for (const auto& [name, ours] : types) {
    if (type == name) return std::string(ours);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("benchmark collective has no type \"", type, "\""));
}

absl::StatusOr<std::optional<CollectiveOp>> HintedOperation(const ImportHints& hints) {
  if (hints.operation.empty()) return std::optional<CollectiveOp>();
  const std::optional<CollectiveOp> op = CollectiveOpFromName(hints.operation);
  if (op.has_value()) return op;
  const std::vector<std::string> names(std::begin(kCollectiveOpNames),
                                       std::end(kCollectiveOpNames));
  return absl::InvalidArgumentError(absl::StrCat("operation \"", hints.operation,
                                                 "\" is not one of ", absl::StrJoin(names, ", "),
                                                 DidYouMean(hints.operation, names)));
}

}  // namespace param
