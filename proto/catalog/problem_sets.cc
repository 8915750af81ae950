#include "proto/catalog/problem_sets.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "proto/base/embedded_file.h"

namespace param {

absl::Span<const EmbeddedFile> ProblemSetFiles();  // generated from proto/catalog/sets

namespace {

// The fields of one line; false when a quote is left open.
bool SplitFields(absl::string_view line, std::vector<std::string>* fields) {
  fields->assign(1, "");
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) {
        fields->back().push_back('"');
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields->emplace_back();
    } else {
      fields->back().push_back(c);
    }
  }
  return !quoted;
}

}  // namespace

std::vector<ProblemSet> ProblemSetsOf(absl::string_view benchmark_id) {
  const std::string folder = absl::StrCat("proto/catalog/sets/", benchmark_id, "/");
  std::vector<ProblemSet> sets;
  for (const EmbeddedFile& file : ProblemSetFiles()) {
    if (absl::StartsWith(file.path, folder)) {
      sets.push_back({absl::StripSuffix(file.name, ".csv"), file.text});
    }
  }
  return sets;
}

absl::StatusOr<ProblemTable> ParseProblemSet(const ProblemSet& set) {
  ProblemTable table;
  std::vector<std::string> header;
  std::vector<std::string> fields;
  int line_number = 0;
  for (const absl::string_view line : absl::StrSplit(set.csv, '\n')) {
    ++line_number;
    if (line.empty()) continue;
    if (line[0] == '#') {
      const absl::string_view note = absl::StripPrefix(absl::StripPrefix(line, "#"), " ");
      absl::StrAppend(&table.source, table.source.empty() ? "" : " ", note);
      continue;
    }
    if (!SplitFields(line, &fields) || (!header.empty() && fields.size() != header.size())) {
      return absl::InvalidArgumentError(absl::StrCat("problem set ", set.name, " line ",
                                                     line_number, ": does not fit its header"));
    }
    if (header.empty()) {
      header = fields;
      for (const std::string& name : header) {
        if (name != "application") table.names.push_back(name);
      }
      continue;
    }
    ProblemRow row;
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (header[i] == "application") {
        row.application = fields[i];
      } else {
        row.params[header[i]] = fields[i];
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace param
