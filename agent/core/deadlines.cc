#include "agent/core/deadlines.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/text.h"

namespace param::agent {
namespace {

constexpr line::Phase kPhases[] = {
    line::Phase::kPlace,  line::Phase::kSpawn,  line::Phase::kRendezvous, line::Phase::kCommInit,
    line::Phase::kVerify, line::Phase::kWarmup, line::Phase::kTimed,      line::Phase::kTeardown};

absl::Duration Default(line::Phase phase) {
  switch (phase) {
    case line::Phase::kPlace:
    case line::Phase::kSpawn:
    case line::Phase::kTeardown:
      return absl::Seconds(30);
    case line::Phase::kRendezvous:
      return absl::Seconds(60);
    case line::Phase::kCommInit:
      return absl::Seconds(120);
    case line::Phase::kVerify:
    case line::Phase::kWarmup:
    case line::Phase::kTimed:
      return absl::Seconds(300);
  }
  return absl::Seconds(300);
}

}  // namespace

PhaseDeadlines::PhaseDeadlines(const std::map<std::string, std::int64_t>& given) {
  for (const auto& [name, ns] : given) {
    const absl::StatusOr<line::Phase> phase = line::PhaseFromName(name);
    if (phase.ok() && ns > 0) given_[*phase] = absl::Nanoseconds(ns);
  }
}

absl::Duration PhaseDeadlines::Of(line::Phase phase) const {
  const auto found = given_.find(phase);
  return found == given_.end() ? Default(phase) : found->second;
}

absl::Duration PhaseDeadlines::Longest() const {
  absl::Duration longest;
  for (const line::Phase phase : kPhases) longest = std::max(longest, Of(phase));
  return longest;
}

std::string DurationText(absl::Duration duration) {
  if (duration < absl::Seconds(1)) {
    return absl::StrCat(FormatDouble(absl::ToDoubleMilliseconds(duration)), " ms");
  }
  return absl::StrCat(FormatDouble(absl::ToDoubleSeconds(duration)), " s");
}

}  // namespace param::agent
