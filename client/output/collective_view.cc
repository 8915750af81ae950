#include "client/output/collective_view.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/output/case_view.h"
#include "proto/base/status.h"
#include "proto/catalog/cases.h"
#include "proto/convert/values.h"

namespace param {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double P50(const v1::CaseResult& result, absl::string_view metric) {
  const v1::Summary* summary = FindSummary(result, metric, -1);
  return summary == nullptr ? kNan : summary->p50();
}

template <typename T>
absl::StatusOr<T> Param(const Params& params, absl::string_view name) {
  const auto it = params.find(name);
  const T* value = it == params.end() ? nullptr : std::get_if<T>(&it->second);
  if (value == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the case has no parameter \"", name, "\" of the type that a collective has"));
  }
  return *value;
}

}  // namespace

std::int64_t ElementBytes(absl::string_view dtype) {
  if (absl::StartsWith(dtype, "f8")) return 1;
  for (const auto& [ending, bytes] :
       {std::pair<absl::string_view, std::int64_t>{"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}}) {
    if (absl::EndsWith(dtype, ending)) return bytes;
  }
  return 0;
}

absl::StatusOr<CollectiveView> ViewCollective(const v1::CaseResult& result) {
  CollectiveView view;
  view.result = &result;
  PARAM_ASSIGN_OR_RETURN(const Params params, ParamsFromProto(result.params()));
  PARAM_ASSIGN_OR_RETURN(const std::string op, Param<std::string>(params, "op"));
  const std::optional<CollectiveOp> known = CollectiveOpFromName(op);
  if (!known.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("unknown operation \"", op, "\""));
  }
  view.op = *known;
  PARAM_ASSIGN_OR_RETURN(view.dtype, Param<std::string>(params, "dtype"));
  PARAM_ASSIGN_OR_RETURN(view.redop, Param<std::string>(params, "redop"));
  PARAM_ASSIGN_OR_RETURN(view.root, Param<std::int64_t>(params, "root"));
  PARAM_ASSIGN_OR_RETURN(view.in_place, Param<bool>(params, "in_place"));
  PARAM_ASSIGN_OR_RETURN(view.size, Param<std::int64_t>(params, "size"));
  view.element_bytes = ElementBytes(view.dtype);
  if (view.element_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat("unknown type \"", view.dtype, "\""));
  }
  view.bytes_total = P50(result, "bytes_total");
  view.bytes_per_rank = P50(result, "bytes_per_rank");
  view.time = FindSummary(result, "time", -1);
  view.algbw = P50(result, "algbw");
  view.busbw = P50(result, "busbw");
  return view;
}

absl::StatusOr<std::vector<CollectiveView>> ViewCollectives(const v1::GetJobResponse& response) {
  const std::string& benchmark = response.job().spec().benchmark();
  if (benchmark != kCollective) {
    return absl::InvalidArgumentError(absl::StrCat("job ", response.job().job_id(),
                                                   " is of benchmark \"", benchmark,
                                                   "\", not of \"", kCollective, "\""));
  }
  std::vector<CollectiveView> views;
  for (const v1::CaseResult& result : response.cases()) {
    PARAM_ASSIGN_OR_RETURN(CollectiveView view, ViewCollective(result), "case ",
                           result.case_index());
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<double> RankMeanTimes(const v1::CaseResult& result) {
  std::vector<std::pair<int, double>> by_rank;
  for (const v1::Measurement& m : result.measurements()) {
    if (m.rank() >= 0 && m.labels().empty() && m.metric() == "time" && m.summary().mean() > 0) {
      by_rank.emplace_back(m.rank(), m.summary().mean());
    }
  }
  std::sort(by_rank.begin(), by_rank.end());
  std::vector<double> times;
  times.reserve(by_rank.size() + 1);
  for (const auto& [rank, time] : by_rank) times.push_back(time);
  const v1::Summary* all = FindSummary(result, "time", -1);
  if (times.empty() && all != nullptr && all->mean() > 0) times.push_back(all->mean());
  return times;
}

std::int64_t SamplesPerRank(const v1::CaseResult& result) {
  for (const v1::Measurement& m : result.measurements()) {
    if (m.rank() >= 0 && m.labels().empty() && m.metric() == "time") return m.summary().n();
  }
  const v1::Summary* all = FindSummary(result, "time", -1);
  return all == nullptr ? 0 : all->n();
}

}  // namespace param
