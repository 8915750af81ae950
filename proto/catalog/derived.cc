#include "proto/catalog/derived.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "proto/catalog/problem_sets.h"
#include "proto/catalog/values.h"

namespace param {
namespace {

constexpr std::size_t kHelpWidth = 100;

// What may be typed for a parameter: "normal|uniform" or "INT 1..1024".
std::string Allowed(const ParamSpec& spec, absl::string_view choice_separator) {
  const auto range = [&spec](absl::string_view word) {
    return absl::StrCat(word, " ", BoundText(spec.min), "..", BoundText(spec.max));
  };
  switch (spec.type) {
    case ParamType::kInt:
      return range("INT");
    case ParamType::kBytes:
      return range("SIZE");
    case ParamType::kFloat:
      return range("NUMBER");
    case ParamType::kDuration:
      return "DURATION";
    case ParamType::kBool:
      return "";
    case ParamType::kChoice:
      return absl::StrJoin(spec.choices, choice_separator);
    case ParamType::kString:
      return "TEXT";
  }
  return "";
}

std::string FallbackText(const ParamSpec& spec) {
  if (spec.fallback.empty()) return "none";
  if (spec.type == ParamType::kBool) return spec.fallback == "true" ? "on" : "off";
  return absl::StrCat(spec.fallback, spec.type == ParamType::kDuration ? "s" : "");
}

// `text` broken into lines of at most kHelpWidth, each after `indent` blanks.
std::string Wrap(absl::string_view text, std::size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (line.size() > indent && line.size() + 1 + word.size() > kHelpWidth) {
      absl::StrAppend(&out, line, "\n");
      line.assign(indent, ' ');
    }
    absl::StrAppend(&line, line.size() > indent ? " " : "", word);
  }
  return absl::StrCat(out, line, "\n");
}

// A switch that is on by default is typed to switch it off.
bool IsOnByDefault(const ParamSpec& spec) {
  return spec.type == ParamType::kBool && spec.fallback == "true";
}

std::string OffFlag(const ParamSpec& spec) {
  return absl::StrCat("--no-", FlagName(spec.name).substr(2));
}

std::string HelpOfParam(const ParamSpec& spec) {
  std::string flag = FlagName(spec.name);
  if (IsOnByDefault(spec)) absl::StrAppend(&flag, ", ", OffFlag(spec));
  const std::string allowed = Allowed(spec, "|");
  if (!allowed.empty()) absl::StrAppend(&flag, " ", allowed);
  return absl::StrCat("  ", flag, "\n",
                      Wrap(absl::StrCat(spec.help, " (default: ", FallbackText(spec), ")"), 6));
}

std::string HelpOfMetric(const MetricSpec& metric) {
  return absl::StrCat("  ", metric.name, " (", metric.unit, ", ",
                      metric.higher_is_better ? "higher" : "lower", " is better)\n",
                      Wrap(metric.help, 6));
}

std::string SetNames(const BenchmarkSpec& bench) {
  return absl::StrJoin(bench.sets, ", ", [](std::string* out, const ProblemSet& set) {
    absl::StrAppend(out, set.name);
  });
}

std::string Cell(absl::string_view text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

std::string ParamRows(absl::Span<const ParamSpec> params) {
  std::string rows = "| flag | values | default | what it is |\n| --- | --- | --- | --- |\n";
  for (const ParamSpec& spec : params) {
    const std::string allowed = Allowed(spec, ", ");
    absl::StrAppend(&rows, "| `", FlagName(spec.name), "`",
                    IsOnByDefault(spec) ? absl::StrCat(", `", OffFlag(spec), "`") : "", " | ",
                    Cell(allowed.empty() ? "switch" : allowed), " | ", Cell(FallbackText(spec)),
                    " | ", Cell(spec.help), " |\n");
  }
  return rows;
}

std::string MetricRows(const BenchmarkSpec& bench) {
  std::string rows = "| metric | unit | better | what it is |\n| --- | --- | --- | --- |\n";
  for (const MetricSpec& metric : bench.metrics) {
    absl::StrAppend(&rows, "| `", metric.name, "` | ", metric.unit, " | ",
                    metric.higher_is_better ? "higher" : "lower", " | ", Cell(metric.help), " |\n");
  }
  return rows;
}

std::string SetRows(const BenchmarkSpec& bench) {
  std::string rows = "| set | cases | names | source |\n| --- | --- | --- | --- |\n";
  for (const ProblemSet& set : bench.sets) {
    const absl::StatusOr<ProblemTable> table = ParseProblemSet(set);
    if (!table.ok()) continue;  // a test holds that every set parses
    absl::StrAppend(&rows, "| `", set.name, "` | ", table->rows.size(), " | ",
                    absl::StrJoin(table->names, ", "), " | ", Cell(table->source), " |\n");
  }
  return rows;
}

}  // namespace

std::string HelpText(const BenchmarkSpec& bench) {
  std::string out = absl::StrCat(bench.id, ": ", bench.summary, "\n\nExamples:\n");
  for (const absl::string_view example : bench.examples) {
    absl::StrAppend(&out, "  paramctl submit ", bench.id, example.empty() ? "" : " ", example,
                    "\n");
  }
  absl::StrAppend(
      &out, "\nParameters (lists A,B and ranges 64:4096:x2 or 1:9:+2 multiply into cases):\n");
  for (const ParamSpec& spec : bench.params) absl::StrAppend(&out, HelpOfParam(spec));
  if (!bench.sets.empty()) {
    absl::StrAppend(&out, "  --set NAME\n",
                    Wrap(absl::StrCat("run a problem set: ", SetNames(bench)), 6));
  }
  absl::StrAppend(&out, "\nMeasuring (the same for every benchmark):\n");
  for (const ParamSpec& spec : MeasureParams()) absl::StrAppend(&out, HelpOfParam(spec));
  absl::StrAppend(&out, "\nMetrics:\n");
  for (const MetricSpec& metric : bench.metrics) absl::StrAppend(&out, HelpOfMetric(metric));
  return out;
}

std::string MarkdownPage(const BenchmarkSpec& bench) {
  std::string out = absl::StrCat("<!-- Generated from proto/catalog/", bench.id,
                                 ".cc; a test compares it. -->\n\n# ", bench.id, "\n\nVersion ",
                                 bench.version, ": ", bench.summary, ".\n\n");
  absl::StrAppend(&out, "```sh\n");
  for (const absl::string_view example : bench.examples) {
    absl::StrAppend(&out, "paramctl submit ", bench.id, example.empty() ? "" : " ", example, "\n");
  }
  absl::StrAppend(&out, "```\n\n", absl::StripAsciiWhitespace(bench.description), "\n\n");
  absl::StrAppend(&out,
                  "## Parameters\n\nEach takes a value, a list `A,B`, or for numbers a range "
                  "`FIRST:LAST:xFACTOR` or\n`FIRST:LAST:+STEP`; they multiply into cases.\n\n",
                  ParamRows(bench.params), "\n");
  absl::StrAppend(&out,
                  "## Measuring\n\nThe same for every benchmark. `mode`, `fill` and `flush_cache` "
                  "belong to a case's identity, the\nothers do not.\n\n",
                  ParamRows(MeasureParams()), "\n");
  absl::StrAppend(&out, "## Metrics\n\n", MetricRows(bench), "\n");
  if (!bench.sets.empty()) {
    absl::StrAppend(&out,
                    "## Problem sets\n\n`--set NAME` runs one; the parameters a set names cannot "
                    "be given beside it. A row is cited as\n`SET/NNN`.\n\n",
                    SetRows(bench), "\n");
  }
  absl::StrAppend(&out, "## In SQL\n\nThe view `result_", bench.id,
                  "` of the coordinator's database has one row per case of a finished job: the\n"
                  "parameters above and the median of each metric over all ranks as columns.\n");
  return out;
}

std::string ResultViewSql(const BenchmarkSpec& bench) {
  std::string sql = absl::StrCat(
      "CREATE VIEW result_", bench.id,
      " AS SELECT j.job_id AS job_id, c.case_index AS case_index, c.case_id AS case_id, "
      "c.status AS status, c.reason AS reason, "
      "strftime('%Y-%m-%dT%H:%M:%SZ', j.finished_ns / 1000000000, 'unixepoch') AS finished, "
      "j.nodes AS nodes, j.ranks AS ranks, j.backend AS backend, "
      "c.set_row AS set_row, c.application AS application");
  for (const ParamSpec* spec : AllParams(bench)) {
    absl::StrAppend(&sql,
                    ",\n  (SELECT p.value FROM case_param p WHERE p.job_id = c.job_id "
                    "AND p.case_index = c.case_index AND p.name = '",
                    spec->name, "') AS \"", spec->name, "\"");
  }
  for (const MetricSpec& metric : bench.metrics) {
    absl::StrAppend(&sql,
                    ",\n  (SELECT m.p50 FROM measurement m WHERE m.job_id = c.job_id "
                    "AND m.attempt = j.attempt AND m.case_index = c.case_index "
                    "AND m.rank = -1 AND m.metric = '",
                    metric.name, "' AND m.labels = '') AS \"", metric.name, "\"");
  }
  absl::StrAppend(&sql,
                  "\nFROM job j JOIN job_case c ON c.job_id = j.job_id\nWHERE j.benchmark = '",
                  bench.id, "' AND j.finished_ns > 0");
  return sql;
}

}  // namespace param
