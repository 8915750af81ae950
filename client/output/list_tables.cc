// Tables of many jobs, results, logs and samples: see job_table.h.

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/output/case_view.h"
#include "client/output/job_table.h"
#include "proto/convert/names.h"

namespace param {
namespace {

Column Plain(std::string key, std::string title, bool wide_only = false) {
  return {std::move(key), std::move(title), "", Align::kLeft, Scale::kPlain, wide_only};
}

Column Right(std::string key, std::string title, std::string unit = "",
             Scale scale = Scale::kPlain) {
  return {std::move(key), std::move(title), std::move(unit), Align::kRight, scale, false};
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string LabelText(const google::protobuf::Map<std::string, std::string>& labels) {
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  return absl::StrJoin(sorted, ";", absl::PairFormatter("="));
}

Cell Median(const v1::CaseResult& result, absl::string_view metric) {
  const v1::Summary* summary = FindSummary(result, metric, -1);
  return summary == nullptr ? Cell() : Cell(summary->p50());
}

// The rates of the benchmarks that occur, each once: usually one.
std::vector<const MetricSpec*> RatesOf(const std::vector<v1::ResultRow>& rows) {
  std::vector<const MetricSpec*> rates;
  std::set<std::string> seen;
  for (const v1::ResultRow& row : rows) {
    if (!seen.insert(row.benchmark()).second) continue;
    const MetricSpec* rate = RateMetric(SpecOf(row.benchmark()));
    const bool is_new =
        rate != nullptr && std::none_of(rates.begin(), rates.end(), [rate](const MetricSpec* one) {
          return one->name == rate->name && one->unit == rate->unit;
        });
    if (is_new) rates.push_back(rate);
  }
  return rates;
}

}  // namespace

std::string AgeText(std::int64_t ns, absl::Time now) {
  if (ns == 0) return "-";
  const std::int64_t seconds =
      std::max<std::int64_t>(0, absl::ToInt64Seconds(now - absl::FromUnixNanos(ns)));
  if (seconds < 120) return absl::StrCat(seconds, "s");
  if (seconds < 7200) return absl::StrCat(seconds / 60, "m");
  if (seconds < 172800) return absl::StrCat(seconds / 3600, "h");
  return absl::StrCat(seconds / 86400, "d");
}

Table JobsTable(const std::vector<v1::Job>& jobs, absl::Time now) {
  Table table;
  table.columns = {Plain("id", "ID"),
                   Plain("name", "NAME", true),
                   Plain("benchmark", "BENCHMARK"),
                   Plain("state", "STATE"),
                   Plain("backend", "BACKEND"),
                   Right("nodes", "NODES"),
                   Right("ranks", "RANKS"),
                   Plain("cases", "CASES"),
                   Right("priority", "PRIORITY"),
                   Plain("owner", "OWNER", true),
                   Right("age", "AGE"),
                   Plain("reason", "REASON")};
  table.columns[8].wide_only = true;
  for (const v1::Job& job : jobs) {
    const bool placed = job.nodes_size() > 0;
    const std::string reason =
        job.reason().empty() && job.has_failure() ? job.failure().cause() : job.reason();
    table.rows.push_back({{job.job_id()},
                          {OrDash(job.spec().name())},
                          {job.spec().benchmark()},
                          {WireJobStateName(job.state()), StyleOf(job.state())},
                          {OrDash(job.backend().empty() ? job.spec().backend() : job.backend())},
                          {std::int64_t{placed ? job.nodes_size() : job.spec().nodes()}},
                          {job.ranks() > 0 ? Cell(std::int64_t{job.ranks()}) : Cell()},
                          {absl::StrCat(job.cases_done(), "/", job.cases_total())},
                          {std::int64_t{job.spec().priority()}},
                          {OrDash(job.owner())},
                          {AgeText(job.timeline().submitted(), now)},
                          {OrDash(reason)}});
  }
  return table;
}

Table ResultsTable(const std::vector<v1::ResultRow>& rows, absl::Time now) {
  const std::vector<const MetricSpec*> rates = RatesOf(rows);
  Table table;
  table.columns = {Plain("job_id", "JOB"),
                   Plain("case", "CASE"),
                   Plain("backend", "BACKEND"),
                   Plain("nodes", "NODES"),
                   Right("ranks", "RANKS"),
                   Plain("status", "STATUS"),
                   Right("time_p50", "TIME P50", "s", Scale::kSi)};
  for (const MetricSpec* rate : rates) {
    const std::string name(rate->name);
    table.columns.push_back(Right(absl::StrCat(name, "_p50"), absl::AsciiStrToUpper(name),
                                  std::string(rate->unit), Scale::kSi));
  }
  table.columns.push_back(Right("efficiency", "OF PEAK", "1", Scale::kPercent));
  table.columns.push_back(Right("age", "AGE"));
  table.columns.push_back(Plain("reason", "REASON", true));
  for (const v1::ResultRow& row : rows) {
    const v1::CaseResult& result = row.result();
    std::vector<Cell>& cells = table.rows.emplace_back();
    cells = {{row.job_id()},
             {result.case_id()},
             {OrDash(row.backend())},
             {OrDash(absl::StrJoin(row.nodes(), ";"))},
             {std::int64_t{row.ranks()}},
             {WireCaseStatusName(result.status()), StyleOf(result.status())},
             Median(result, "time")};
    for (const MetricSpec* rate : rates) cells.push_back(Median(result, rate->name));
    cells.push_back(Median(result, "efficiency"));
    cells.emplace_back(AgeText(row.finished_ns(), now));
    cells.emplace_back(OrDash(result.reason()));
  }
  return table;
}

Table LogsTable(const std::vector<v1::LogRow>& rows) {
  Table table;
  table.columns = {Plain("time", "TIME"),       Plain("node", "NODE"),   Right("rank", "RANK"),
                   Right("attempt", "ATTEMPT"), Plain("level", "LEVEL"), Plain("text", "TEXT")};
  for (const v1::LogRow& row : rows) {
    const Style style = row.level() == "error"  ? Style::kBad
                        : row.level() == "warn" ? Style::kWarn
                                                : Style::kPlain;
    table.rows.push_back(
        {{absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(row.time_ns()),
                           absl::UTCTimeZone())},
         {OrDash(row.node())},
         {std::int64_t{row.rank()}},
         {std::int64_t{row.attempt()}},
         {row.level(), style},
         {row.text()}});
  }
  return table;
}

Table SamplesTable(const v1::GetJobResponse& job, const std::vector<v1::SampleBlob>& blobs) {
  std::map<int, std::string> case_ids;
  for (const v1::CaseResult& result : job.cases()) {
    case_ids[result.case_index()] = result.case_id();
  }
  Table table;
  table.columns = {Plain("job_id", "JOB"),    Right("case_index", "INDEX"),
                   Plain("case", "CASE"),     Right("rank", "RANK"),
                   Plain("metric", "METRIC"), Plain("labels", "LABELS"),
                   Right("sample", "SAMPLE"), Right("value", "VALUE")};
  for (const v1::SampleBlob& blob : blobs) {
    for (int i = 0; i < blob.values_size(); ++i) {
      table.rows.push_back({{job.job().job_id()},
                            {std::int64_t{blob.case_index()}},
                            {case_ids[blob.case_index()]},
                            {std::int64_t{blob.rank()}},
                            {blob.metric()},
                            {LabelText(blob.labels())},
                            {std::int64_t{i}},
                            {blob.values(i)}});
    }
  }
  return table;
}

}  // namespace param
