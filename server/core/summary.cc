#include "server/core/summary.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "proto/base/statistics.h"

namespace param {

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
  std::tie(s.ci95_low, s.ci95_high) = MedianInterval(samples);
  return s;
}

}  // namespace param
