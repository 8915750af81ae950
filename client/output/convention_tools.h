#pragma once
// Inside client/output: one tool per file, joined by convention.cc.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/output/convention.h"

namespace param {

// What a tool can say, and how.
struct ToolConvention {
  absl::string_view name;
  // Its names of operations and types; what is missing it does not have.
  std::map<CollectiveOp, absl::string_view> ops;
  std::map<absl::string_view, absl::string_view> dtypes;
  std::vector<absl::string_view> redops;   // of operations that reduce
  std::vector<absl::string_view> columns;  // parameters in which the cases of a table may differ
  void (*render)(const ToolConvention& tool, const v1::GetJobResponse& response,
                 const std::vector<CollectiveView>& views, bool full, ConventionText* out);
};

const ToolConvention& ParamConvention();
const ToolConvention& NcclTestsConvention();
const ToolConvention& OsuConvention();

// "case 3 (all_gather, 8 B): SKIPPED: reason".
std::string LeftOut(const CollectiveView& view);

// The views of one operation or type after another, in the order they come first.
std::vector<std::vector<CollectiveView>> GroupBy(
    const std::vector<CollectiveView>& views,
    const std::function<std::string(const CollectiveView&)>& key);

}  // namespace param
