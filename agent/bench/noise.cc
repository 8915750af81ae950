#include "agent/bench/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace param {

void NoiseTracker::Add(double sample) {
  ++count_;
  const double from_old = sample - mean_;
  mean_ += from_old / static_cast<double>(count_);
  squares_ += from_old * (sample - mean_);
  if (count_ < kMinSamples) return;
  const double now = noise();
  if (std::isfinite(now)) window_[estimates_++ % kWindow] = now;
}

double NoiseTracker::noise() const {
  if (count_ < kMinSamples || !(mean_ > 0)) return std::numeric_limits<double>::infinity();
  return std::sqrt(squares_ / static_cast<double>(count_ - 1)) / mean_;
}

bool NoiseTracker::settled() const {
  if (estimates_ <= kMinEstimates) return false;
  const std::size_t used = std::min(estimates_, kWindow);
  double mean = 0;
  for (std::size_t i = 0; i < used; ++i) mean += window_[i];
  mean /= static_cast<double>(used);
  double squares = 0;
  for (std::size_t i = 0; i < used; ++i) squares += (window_[i] - mean) * (window_[i] - mean);
  return std::sqrt(squares / static_cast<double>(used - 1)) <= kSettledBelow * mean;
}

}  // namespace param
