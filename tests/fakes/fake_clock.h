#pragma once
// A clock that tests advance by hand.

#include "absl/time/time.h"
#include "proto/base/clock.h"

namespace param {

class FakeClock final : public Clock {
 public:
  absl::Time Wall() const override { return start_ + elapsed_; }
  absl::Duration Monotonic() const override { return elapsed_; }
  void Advance(absl::Duration step) { elapsed_ += step; }

 private:
  absl::Time start_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration elapsed_;
};

}  // namespace param
