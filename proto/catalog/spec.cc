#include "proto/catalog/spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/text.h"
#include "proto/catalog/values.h"

namespace param {

absl::StatusOr<const BenchmarkSpec*> FindBenchmark(absl::string_view id) {
  std::vector<std::string> ids;
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    if (bench->id == id) return bench;
    ids.emplace_back(bench->id);
  }
  return absl::NotFoundError(absl::StrCat("no benchmark ", Quoted(id), DidYouMean(id, ids)));
}

std::vector<const ParamSpec*> AllParams(const BenchmarkSpec& bench) {
  std::vector<const ParamSpec*> all;
  for (const ParamSpec& spec : bench.params) all.push_back(&spec);
  for (const ParamSpec& spec : MeasureParams()) all.push_back(&spec);
  return all;
}

std::string FlagName(absl::string_view param_name) {
  return absl::StrCat("--", absl::StrReplaceAll(param_name, {{"_", "-"}}));
}

}  // namespace param
