#include "client/output/job_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/output/case_view.h"
#include "proto/base/text.h"
#include "proto/convert/names.h"

namespace param {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSlowFrom = 1.05;  // nodes less slow than this are within ordinary noise

Column Text(std::string key, bool wide_only = false) {
  std::string title = absl::AsciiStrToUpper(key);
  std::replace(title.begin(), title.end(), '_', ' ');
  return {std::move(key), std::move(title), "", Align::kLeft, Scale::kPlain, wide_only};
}

Column Number(std::string key, std::string title, std::string unit, Scale scale,
              bool wide_only = false) {
  return {std::move(key), std::move(title), std::move(unit), Align::kRight, scale, wide_only};
}

double P50(const v1::CaseResult& result, absl::string_view metric) {
  const v1::Summary* summary = FindSummary(result, metric, -1);
  return summary == nullptr ? kNan : summary->p50();
}

// Statistics of `time` and what follows from it, in the order of CaseTable's columns.
void AddNumbers(const v1::CaseResult& result, const MetricSpec* rate, std::vector<Cell>* row) {
  const v1::Summary* time = FindSummary(result, "time", -1);
  if (time == nullptr) {
    row->insert(row->end(), 5, Cell());
  } else {
    row->emplace_back(std::int64_t{time->n()});
    row->emplace_back(time->p50());
    row->emplace_back(time->mean() > 0 ? time->stdev() / time->mean() : kNan);
    row->emplace_back(time->min());
    row->emplace_back(time->p95());
  }
  if (rate != nullptr) row->emplace_back(P50(result, rate->name));
}

std::string InfoOf(const v1::CaseResult& result, const std::string& key) {
  const auto it = result.info().find(key);
  return it == result.info().end() ? "-" : it->second;
}

// Names and units of the metrics that CSV shows: the catalogue's, else those that were measured.
std::vector<std::pair<std::string, std::string>> MetricsOf(const BenchmarkSpec* bench,
                                                           const CaseList& cases) {
  std::vector<std::pair<std::string, std::string>> metrics;
  if (bench != nullptr) {
    for (const MetricSpec& metric : bench->metrics) metrics.emplace_back(metric.name, metric.unit);
    return metrics;
  }
  std::map<std::string, std::string> seen;
  for (const v1::CaseResult* result : cases) {
    for (const v1::Measurement& m : result->measurements()) seen[m.metric()] = m.unit();
  }
  metrics.assign(seen.begin(), seen.end());
  return metrics;
}

std::vector<Column> CsvParams(const BenchmarkSpec* bench, const CaseList& cases) {
  std::vector<Column> columns;
  if (bench != nullptr) {
    for (const ParamSpec* spec : AllParams(*bench)) {
      const char* unit = spec->type == ParamType::kBytes      ? "B"
                         : spec->type == ParamType::kDuration ? "s"
                                                              : "";
      columns.push_back(Number(std::string(spec->name), "", unit, Scale::kPlain));
    }
    return columns;
  }
  std::set<std::string> names;
  for (const v1::CaseResult* result : cases) {
    for (const auto& [name, value] : result->params()) names.insert(name);
  }
  for (const std::string& name : names) columns.push_back(Number(name, "", "", Scale::kPlain));
  return columns;
}

Cell ParamCell(const v1::CaseResult& result, const std::string& name) {
  const auto it = result.params().find(name);
  if (it == result.params().end()) return {};
  switch (it->second.kind_case()) {
    case v1::ParamValue::kInteger:
      return std::int64_t{it->second.integer()};
    case v1::ParamValue::kNumber:
      return it->second.number();
    case v1::ParamValue::kBoolean:
      return it->second.boolean();
    case v1::ParamValue::kText:
      return it->second.text();
    case v1::ParamValue::KIND_NOT_SET:
      break;
  }
  return {};
}

void AddStatistics(const v1::Summary* s, std::vector<Cell>* row) {
  if (s == nullptr) {
    row->insert(row->end(), 11, Cell());
    return;
  }
  row->emplace_back(std::int64_t{s->n()});
  for (const double value : {s->min(), s->p50(), s->p75(), s->p95(), s->p99(), s->max(), s->mean(),
                             s->stdev(), s->ci95_low(), s->ci95_high()}) {
    row->emplace_back(value);
  }
}

}  // namespace

