#pragma once
// Statistics of samples. Pure.

#include <vector>

#include "server/core/job.h"

namespace param {

// All statistics; percentiles and the interval of the median as in proto/base/statistics.h. stdev
// is the sample's (n - 1), 0 for one sample.
Summary Summarise(std::vector<double> samples);

}  // namespace param
