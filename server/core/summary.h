#pragma once
// Statistics of samples. Pure.

#include <vector>

#include "absl/types/span.h"
#include "server/core/job.h"

namespace param {

// Percentile `q` in [0, 1] of ascending `sorted`, by linear interpolation between the two nearest
// samples at position q * (n - 1) (the "type 7" of Hyndman and Fan 1996). NaN when empty.
double Percentile(absl::Span<const double> sorted, double q);

// All statistics. stdev is the sample's (n - 1), 0 for one sample. ci95 is the distribution-free
// interval of the median: order statistics at (n -+ 1.96 sqrt(n)) / 2; the range below 6 samples.
Summary Summarise(std::vector<double> samples);

}  // namespace param
