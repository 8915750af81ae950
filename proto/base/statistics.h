#pragma once
// Order statistics that every summary of samples uses. Pure.

#include <utility>

#include "absl/types/span.h"

namespace param {

// Percentile `q` in [0, 1] of ascending `sorted`, by linear interpolation between the two nearest
// samples at position q * (n - 1) (the "type 7" of Hyndman and Fan 1996). NaN when empty.
double Percentile(absl::Span<const double> sorted, double q);

// The distribution-free 95 % interval of the median of ascending `sorted`: order statistics at
// (n -+ 1.96 sqrt(n)) / 2; the range below 6 samples. NaN when empty.
std::pair<double, double> MedianInterval(absl::Span<const double> sorted);

}  // namespace param
