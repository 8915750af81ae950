#pragma once
// What is derived from a descriptor: help, documentation, the readable SQL view.

#include <string>

#include "proto/catalog/spec.h"

namespace param {

// `paramctl bench show ID` and `paramctl submit ID --help`: examples first.
std::string HelpText(const BenchmarkSpec& bench);

// client/docs/benchmarks/ID.md, compared by a test.
std::string MarkdownPage(const BenchmarkSpec& bench);

// "CREATE VIEW result_ID AS ...": one row per case of a finished job with its parameters and the
// median of each metric as columns. Remade by the store at start.
std::string ResultViewSql(const BenchmarkSpec& bench);

}  // namespace param