Cell SlowestCell(const v1::CaseResult& result) {
  const std::optional<SlowRank> slow = SlowestOf(result);
  if (!slow.has_value()) return {};
  return {absl::StrFormat("%s:%d %+.1f%%", slow->node, slow->rank, (slow->ratio - 1) * 100),
          slow->ratio >= kSlowFrom ? Style::kWarn : Style::kPlain};
}

CaseList ListCases(const v1::GetJobResponse& response) {
  CaseList cases;
  for (const v1::CaseResult& result : response.cases()) cases.push_back(&result);
  return cases;
}

Style StyleOf(v1::CaseStatus status) {
  if (status == v1::PASSED) return Style::kGood;
  if (status == v1::SKIPPED) return Style::kDim;
  return status == v1::CASE_STATUS_UNSPECIFIED ? Style::kPlain : Style::kBad;
}

Style StyleOf(v1::JobState state) {
  if (state == v1::SUCCEEDED) return Style::kGood;
  if (state == v1::FAILED || state == v1::TIMED_OUT) return Style::kBad;
  return state == v1::CANCELLED ? Style::kWarn : Style::kPlain;
}

Table CaseTable(const v1::Job& job, const CaseList& cases) {
  const BenchmarkSpec* bench = SpecOf(job.spec().benchmark());
  const MetricSpec* rate = RateMetric(bench);
  const std::vector<std::string> params = ShownParams(bench, cases);
  bool any_set = false, any_reason = false, any_peak = false, any_slow = false;
  for (const v1::CaseResult* result : cases) {
    any_set |= !result->set_row().empty();
    any_reason |= !result->reason().empty();
    any_peak |= std::isfinite(P50(*result, "efficiency"));
    any_slow |= SlowestOf(*result).has_value();
  }
  Table table;
  if (any_set) {
    table.columns.push_back(Text("set_row"));
    table.columns.push_back(Text("application", true));
  }
  for (const std::string& name : params) {
    table.columns.push_back(Number(name, absl::AsciiStrToUpper(name), "", Scale::kPlain));
  }
  table.columns.push_back(Text("status"));
  table.columns.push_back(Number("n", "N", "", Scale::kPlain));
  table.columns.push_back(Number("time_p50", "TIME P50", "s", Scale::kSi));
  table.columns.push_back(Number("time_spread", "STDEV", "1", Scale::kPercent));
  table.columns.push_back(Number("time_min", "MIN", "s", Scale::kSi, true));
  table.columns.push_back(Number("time_p95", "P95", "s", Scale::kSi, true));
  if (rate != nullptr) {
    const std::string name(rate->name);
    table.columns.push_back(Number(absl::StrCat(name, "_p50"), absl::AsciiStrToUpper(name),
                                   std::string(rate->unit), Scale::kSi));
  }
  if (any_peak) table.columns.push_back(Number("efficiency", "OF PEAK", "1", Scale::kPercent));
  if (any_slow) table.columns.push_back(Text("slowest"));
  table.columns.push_back(Text("library", true));
  if (any_reason) table.columns.push_back(Text("reason"));
  for (const v1::CaseResult* result : cases) {
    std::vector<Cell>& row = table.rows.emplace_back();
    if (any_set) {
      row.emplace_back(result->set_row());
      row.emplace_back(result->application());
    }
    for (const std::string& name : params) row.emplace_back(ParamText(bench, *result, name));
    const std::string status = WireCaseStatusName(result->status());
    row.emplace_back(status.empty() ? "-" : status, StyleOf(result->status()));
    AddNumbers(*result, rate, &row);
    if (any_peak) row.emplace_back(P50(*result, "efficiency"));
    if (any_slow) row.push_back(SlowestCell(*result));
    row.emplace_back(InfoOf(*result, "library"));
    if (any_reason) row.emplace_back(result->reason());
  }
  return table;
}

