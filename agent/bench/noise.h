#pragma once
// Running estimate of the noise of a series of samples, and whether it has settled.

#include <array>
#include <cstdint>

namespace param {

// Relative standard deviation of all samples so far, by Welford's recurrence, and a window of its
// last values: when they hardly vary, more samples will not lower the noise (the rule of nvbench).
class NoiseTracker {
 public:
  // Samples before a relative stdev means anything.
  static constexpr std::int64_t kMinSamples = 10;

  void Add(double sample);

  std::int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Relative standard deviation (n - 1); infinity below kMinSamples or when the mean is not > 0.
  double noise() const;
  // More than 64 estimates of the noise, whose own relative stdev over the last 512 is below 5 %.
  bool settled() const;

 private:
  static constexpr std::size_t kWindow = 512;
  static constexpr std::size_t kMinEstimates = 64;
  static constexpr double kSettledBelow = 0.05;

  std::int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // sum of squared deviations
  std::array<double, kWindow> window_ = {};
  std::size_t estimates_ = 0;
};

}  // namespace param
