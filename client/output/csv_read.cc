#include "client/output/csv_read.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/output/case_view.h"
#include "proto/base/status.h"
#include "proto/catalog/cases.h"
#include "proto/convert/names.h"
#include "proto/convert/values.h"

namespace param {
namespace {

struct Row {
  std::size_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// RFC 4180; LF or CRLF between rows.
absl::StatusOr<std::vector<Row>> Rows(absl::string_view text) {
  std::vector<Row> rows;
  std::size_t line = 1, at = 0;
  while (at < text.size()) {
    Row row{line, {""}};
    bool quoted = false;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '\n') ++line;
      if (quoted) {
        if (c != '"') {
          row.fields.back() += c;
        } else if (at + 1 < text.size() && text[at + 1] == '"') {
          row.fields.back() += text[++at];
        } else {
          quoted = false;
        }
      } else if (c == '"' && row.fields.back().empty()) {
        quoted = true;
      } else if (c == ',') {
        row.fields.emplace_back();
      } else if (c == '\n') {
        ++at;
        break;
      } else if (c != '\r') {
        row.fields.back() += c;
      }
    }
    if (quoted) {
      return absl::InvalidArgumentError(absl::StrCat("line ", row.line, ": a quote is not closed"));
    }
    if (row.fields.size() > 1 || !row.fields.front().empty()) rows.push_back(std::move(row));
  }
  return rows;
}

// Columns by key, with the unit that the header names: "time_p50 (s)".
class Header {
 public:
  explicit Header(const std::vector<std::string>& titles) {
    for (std::size_t i = 0; i < titles.size(); ++i) {
      const std::vector<std::string> parts = absl::StrSplit(titles[i], absl::MaxSplits(" (", 1));
      std::string unit = parts.size() > 1 ? parts[1] : "";
      if (absl::EndsWith(unit, ")")) unit.pop_back();
      columns_[parts[0]] = {i, unit};
    }
  }
  bool Has(const std::string& key) const { return columns_.count(key) > 0; }
  std::string Unit(const std::string& key) const {
    const auto it = columns_.find(key);
    return it == columns_.end() ? "" : it->second.second;
  }
  // "" for a column that is not there.
  std::string Text(const Row& row, const std::string& key) const {
    const auto it = columns_.find(key);
    return it == columns_.end() ? "" : row.fields[it->second.first];
  }
  absl::StatusOr<std::int64_t> Int(const Row& row, const std::string& key) const {
    std::int64_t value = 0;
    const std::string text = Text(row, key);
    if (absl::SimpleAtoi(text, &value)) return value;
    return absl::InvalidArgumentError(absl::StrCat(key, " \"", text, "\" is no whole number"));
  }
  // NaN for an empty field.
  absl::StatusOr<double> Number(const Row& row, const std::string& key) const {
    double value = std::numeric_limits<double>::quiet_NaN();
    const std::string text = Text(row, key);
    if (text.empty() || absl::SimpleAtod(text, &value)) return value;
    return absl::InvalidArgumentError(absl::StrCat(key, " \"", text, "\" is no number"));
  }
  // "time" for every "time_n" that has a "time_p50".
  std::vector<std::string> Metrics() const {
    std::vector<std::string> metrics;
    for (const auto& [key, column] : columns_) {
      if (!absl::EndsWith(key, "_n")) continue;
      std::string metric = key.substr(0, key.size() - 2);
      if (Has(absl::StrCat(metric, "_p50"))) metrics.push_back(std::move(metric));
    }
    return metrics;
  }

