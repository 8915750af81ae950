#include "client/output/convention.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/output/case_view.h"
#include "client/output/convention_tools.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"
#include "proto/convert/names.h"
#include "proto/convert/values.h"

namespace param {
namespace {

const ToolConvention& ToolOf(Convention convention) {
  switch (convention) {
    case Convention::kParam:
      return ParamConvention();
    case Convention::kNcclTests:
      return NcclTestsConvention();
    case Convention::kOsu:
      break;
  }
  return OsuConvention();
}

constexpr Convention kAll[] = {Convention::kParam, Convention::kNcclTests, Convention::kOsu};

template <typename Map>
std::string Keys(const Map& map) {
  return absl::StrJoin(map, ", ", [](std::string* out, const auto& entry) {
    if constexpr (std::is_enum_v<typename Map::key_type>) {
      absl::StrAppend(out, CollectiveOpName(entry.first));
    } else {
      absl::StrAppend(out, entry.first);
    }
  });
}

absl::Status CannotSay(const ToolConvention& tool, absl::string_view what, absl::string_view value,
                       const std::string& has) {
  return absl::InvalidArgumentError(absl::StrCat("--convention ", tool.name, ": it has no ", what,
                                                 " \"", value, "\"; it has ", has));
}

absl::Status CheckCase(const ToolConvention& tool, const CollectiveView& view) {
  if (tool.ops.count(view.op) == 0) {
    return CannotSay(tool, "operation", CollectiveOpName(view.op), Keys(tool.ops));
  }
  if (tool.dtypes.count(view.dtype) == 0) {
    return CannotSay(tool, "type", view.dtype, Keys(tool.dtypes));
  }
  if (Reduces(view.op) &&
      std::find(tool.redops.begin(), tool.redops.end(), view.redop) == tool.redops.end()) {
    return CannotSay(tool, "reduction", view.redop, absl::StrJoin(tool.redops, ", "));
  }
  return absl::OkStatus();
}

// Two cases that differ only in a parameter without a column would be two equal rows.
absl::Status CheckColumns(const ToolConvention& tool, const CaseList& cases) {
  for (const v1::CaseResult* result : cases) {
    for (const auto& [name, value] : result->params()) {
      if (std::find(tool.columns.begin(), tool.columns.end(), name) != tool.columns.end()) continue;
      const auto first = cases.front()->params().find(name);
      if (first != cases.front()->params().end() &&
          first->second.SerializeAsString() == value.SerializeAsString()) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "--convention ", tool.name, ": the cases differ in \"", name,
          "\", for which its table has no column; ask for one value, or use another output"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> ConventionNames() {
  std::vector<std::string> names;
  for (const Convention one : kAll) names.emplace_back(ToolOf(one).name);
  return names;
}

absl::StatusOr<Convention> ConventionFromName(absl::string_view name) {
  for (const Convention one : kAll) {
    if (ToolOf(one).name == name) return one;
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is not one of ",
                                                 absl::StrJoin(ConventionNames(), ", "),
                                                 DidYouMean(name, ConventionNames())));
}

absl::Status CheckConvention(Convention convention, absl::string_view benchmark,
                             const CaseList& cases) {
  const ToolConvention& tool = ToolOf(convention);
  if (benchmark != kCollective) {
    return absl::InvalidArgumentError(absl::StrCat("--convention ", tool.name,
                                                   " is for benchmark \"", kCollective,
                                                   "\", not for \"", benchmark, "\""));
  }
  for (const v1::CaseResult* result : cases) {
    PARAM_ASSIGN_OR_RETURN(const CollectiveView view, ViewCollective(*result), "case ",
                           result->case_index());
    PARAM_RETURN_IF_ERROR(CheckCase(tool, view));
  }
  return CheckColumns(tool, cases);
}

absl::StatusOr<ConventionText> RenderConvention(Convention convention,
                                                const v1::GetJobResponse& response, bool full) {
  const ToolConvention& tool = ToolOf(convention);
  PARAM_RETURN_IF_ERROR(
      CheckConvention(convention, response.job().spec().benchmark(), ListCases(response)));
  PARAM_ASSIGN_OR_RETURN(const std::vector<CollectiveView> views, ViewCollectives(response));
  ConventionText out;
  tool.render(tool, response, views, full, &out);
  return out;
}

std::string LeftOut(const CollectiveView& view) {
  const std::string status = WireCaseStatusName(view.result->status());
  return absl::StrCat("no row for case ", view.result->case_index(), " (",
                      CollectiveOpName(view.op), ", ", FormatBytes(view.size),
                      "): ", status.empty() ? "not run" : status,
                      view.result->reason().empty() ? "" : ": ", view.result->reason());
}

std::vector<std::vector<CollectiveView>> GroupBy(
    const std::vector<CollectiveView>& views,
    const std::function<std::string(const CollectiveView&)>& key) {
  std::vector<std::vector<CollectiveView>> groups;
  std::map<std::string, std::size_t> index;
  for (const CollectiveView& view : views) {
    const auto [it, fresh] = index.emplace(key(view), groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].push_back(view);
  }
  return groups;
}

}  // namespace param
