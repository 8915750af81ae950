#include "proto/base/clock.h"

#include <time.h>

namespace param {
namespace {

absl::Duration Read(clockid_t id) {
  timespec now = {};
  clock_gettime(id, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace

absl::Time SystemClock::Wall() const { return absl::UnixEpoch() + Read(CLOCK_REALTIME); }
absl::Duration SystemClock::Monotonic() const { return Read(CLOCK_MONOTONIC); }

}  // namespace param