 private:
  std::map<std::string, std::pair<std::size_t, std::string>> columns_;
};

absl::Status ReadMetric(const Header& header, const Row& row, const std::string& metric,
                        v1::CaseResult* out) {
  if (header.Text(row, absl::StrCat(metric, "_n")).empty()) return absl::OkStatus();
  v1::Measurement* m = out->add_measurements();
  m->set_rank(-1);
  m->set_metric(metric);
  m->set_unit(header.Unit(absl::StrCat(metric, "_p50")));
  v1::Summary* summary = m->mutable_summary();
  PARAM_ASSIGN_OR_RETURN(const std::int64_t n, header.Int(row, absl::StrCat(metric, "_n")));
  summary->set_n(n);
  summary->set_slowest_rank(-1);
  const std::pair<const char*, void (v1::Summary::*)(double)> statistics[] = {
      {"min", &v1::Summary::set_min},           {"p50", &v1::Summary::set_p50},
      {"p75", &v1::Summary::set_p75},           {"p95", &v1::Summary::set_p95},
      {"p99", &v1::Summary::set_p99},           {"max", &v1::Summary::set_max},
      {"mean", &v1::Summary::set_mean},         {"stdev", &v1::Summary::set_stdev},
      {"ci95_low", &v1::Summary::set_ci95_low}, {"ci95_high", &v1::Summary::set_ci95_high}};
  for (const auto& [name, set] : statistics) {
    PARAM_ASSIGN_OR_RETURN(const double value, header.Number(row, absl::StrCat(metric, "_", name)));
    (summary->*set)(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::CaseResult> ReadCase(const Header& header, const Row& row) {
  v1::CaseResult out;
  out.set_case_id(header.Text(row, "case"));
  PARAM_ASSIGN_OR_RETURN(const std::int64_t index, header.Int(row, "case_index"));
  out.set_case_index(static_cast<int>(index));
  out.set_set_row(header.Text(row, "set_row"));
  out.set_application(header.Text(row, "application"));
  out.set_reason(header.Text(row, "reason"));
  if (const std::string status = header.Text(row, "status"); !status.empty()) {
    PARAM_ASSIGN_OR_RETURN(const v1::CaseStatus known, WireCaseStatusFromName(status));
    out.set_status(known);
  }
  const BenchmarkSpec* bench = SpecOf(header.Text(row, "benchmark"));
  for (const ParamSpec* spec :
       bench == nullptr ? std::vector<const ParamSpec*>() : AllParams(*bench)) {
    const std::string name(spec->name), text = header.Text(row, name);
    if (!header.Has(name) || text.empty()) continue;
    PARAM_ASSIGN_OR_RETURN(const std::vector<Value> values, ParseValues(*spec, text));
    (*out.mutable_params())[name] = ValueToProto(values.front());
  }
  for (const std::string& metric : header.Metrics()) {
    PARAM_RETURN_IF_ERROR(ReadMetric(header, row, metric, &out));
  }
  return out;
}

// "collective:v1:size=8" -> 1; 0 for an identity of another shape.
int VersionOf(const std::string& case_id) {
  const std::vector<std::string> parts = absl::StrSplit(case_id, absl::MaxSplits(':', 2));
  int version = 0;
  if (parts.size() != 3 || !absl::StartsWith(parts[1], "v")) return 0;
  return absl::SimpleAtoi(parts[1].substr(1), &version) ? version : 0;
}

absl::Status ReadJob(const Header& header, const Row& row, v1::Job* out) {
  out->set_job_id(header.Text(row, "job_id"));
  out->mutable_spec()->set_benchmark(header.Text(row, "benchmark"));
  out->set_benchmark_version(VersionOf(header.Text(row, "case")));
  out->set_backend(header.Text(row, "backend"));
  for (const std::string& node : std::vector<std::string>(
           absl::StrSplit(header.Text(row, "nodes"), ';', absl::SkipEmpty()))) {
    out->add_nodes(node);
  }
  PARAM_ASSIGN_OR_RETURN(const std::int64_t ranks, header.Int(row, "ranks"));
  out->set_ranks(static_cast<int>(ranks));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::GetJobResponse> ReadCaseCsv(absl::string_view text) {
  PARAM_ASSIGN_OR_RETURN(const std::vector<Row> rows, Rows(text));
  if (rows.empty()) return absl::InvalidArgumentError("it has no header");
  const Header header(rows.front().fields);
  for (const char* key :
       {"job_id", "benchmark", "ranks", "case_index", "case", "status", "time_n", "time_p50"}) {
    if (!header.Has(key)) {
      return absl::InvalidArgumentError(
          absl::StrCat("its header has no \"", key, "\": these are no cases of a job"));
    }
  }
  v1::GetJobResponse out;
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) {
    const std::string where = absl::StrCat("line ", row->line);
    if (row->fields.size() != rows.front().fields.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": ", row->fields.size(), " fields, the header has ", rows.front().fields.size()));
    }
    if (out.cases().empty()) {
      PARAM_RETURN_IF_ERROR(ReadJob(header, *row, out.mutable_job()), where);
    } else if (header.Text(*row, "job_id") != out.job().job_id()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": another job than ", out.job().job_id()));
    }
    PARAM_ASSIGN_OR_RETURN(*out.add_cases(), ReadCase(header, *row), where);
  }
  out.mutable_job()->set_cases_total(out.cases_size());
  out.mutable_job()->set_cases_done(out.cases_size());
  return out;
}

}  // namespace param
