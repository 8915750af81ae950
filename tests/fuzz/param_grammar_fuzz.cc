// What a user may type: "name=text" per line is a job; the text alone is tried for every parameter.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"
#include "proto/catalog/derived.h"
#include "proto/catalog/spec.h"

namespace {

using param::Case;
using param::ParamSpec;
using param::Value;

void Expect(bool holds) {
  if (!holds) std::abort();
}

void ParseAsEveryParameter(const param::BenchmarkSpec& bench, absl::string_view text) {
  for (const ParamSpec* spec : param::AllParams(bench)) {
    const auto values = param::ParseValues(*spec, text);
    if (!values.ok()) {
      Expect(values.status().message().size() < 1000);
      continue;
    }
    Expect(!values->empty() && values->size() <= param::kMaxCases);
    const Value& first = values->front();
    if (spec->type == param::ParamType::kString && spec->role != param::ParamRole::kMeasure)
      continue;
    const auto again = param::ParseValues(*spec, param::ValueText(first));
    Expect(again.ok() && again->size() == 1 && again->front() == first);
  }
}

void ExpandAsJob(const param::BenchmarkSpec& bench, absl::string_view text) {
  param::GivenParams given;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
    given[parts[0]] = parts.size() > 1 ? parts[1] : "";
  }
  const auto cases = param::ExpandCases(bench, given);
  if (!cases.ok()) return;
  Expect(!cases->empty() && cases->size() <= param::kMaxCases);
  for (std::size_t i = 0; i < cases->size() && i < 3; ++i) {
    const Case& one = (*cases)[i];
    Expect(param::CaseId(bench, one.params) == one.id);
    Expect(!param::ReproLine(bench, one.params, 1, 1, "cpu").empty());
    const auto footprint = bench.footprint(one.params, 1);
    Expect(!footprint.ok() || (footprint->host_bytes >= 0 && footprint->device_bytes >= 0));
    param::MeasureOptionsOf(one.params);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // No command line is longer; what is slow in proportion would only waste the fuzzer's time.
  const absl::string_view text(reinterpret_cast<const char*>(data), size < 65536 ? size : 65536);
  for (const param::BenchmarkSpec* bench : param::AllBenchmarks()) {
    ParseAsEveryParameter(*bench, text);
    ExpandAsJob(*bench, text);
  }
  if (const auto injection = param::ParseInjection(text); injection.ok()) {
    Expect(injection->rank >= 0 && injection->index >= 0);
  }
  if (const auto duration = param::ParseDuration(text); duration.ok()) {
    Expect(*duration >= absl::ZeroDuration() && *duration < absl::InfiniteDuration());
  }
  param::NearestName(text, {"gemm", "all_reduce"});
  return 0;
}
