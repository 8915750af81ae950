#pragma once
// How long a rank may stay silent in each phase.

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/line/messages.h"

namespace param::agent {

class PhaseDeadlines {
 public:
  PhaseDeadlines() = default;
  // `given` by phase name, in ns; what is missing, unknown or not positive keeps its default.
  explicit PhaseDeadlines(const std::map<std::string, std::int64_t>& given);

  absl::Duration Of(line::Phase phase) const;
  absl::Duration Longest() const;

 private:
  std::map<line::Phase, absl::Duration> given_;
};

// "5 s", "1.5 s", "250 ms": a deadline as people read it.
std::string DurationText(absl::Duration duration);

}  // namespace param::agent
