#include "agent/core/log_budget.h"

#include <algorithm>
#include <utility>

namespace param::agent {

bool LogBudget::Take(absl::Duration now, std::size_t bytes) {
  const double elapsed = std::max(0.0, absl::ToDoubleSeconds(now - last_));
  tokens_ = std::min(limits_.burst_lines, tokens_ + elapsed * limits_.lines_per_second);
  last_ = now;
  if (exhausted() || tokens_ < 1) {
    ++dropped_;
    return false;
  }
  tokens_ -= 1;
  ++lines_;
  bytes_ += static_cast<std::int64_t>(bytes);
  return true;
}

std::int64_t LogBudget::TakeDropped() { return std::exchange(dropped_, 0); }

}  // namespace param::agent
