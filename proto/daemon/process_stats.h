#pragma once
// The standard process_* metrics, read from /proc when asked.

#include <vector>

#include <prometheus/metric_family.h>

namespace param {

// CPU seconds, resident and virtual memory, open and allowed descriptors, start time, threads. What
// cannot be read is left out.
std::vector<prometheus::MetricFamily> ProcessMetrics();

}  // namespace param
