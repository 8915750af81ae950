#include "client/output/html_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/output/case_view.h"
#include "client/output/collective_table.h"
#include "client/output/curves.h"
#include "client/output/html.h"
#include "client/output/job_report.h"
#include "client/output/job_table.h"
#include "proto/convert/names.h"

namespace param {
namespace {

// A heat map larger than this is no help to the eye and makes the file too large.
constexpr std::size_t kRanksShown = 256;
constexpr std::size_t kCasesShown = 64;
constexpr std::size_t kNodesShown = 64;
constexpr double kFullColor = 0.5;  // 50 % from the median has the full colour
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

absl::string_view StateClass(v1::JobState state) {
  switch (StyleOf(state)) {
    case Style::kGood:
      return "good";
    case Style::kBad:
      return "bad";
    case Style::kWarn:
      return "warn";
    default:
      return "soft";
  }
}

std::string Head(const v1::Job& job) {
  std::string out = absl::StrCat("<h1>", HtmlText(job.spec().benchmark()), " <span class=\"",
                                 StateClass(job.state()), "\">", WireJobStateName(job.state()),
                                 "</span></h1>\n<p class=\"soft\">job ", HtmlText(job.job_id()));
  if (!job.spec().name().empty()) absl::StrAppend(&out, ", ", HtmlText(job.spec().name()));
  absl::StrAppend(&out, "</p>\n");
  if (job.has_failure() && !job.failure().code().empty()) {
    absl::StrAppend(&out, "<div class=\"box\"><span class=\"bad bold\">failure</span> ",
                    HtmlText(FailureText(job.failure())), "</div>\n");
  }
  if (job.oversubscribed()) {
    absl::StrAppend(&out,
                    "<div class=\"box\">Ranks on one machine share cores: these times are not the "
                    "machine's best.</div>\n");
  }
  return out;
}

std::string Facts(const v1::GetJobResponse& response) {
  std::string out = "<h2>Job</h2>\n<div class=\"scroll\"><table>\n";
  const Table facts = JobFactsTable(response);
  for (const std::vector<Cell>& row : facts.rows) {
    absl::StrAppend(&out, "<tr><th>", HtmlText(CellText(facts.columns[0], row[0])),
                    "</th><td class=\"wrap\">", HtmlText(CellText(facts.columns[1], row[1])),
                    "</td></tr>\n");
  }
  return absl::StrCat(out, "</table></div>\n");
}

std::string Curves(const v1::GetJobResponse& response) {
  const absl::StatusOr<std::vector<Chart>> charts = ChartsOf(response);
  if (!charts.ok() || charts->empty()) return "";
  std::string out = "<h2>Curves</h2>\n<div class=\"charts\">\n";
  for (const Chart& chart : *charts) absl::StrAppend(&out, HtmlChart(chart));
  return absl::StrCat(out, "</div>\n");
}

std::string Cases(const v1::GetJobResponse& response) {
  if (response.cases().empty()) return "";
  std::string out = "<h2>Cases</h2>\n";
  const absl::StatusOr<std::vector<CollectiveTable>> sweeps = CollectiveTables(response);
  if (!sweeps.ok()) {
    return absl::StrCat(out, HtmlTable(CaseTable(response.job(), ListCases(response))));
  }
  for (const CollectiveTable& sweep : *sweeps) {
    absl::StrAppend(&out, "<h3>", HtmlText(sweep.title), "</h3>\n", HtmlTable(sweep.table));
  }
  return out;
}

// One rank's median times over the median of the ranks, by case; NaN where there is none.
struct HeatRow {
  int rank = 0;
  std::string node;
  std::vector<double> ratios;
  double worst = 0;  // largest ratio
};

// Ranks by number, of cases that at least two ranks have times of.
std::vector<HeatRow> HeatRows(const CaseList& cases) {
  std::map<int, HeatRow> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::map<int, double> times;
    for (const v1::Measurement& m : cases[i]->measurements()) {
      if (m.rank() >= 0 && m.labels().empty() && m.metric() == "time" && m.summary().p50() > 0) {
        times[m.rank()] = m.summary().p50();
      }
    }
    std::vector<double> values;
    values.reserve(times.size());
    for (const auto& [rank, time] : times) values.push_back(time);
    const double median = MedianOf(values);
    for (const v1::RankStatus& at : cases[i]->ranks()) {
      HeatRow& row = rows[at.rank()];
      row.rank = at.rank();
      row.node = at.node();
      row.ratios.resize(cases.size(), kNan);
      const auto time = times.find(at.rank());
      if (time == times.end() || times.size() < 2) continue;
      row.ratios[i] = time->second / median;
      row.worst = std::max(row.worst, row.ratios[i]);
    }
  }
  std::vector<HeatRow> out;
  out.reserve(rows.size());
  for (auto& [rank, row] : rows) out.push_back(std::move(row));
  return out;
}

// Red is slower than the median rank, blue faster; see-through, so it suits light and dark.
std::string HeatCell(double ratio) {
  if (!std::isfinite(ratio)) return "<td></td>";
  const double strength = std::min(1.0, std::fabs(ratio - 1) / kFullColor);
  return absl::StrFormat("<td style=\"background: rgba(%s, %.2f)\">%+.0f%%</td>",
                         ratio >= 1 ? "220, 60, 40" : "40, 110, 220", strength * 0.8,
                         (ratio - 1) * 100);
}

std::string CaseName(const v1::GetJobResponse& response, const v1::CaseResult& result) {
  const BenchmarkSpec* bench = SpecOf(response.job().spec().benchmark());
  std::vector<std::string> parts;
  for (const std::string& name : ShownParams(bench, ListCases(response))) {
    parts.push_back(absl::StrCat(name, "=", ParamText(bench, result, name)));
  }
  return absl::StrJoin(parts, " ");
}

std::string Heat(const v1::GetJobResponse& response) {
  CaseList cases = ListCases(response);
  const std::size_t all_cases = cases.size();
  if (cases.size() > kCasesShown) cases.resize(kCasesShown);
  std::vector<HeatRow> rows = HeatRows(cases);
  if (rows.size() < 2 ||
      std::none_of(rows.begin(), rows.end(), [](const HeatRow& row) { return row.worst > 0; })) {
    return "";
  }
  const std::size_t all_ranks = rows.size();
  if (rows.size() > kRanksShown) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const HeatRow& a, const HeatRow& b) { return a.worst > b.worst; });
    rows.resize(kRanksShown);
  }
  std::string out =
      "<h2>Ranks</h2>\n<p class=\"soft\">Each rank's median time against the median rank of the "
      "same case: red is slower, blue is faster.</p>\n";
  if (rows.size() < all_ranks || cases.size() < all_cases) {
    absl::StrAppend(&out, "<p class=\"soft\">Shown are ", rows.size(), " of ", all_ranks,
                    " ranks (the slowest) and ", cases.size(), " of ", all_cases, " cases.</p>\n");
  }
  const BenchmarkSpec* bench = SpecOf(response.job().spec().benchmark());
  absl::StrAppend(&out,
                  "<div class=\"scroll\"><table class=\"heat\">\n<tr><th>rank</th><th>node</th>");
  for (const v1::CaseResult* result : cases) {
    const bool sized = result->params().count("size") > 0;
    absl::StrAppend(&out, "<th title=\"", HtmlText(CaseName(response, *result)), "\">#",
                    result->case_index(), sized ? "<br>" : "",
                    sized ? HtmlText(ParamText(bench, *result, "size")) : "", "</th>");
  }
  absl::StrAppend(&out, "</tr>\n");
  for (const HeatRow& row : rows) {
    absl::StrAppend(&out, "<tr><td>", row.rank, "</td><td class=\"name\">", HtmlText(row.node),
                    "</td>");
    for (const double ratio : row.ratios) absl::StrAppend(&out, HeatCell(ratio));
    absl::StrAppend(&out, "</tr>\n");
  }
  return absl::StrCat(out, "</table></div>\n");
}