Table CaseCsvTable(const v1::Job& job, const CaseList& cases) {
  const BenchmarkSpec* bench = SpecOf(job.spec().benchmark());
  const std::vector<Column> params = CsvParams(bench, cases);
  const auto metrics = MetricsOf(bench, cases);
  Table table;
  for (const char* key : {"job_id", "benchmark", "backend", "nodes", "ranks", "case_index", "case",
                          "set_row", "application"}) {
    table.columns.push_back(Text(key));
  }
  table.columns.insert(table.columns.end(), params.begin(), params.end());
  table.columns.push_back(Text("status"));
  table.columns.push_back(Text("reason"));
  for (const auto& [name, unit] : metrics) {
    table.columns.push_back(Text(absl::StrCat(name, "_n")));
    for (const char* statistic :
         {"min", "p50", "p75", "p95", "p99", "max", "mean", "stdev", "ci95_low", "ci95_high"}) {
      table.columns.push_back(Number(absl::StrCat(name, "_", statistic), "", unit, Scale::kPlain));
    }
  }
  for (const v1::CaseResult* result : cases) {
    std::vector<Cell>& row = table.rows.emplace_back();
    row.emplace_back(job.job_id());
    row.emplace_back(job.spec().benchmark());
    row.emplace_back(job.backend());
    row.emplace_back(absl::StrJoin(job.nodes(), ";"));
    row.emplace_back(std::int64_t{job.ranks()});
    row.emplace_back(std::int64_t{result->case_index()});
    row.emplace_back(result->case_id());
    row.emplace_back(result->set_row());
    row.emplace_back(result->application());
    for (const Column& column : params) row.push_back(ParamCell(*result, column.key));
    row.emplace_back(WireCaseStatusName(result->status()));
    row.emplace_back(result->reason());
    for (const auto& [name, unit] : metrics) AddStatistics(FindSummary(*result, name, -1), &row);
  }
  return table;
}

Table NodeTimeTable(const v1::Job& job, const CaseList& cases, std::size_t limit) {
  std::vector<NodeTime> nodes = CompareNodes(job, cases);
  if (nodes.size() > limit) {
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const NodeTime& a, const NodeTime& b) { return a.ratio > b.ratio; });
    nodes.resize(limit);
  }
  // Several cases have no common time.
  const bool timed = !nodes.empty() && std::isfinite(nodes.front().time_p50);
  Table table;
  table.columns = {Text("node"), Number("ranks", "RANKS", "", Scale::kPlain)};
  if (timed) table.columns.push_back(Number("time_p50", "TIME P50", "s", Scale::kSi));
  table.columns.push_back(Number("change", "VS MEDIAN", "1", Scale::kChange));
  table.columns.push_back({"note"});
  for (const NodeTime& node : nodes) {
    const Style style = node.slowest && node.ratio >= kSlowFrom ? Style::kWarn : Style::kPlain;
    std::vector<Cell>& row = table.rows.emplace_back();
    row.emplace_back(node.node, style);
    row.emplace_back(std::int64_t{node.ranks});
    if (timed) row.emplace_back(node.time_p50);
    row.emplace_back(node.ratio - 1, style);
    row.emplace_back(std::string(node.slowest ? "<- slowest" : ""), style);
  }
  return table;
}

std::string CaseLine(const v1::Job& job, const v1::CaseResult& result,
                     const std::vector<std::string>& shown_params, bool color) {
  const BenchmarkSpec* bench = SpecOf(job.spec().benchmark());
  std::string line = absl::StrFormat("[%d/%d] ", job.cases_done(), job.cases_total());
  const std::string status = absl::StrFormat("%-7s", WireCaseStatusName(result.status()));
  absl::StrAppend(&line, Paint(status, StyleOf(result.status()), color));
  for (const std::string& name : shown_params) {
    absl::StrAppend(&line, " ", name, "=", ParamText(bench, result, name));
  }
  const double time = P50(result, "time");
  if (std::isfinite(time)) absl::StrAppend(&line, "  ", FormatSi(time, "s"));
  // Ranks that work together have a rate of the whole and one of each link.
  const bool together = bench != nullptr && bench->pooling == Pooling::kSlowestRank;
  for (const MetricSpec* rate : RateMetrics(bench)) {
    const double speed = P50(result, rate->name);
    if (std::isfinite(speed)) {
      absl::StrAppend(&line, "  ", together ? absl::StrCat(rate->name, " ") : "",
                      FormatSi(speed, rate->unit));
    }
    if (!together) break;
  }
  if (!result.reason().empty()) absl::StrAppend(&line, "  ", SafeText(result.reason()));
  return line;
}

}  // namespace param
