#pragma once
// How much of a rank's log is passed on, so that a flood costs neither disk nor wire.

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace param::agent {

struct LogLimits {
  double lines_per_second = 200;
  double burst_lines = 200;
  std::int64_t max_lines = 1000;  // of one rank, all in all
  std::int64_t max_bytes = 256 << 10;
  std::size_t max_line_bytes = 4096;  // longer ones are cut
};

// A token bucket with totals. Not thread safe.
class LogBudget {
 public:
  explicit LogBudget(LogLimits limits) : limits_(limits), tokens_(limits.burst_lines) {}

  // True: pass the line on. False: it is counted as dropped.
  bool Take(absl::Duration now, std::size_t bytes);
  // Lines dropped since the last call, for the marker.
  std::int64_t TakeDropped();
  bool exhausted() const { return lines_ >= limits_.max_lines || bytes_ >= limits_.max_bytes; }
  const LogLimits& limits() const { return limits_; }

 private:
  const LogLimits limits_;
  double tokens_;
  absl::Duration last_;
  std::int64_t lines_ = 0, bytes_ = 0, dropped_ = 0;
};

}  // namespace param::agent
