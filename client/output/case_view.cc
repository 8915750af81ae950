#include "client/output/case_view.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"
#include "proto/convert/values.h"

namespace param {
namespace {

constexpr std::size_t kAlwaysShown = 3;

// The value's text; "" when the case does not have it.
std::string ValueOf(const v1::CaseResult& result, absl::string_view name) {
  const auto it = result.params().find(std::string(name));
  if (it == result.params().end()) return "";
  const absl::StatusOr<Value> value = ValueFromProto(it->second);
  return value.ok() ? ValueText(*value) : "";
}

const ParamSpec* FindParam(const BenchmarkSpec* bench, absl::string_view name) {
  if (bench == nullptr) return nullptr;
  for (const ParamSpec* spec : AllParams(*bench)) {
    if (spec->name == name) return spec;
  }
  return nullptr;
}

bool IsDefault(const ParamSpec& spec, const std::string& text) {
  const absl::StatusOr<std::vector<Value>> values = ParseValues(spec, spec.fallback);
  return values.ok() && !values->empty() && ValueText(values->front()) == text;
}

bool Differs(const std::vector<const v1::CaseResult*>& cases, absl::string_view name) {
  for (const v1::CaseResult* result : cases) {
    if (ValueOf(*result, name) != ValueOf(*cases.front(), name)) return true;
  }
  return false;
}

// Without a descriptor: all that differ, or all when nothing does.
std::vector<std::string> ShownWithoutSpec(const std::vector<const v1::CaseResult*>& cases) {
  std::set<std::string> names;
  for (const v1::CaseResult* result : cases) {
    for (const auto& [name, value] : result->params()) names.insert(name);
  }
  std::vector<std::string> differing;
  for (const std::string& name : names) {
    if (Differs(cases, name)) differing.push_back(name);
  }
  return differing.empty() ? std::vector<std::string>(names.begin(), names.end()) : differing;
}

// Of each node that has one: its slowest rank's median time.
std::map<std::string, double> NodeTimes(const v1::CaseResult& result) {
  std::map<std::string, double> times;
  for (const v1::RankStatus& rank : result.ranks()) {
    const v1::Summary* time = FindSummary(result, "time", rank.rank());
    if (time == nullptr || !(time->p50() > 0)) continue;
    double& slowest = times[rank.node()];
    slowest = std::max(slowest, time->p50());
  }
  return times;
}

}  // namespace

const BenchmarkSpec* SpecOf(absl::string_view benchmark) {
  const absl::StatusOr<const BenchmarkSpec*> bench = FindBenchmark(benchmark);
  return bench.ok() ? *bench : nullptr;
}

const v1::Summary* FindSummary(const v1::CaseResult& result, absl::string_view metric, int rank) {
  for (const v1::Measurement& measurement : result.measurements()) {
    if (measurement.rank() == rank && measurement.labels().empty() &&
        measurement.metric() == metric) {
      return &measurement.summary();
    }
  }
  return nullptr;
}

std::vector<std::string> ShownParams(const BenchmarkSpec* bench,
                                     const std::vector<const v1::CaseResult*>& cases) {
  if (cases.empty()) return {};
  if (bench == nullptr) return ShownWithoutSpec(cases);
  std::vector<std::string> shown;
  std::size_t position = 0;
  bool choice_shown = false;
  for (const ParamSpec* spec : AllParams(*bench)) {
    const bool identity = spec->role != ParamRole::kMeasure;
    bool wanted = spec->role == ParamRole::kCase && position++ < kAlwaysShown;
    if (spec->role == ParamRole::kCase && spec->type == ParamType::kChoice && !choice_shown) {
      wanted = choice_shown = true;
    }
    const std::string first = ValueOf(*cases.front(), spec->name);
    if (wanted || (identity && !first.empty() && !IsDefault(*spec, first)) ||
        Differs(cases, spec->name)) {
      shown.emplace_back(spec->name);
    }
  }
  return shown;
}

std::string ParamText(const BenchmarkSpec* bench, const v1::CaseResult& result,
                      absl::string_view name) {
  std::string text = ValueOf(result, name);
  if (text.empty()) return "-";
  const ParamSpec* spec = FindParam(bench, name);
  if (spec == nullptr) return text;
  const v1::ParamValue& value = result.params().at(std::string(name));
  if (spec->type == ParamType::kBytes) return FormatBytes(value.integer());
  if (spec->type == ParamType::kDuration) return FormatSi(value.number(), "s");
  return text;
}

std::vector<const MetricSpec*> RateMetrics(const BenchmarkSpec* bench) {
  std::vector<const MetricSpec*> rates;
  if (bench == nullptr) return rates;
  for (const MetricSpec& metric : bench->metrics) {
    if (metric.higher_is_better && absl::EndsWith(metric.unit, "/s")) rates.push_back(&metric);
  }
  return rates;
}

const MetricSpec* RateMetric(const BenchmarkSpec* bench) {
  const std::vector<const MetricSpec*> rates = RateMetrics(bench);
  return rates.empty() ? nullptr : rates.front();
}

std::vector<NodeTime> CompareNodes(const v1::Job& job,
                                   const std::vector<const v1::CaseResult*>& cases) {
  std::map<std::string, std::vector<double>> ratios;
  std::map<std::string, int> ranks;
  std::map<std::string, double> only_time;
  int timed_cases = 0;
  for (const v1::CaseResult* result : cases) {
    const std::map<std::string, double> times = NodeTimes(*result);
    if (times.size() < 2) continue;
    ++timed_cases;
    std::vector<double> values;
    values.reserve(times.size());
    for (const auto& [node, time] : times) values.push_back(time);
    const double median = MedianOf(values);
    for (const auto& [node, time] : times) ratios[node].push_back(time / median);
    only_time = times;
    std::map<std::string, int> count;
    for (const v1::RankStatus& rank : result->ranks()) ++count[rank.node()];
    ranks = count;
  }
  std::vector<NodeTime> out;
  NodeTime* slowest = nullptr;
  for (const std::string& node : job.nodes()) {
    const auto it = ratios.find(node);
    if (it == ratios.end()) continue;
    const double time =
        timed_cases == 1 ? only_time[node] : std::numeric_limits<double>::quiet_NaN();
    out.push_back({node, ranks[node], time, MedianOf(it->second), false});
  }
  for (NodeTime& node : out) {
    if (slowest == nullptr || node.ratio > slowest->ratio) slowest = &node;
  }
  if (out.size() < 2 || slowest == nullptr) return {};
  slowest->slowest = true;
  return out;
}

std::optional<SlowRank> SlowestOf(const v1::CaseResult& result) {
  std::vector<double> times;
  const v1::RankStatus* slowest = nullptr;
  double longest = 0;
  for (const v1::RankStatus& rank : result.ranks()) {
    const v1::Summary* time = FindSummary(result, "time", rank.rank());
    if (time == nullptr || !(time->p50() > 0)) continue;
    times.push_back(time->p50());
    if (time->p50() > longest) {
      longest = time->p50();
      slowest = &rank;
    }
  }
  if (times.size() < 2 || slowest == nullptr) return std::nullopt;
  return SlowRank{slowest->node(), slowest->rank(), longest / MedianOf(times)};
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace param
