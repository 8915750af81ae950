#include "agent/core/rank_protocol.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param::agent {
namespace {

constexpr double kLongestSample = 3600;  // s
// The worker's own limit (kMaxSamples of its measuring loop, and --iters at most).
constexpr std::int64_t kMaxValues = 1'000'000;  // per case, metric and labels
constexpr std::size_t kMaxLabelSets = 1024;     // per case

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// A worker's text in a message of ours: short, printable.
std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 64)), "\"");
}

const MetricSpec* FindSampled(const BenchmarkSpec& bench, absl::string_view name) {
  for (const MetricSpec& metric : bench.metrics) {
    if (metric.name == name && metric.derive == nullptr) return &metric;
  }
  return nullptr;
}

}  // namespace

absl::string_view MessageName(const line::FromWorker& message) {
  return std::visit(
      Overloaded{[](const line::Hello&) { return absl::string_view("hello"); },
                 [](const line::PhaseBegin&) { return absl::string_view("phase_begin"); },
                 [](const line::PhaseEnd&) { return absl::string_view("phase_end"); },
                 [](const line::Exchange&) { return absl::string_view("exchange"); },
                 [](const line::CaseBegin&) { return absl::string_view("case_begin"); },
                 [](const line::Samples&) { return absl::string_view("samples"); },
                 [](const line::CaseEnd&) { return absl::string_view("case_end"); },
                 [](const line::Environment&) { return absl::string_view("environment"); },
                 [](const line::Failure&) { return absl::string_view("failure"); },
                 [](const line::LogLine&) { return absl::string_view("log"); },
                 [](const line::Done&) { return absl::string_view("done"); }},
      message);
}

absl::Status RankProtocol::CheckCase(absl::string_view what, std::int64_t index) const {
  if (index < 0 || index >= cases_) {
    return Wrong(what, " of case ", index, "; there are ", cases_);
  }
  return absl::OkStatus();
}

absl::Status RankProtocol::Judge(const line::PhaseBegin& begin) {
  if (begin.phase == line::Phase::kPlace) return Wrong("phase_begin of phase place");
  if (begin.case_index != -1) PARAM_RETURN_IF_ERROR(CheckCase("phase_begin", begin.case_index));
  phase_ = begin.phase;
  if (!open_) case_ = begin.case_index;
  return absl::OkStatus();
}

absl::Status RankProtocol::Judge(const line::PhaseEnd& end) {
  if (end.phase == line::Phase::kPlace) return Wrong("phase_end of phase place");
  if (end.case_index != -1) PARAM_RETURN_IF_ERROR(CheckCase("phase_end", end.case_index));
  return absl::OkStatus();
}

absl::Status RankProtocol::Judge(const line::CaseBegin& begin) {
  PARAM_RETURN_IF_ERROR(CheckCase("case_begin", begin.case_index));
  if (open_) return Wrong("case_begin of case ", begin.case_index, " while ", case_, " is open");
  if (finished_.contains(begin.case_index)) {
    return Wrong("case_begin of case ", begin.case_index, ", which has ended");
  }
  open_ = true;
  case_ = begin.case_index;
  values_.clear();
  return absl::OkStatus();
}

absl::Status RankProtocol::Judge(const line::Samples& samples) {
  PARAM_RETURN_IF_ERROR(CheckCase("samples", samples.case_index));
  if (!open_ || samples.case_index != case_) {
    return Wrong("samples of case ", samples.case_index, ", which is not open");
  }
  const MetricSpec* const metric = FindSampled(*bench_, samples.metric);
  if (metric == nullptr) {
    return Wrong("samples of metric ", Shown(samples.metric), ", which ", bench_->id,
                 " does not have");
  }
  if (samples.unit != metric->unit) {
    return Wrong("samples of ", metric->name, " in ", Shown(samples.unit), " instead of ",
                 metric->unit);
  }
  for (const double value : samples.values) {
    const bool is_time = metric->unit == "s";
    if (std::isfinite(value) && !(is_time && (value <= 0 || value > kLongestSample))) continue;
    return Wrong("a sample of ", metric->name, " of ", FormatDouble(value), " ", metric->unit);
  }
  return Count(samples);
}

absl::Status RankProtocol::Count(const line::Samples& samples) {
  const auto labels = values_.try_emplace(samples.labels).first;
  if (values_.size() > kMaxLabelSets) {
    return Wrong("samples of case ", case_, " under more than ", kMaxLabelSets, " sets of labels");
  }
  std::int64_t& values = labels->second[samples.metric];
  values += static_cast<std::int64_t>(samples.values.size());
  if (values > kMaxValues) {
    return Wrong("more than ", kMaxValues, " samples of ", samples.metric, " of case ", case_);
  }
  return absl::OkStatus();
}

absl::Status RankProtocol::CheckComplete() const {
  for (const MetricSpec& metric : bench_->metrics) {
    if (metric.derive != nullptr || !metric.every_rank) continue;
    const bool has = std::any_of(values_.begin(), values_.end(), [&metric](const auto& labels) {
      const auto values = labels.second.find(std::string(metric.name));
      return values != labels.second.end() && values->second > 0;
    });
    if (!has)
      return Wrong("case_end of case ", case_, " as PASSED without samples of ", metric.name);
  }
  return absl::OkStatus();
}

absl::Status RankProtocol::Judge(const line::CaseEnd& end) {
  PARAM_RETURN_IF_ERROR(CheckCase("case_end", end.case_index));
  if (finished_.contains(end.case_index)) {
    return Wrong("case_end of case ", end.case_index, " twice");
  }
  if (open_ ? end.case_index != case_ : end.status == line::CaseStatus::kPassed) {
    return Wrong("case_end of case ", end.case_index, ", which is not open");
  }
  if (end.status == line::CaseStatus::kPassed) PARAM_RETURN_IF_ERROR(CheckComplete());
  finished_.insert(end.case_index);
  open_ = false;
  case_ = -1;
  return absl::OkStatus();
}

absl::Status RankProtocol::Judge(const line::Failure& failure) {
  if (failure.code.empty() || failure.code == "OK") {
    return Wrong("failure with code ", Shown(failure.code));
  }
  ended_ = true;
  return absl::OkStatus();
}

absl::Status RankProtocol::Judge(const line::Done&) {
  if (open_ && !cancelled_) return Wrong("done while case ", case_, " is open");
  if (!cancelled_ && finished_.size() < static_cast<std::size_t>(cases_)) {
    return Wrong("done after ", finished_.size(), " of ", cases_, " cases");
  }
  phase_ = line::Phase::kTeardown;
  case_ = -1;
  open_ = false;
  ended_ = done_ = true;
  return absl::OkStatus();
}

absl::Status RankProtocol::Check(const line::FromWorker& message) {
  return std::visit(Overloaded{[](const line::Hello&) { return Wrong("hello twice"); },
                               [](const line::Exchange&) { return absl::OkStatus(); },
                               [](const line::LogLine&) { return absl::OkStatus(); },
                               [](const line::Environment&) { return absl::OkStatus(); },
                               [this](const auto& other) { return Judge(other); }},
                    message);
}

}  // namespace param::agent
