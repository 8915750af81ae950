#pragma once
// Time comes in from outside, so that tests drive it.

#include "absl/time/time.h"

namespace param {

// Thread safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Wall() const = 0;           // for records only
  virtual absl::Duration Monotonic() const = 0;  // for leases, deadlines, measurements
};

// The machine's clocks (CLOCK_REALTIME and CLOCK_MONOTONIC).
class SystemClock final : public Clock {
 public:
  absl::Time Wall() const override;
  absl::Duration Monotonic() const override;
};

}  // namespace param
