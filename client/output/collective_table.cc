#include "client/output/collective_table.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/output/case_view.h"
#include "client/output/collective_view.h"
#include "client/output/convention_tools.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/convert/names.h"

namespace param {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<Column> Columns(bool any_slow, bool any_reason) {
  const auto number = [](const char* key, const char* title, const char* unit, Scale scale,
                         bool wide = false) {
    return Column{key, title, unit, Align::kRight, scale, wide};
  };
  std::vector<Column> columns = {number("size", "SIZE", "B", Scale::kBytes),
                                 number("bytes_per_rank", "PER RANK", "B", Scale::kBytes),
                                 number("bytes_total", "TOTAL", "B", Scale::kBytes),
                                 {"status", "STATUS"},
                                 number("n", "N", "", Scale::kPlain),
                                 number("time_p50", "TIME P50", "s", Scale::kSi),
                                 number("time_p99", "P99", "s", Scale::kSi),
                                 number("time_min", "MIN", "s", Scale::kSi, true),
                                 number("time_p95", "P95", "s", Scale::kSi, true),
                                 number("time_spread", "STDEV", "1", Scale::kPercent, true),
                                 number("algbw_p50", "ALGBW", "B/s", Scale::kSi),
                                 number("busbw_p50", "BUSBW", "B/s", Scale::kSi)};
  if (any_slow) columns.push_back({"slowest", "SLOWEST"});
  columns.push_back({"library", "LIBRARY", "", Align::kLeft, Scale::kPlain, true});
  if (any_reason) columns.push_back({"reason", "REASON"});
  return columns;
}

std::vector<Cell> Row(const CollectiveView& view, bool any_slow, bool any_reason) {
  const v1::CaseResult& result = *view.result;
  const v1::Summary* time = view.time;
  const std::string status = WireCaseStatusName(result.status());
  std::vector<Cell> row;
  row.emplace_back(static_cast<double>(view.size));
  row.emplace_back(view.bytes_per_rank);
  row.emplace_back(view.bytes_total);
  row.emplace_back(status.empty() ? "-" : status, StyleOf(result.status()));
  row.push_back(time == nullptr ? Cell() : Cell(std::int64_t{time->n()}));
  row.emplace_back(time == nullptr ? kNan : time->p50());
  row.emplace_back(time == nullptr ? kNan : time->p99());
  row.emplace_back(time == nullptr ? kNan : time->min());
  row.emplace_back(time == nullptr ? kNan : time->p95());
  row.emplace_back(time != nullptr && time->mean() > 0 ? time->stdev() / time->mean() : kNan);
  row.emplace_back(view.algbw);
  row.emplace_back(view.busbw);
  if (any_slow) row.push_back(SlowestCell(result));
  const auto library = result.info().find("library");
  row.emplace_back(library == result.info().end() ? std::string("-") : library->second);
  if (any_reason) row.emplace_back(result.reason());
  return row;
}

}  // namespace

std::string SweepTitle(const v1::CaseResult& result, const std::vector<std::string>& shown_params) {
  const BenchmarkSpec* bench = SpecOf(kCollective);
  std::string title =
      absl::StrCat(ParamText(bench, result, "op"), " ", ParamText(bench, result, "dtype"));
  for (const std::string& name : shown_params) {
    if (name == "op" || name == "dtype" || name == "size") continue;
    const std::string text = ParamText(bench, result, name);
    if (name == "in_place") {
      absl::StrAppend(&title, text == "true" ? " in place" : " out of place");
    } else {
      absl::StrAppend(&title, " ", name, "=", text);
    }
  }
  return title;
}

absl::StatusOr<std::vector<CollectiveTable>> CollectiveTables(const v1::GetJobResponse& response) {
  PARAM_ASSIGN_OR_RETURN(const std::vector<CollectiveView> views, ViewCollectives(response));
  const std::vector<std::string> shown = ShownParams(SpecOf(kCollective), ListCases(response));
  const auto title = [&shown](const CollectiveView& view) {
    return SweepTitle(*view.result, shown);
  };
  std::vector<CollectiveTable> tables;
  for (const std::vector<CollectiveView>& group : GroupBy(views, title)) {
    bool any_slow = false, any_reason = false;
    for (const CollectiveView& view : group) {
      any_slow |= SlowestOf(*view.result).has_value();
      any_reason |= !view.result->reason().empty();
    }
    CollectiveTable& one = tables.emplace_back();
    one.title = title(group.front());
    one.table.columns = Columns(any_slow, any_reason);
    for (const CollectiveView& view : group) {
      one.table.rows.push_back(Row(view, any_slow, any_reason));
    }
  }
  return tables;
}

}  // namespace param
