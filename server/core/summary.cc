#include "server/core/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace param {

double Percentile(absl::Span<const double> sorted, double q) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * part;
}

Summary Summarise(std::vector<double> samples) {
  Summary s;
  s.n = static_cast<std::int64_t>(samples.size());
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  s.min = samples.front();
  s.max = samples.back();
  s.p50 = Percentile(samples, 0.50);
  s.p75 = Percentile(samples, 0.75);
  s.p95 = Percentile(samples, 0.95);
  s.p99 = Percentile(samples, 0.99);
  const double n = static_cast<double>(samples.size());
  double sum = 0;
  for (const double x : samples) sum += x;
  s.mean = sum / n;
  double squares = 0;
  for (const double x : samples) squares += (x - s.mean) * (x - s.mean);
  s.stdev = samples.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  if (samples.size() < 6) {
    s.ci95_low = s.min;
    s.ci95_high = s.max;
  } else {
    const double half = 1.96 * std::sqrt(n) / 2;
    const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - half)));
    const auto high = static_cast<std::size_t>(std::min(n - 1, std::ceil(n / 2 + half)));
    s.ci95_low = samples[low];
    s.ci95_high = samples[high];
  }
  return s;
}

}  // namespace param