std::string Nodes(const v1::GetJobResponse& response) {
  const Table nodes = NodeTimeTable(response.job(), ListCases(response), kNodesShown);
  return nodes.rows.empty() ? "" : absl::StrCat("<h2>Nodes</h2>\n", HtmlTable(nodes));
}

// Each fact once; where ranks differ, every value with the ranks that have it.
std::string Environment(const v1::GetJobResponse& response) {
  std::map<std::string, std::map<std::string, std::vector<int>>> facts;
  for (const v1::RankEnvironment& rank : response.environment()) {
    for (const auto& [key, value] : rank.facts()) facts[key][value].push_back(rank.rank());
  }
  if (facts.empty()) return "";
  std::string out = "<h2>Environment</h2>\n<div class=\"scroll\"><table>\n";
  for (const auto& [key, values] : facts) {
    std::vector<std::string> texts;
    for (const auto& [value, ranks] : values) {
      constexpr std::size_t kNamed = 8;
      const std::vector<int> first(
          ranks.begin(),
          ranks.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, ranks.size())));
      texts.push_back(values.size() == 1
                          ? HtmlText(value)
                          : absl::StrCat(HtmlText(value), " <span class=\"warn\">(rank ",
                                         absl::StrJoin(first, ", "),
                                         ranks.size() > kNamed ? ", ..." : "", ")</span>"));
    }
    absl::StrAppend(&out, "<tr><th>", HtmlText(key), "</th><td class=\"wrap\">",
                    absl::StrJoin(texts, "<br>"), "</td></tr>\n");
  }
  return absl::StrCat(out, "</table></div>\n");
}

std::string Repeat(const v1::GetJobResponse& response) {
  const std::string command = RepeatCommand(response);
  if (command.empty()) return "";
  return absl::StrCat("<h2>Repeat</h2>\n<pre>", HtmlText(command), "</pre>\n");
}

}  // namespace

std::string RenderHtmlReport(const v1::GetJobResponse& response) {
  const v1::Job& job = response.job();
  return HtmlPage(
      absl::StrCat(job.spec().benchmark(), " ", job.job_id()),
      absl::StrCat(Head(job), Facts(response), Curves(response), Cases(response), Heat(response),
                   Nodes(response), Environment(response), Repeat(response)));
}

}  // namespace param
