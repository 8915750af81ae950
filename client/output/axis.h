#pragma once
// A logarithmic axis, shared by the terminal plot and the HTML report. Pure.

#include <string>
#include <vector>

#include "client/output/curves.h"

namespace param {

// From `low` to `high`, both > 0 and low < high.
struct LogAxis {
  double low = 1, high = 2;
  // 0 at low, 1 at high.
  double Place(double value) const;
};

// Spans all values, and a factor of 4 at least.
LogAxis AxisOf(const Chart& chart, bool x);

// Round values on the axis, ascending: powers of ten (and their 2 and 5 where there are few), or
// powers of two for sizes; at most `most`.
std::vector<double> DecimalTicks(const LogAxis& axis, std::size_t most);
std::vector<double> SizeTicks(const LogAxis& axis, std::size_t most);

// "64 KiB".
std::string SizeText(double bytes);

}  // namespace param
