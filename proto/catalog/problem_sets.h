#pragma once
// Inside the catalogue: problem sets, from embedded CSV to rows of parameter texts.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/catalog/spec.h"

namespace param {

// The sets of one benchmark that are compiled in, by file name.
std::vector<ProblemSet> ProblemSetsOf(absl::string_view benchmark_id);

struct ProblemRow {
  std::map<std::string, std::string, std::less<>> params;  // name to text
  std::string application;
};
struct ProblemTable {
  std::vector<std::string> names;  // parameters that every row names
  std::vector<ProblemRow> rows;
  std::string source;  // the # lines, one paragraph
};

// INVALID_ARGUMENT names the line that is wrong. Fields may be quoted as in RFC 4180, without line
// breaks inside.
absl::StatusOr<ProblemTable> ParseProblemSet(const ProblemSet& set);

}  // namespace param
