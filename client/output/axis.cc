#include "client/output/axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "proto/base/text.h"

namespace param {
namespace {

constexpr double kLeastSpan = 4;  // high / low

// The powers base^k within the axis, every step-th so that at most `most` are left.
std::vector<double> Powers(const LogAxis& axis, double base, std::size_t most) {
  constexpr double kSlack = 1e-9;
  const double log_base = std::log(base);
  const auto first = static_cast<int>(std::ceil(std::log(axis.low) / log_base - kSlack));
  const auto last = static_cast<int>(std::floor(std::log(axis.high) / log_base + kSlack));
  std::vector<double> ticks;
  if (last < first) return ticks;
  const int count = last - first + 1;
  const int step = std::max(1, (count + static_cast<int>(most) - 1) / static_cast<int>(most));
  for (int k = first; k <= last; k += step) ticks.push_back(std::pow(base, k));
  return ticks;
}

}  // namespace

double LogAxis::Place(double value) const {
  return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
}

LogAxis AxisOf(const Chart& chart, bool x) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Curve& curve : chart.curves) {
    for (const auto& [at, value] : curve.points) {
      low = std::min(low, x ? at : value);
      high = std::max(high, x ? at : value);
    }
  }
  if (!(low > 0) || !(high >= low) || !std::isfinite(high)) return {1, 2};
  // A narrow range would blow noise up to mountains.
  const double missing = kLeastSpan / (high / low);
  const double room = missing > 1 ? std::sqrt(missing) : 1;
  return {low / room, high * room};
}

std::vector<double> DecimalTicks(const LogAxis& axis, std::size_t most) {
  std::vector<double> ticks = Powers(axis, 10, most);
  if (ticks.size() >= 3) return ticks;
  // Less than three decades: 1, 2 and 5 of each.
  std::vector<double> finer;
  const auto first = static_cast<int>(std::floor(std::log10(axis.low)));
  const auto last = static_cast<int>(std::ceil(std::log10(axis.high)));
  for (int k = first; k <= last; ++k) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, k);
      if (tick >= axis.low * 0.999999 && tick <= axis.high * 1.000001) finer.push_back(tick);
    }
  }
  return finer.empty() || finer.size() > most ? ticks : finer;
}

std::vector<double> SizeTicks(const LogAxis& axis, std::size_t most) {
  return Powers(axis, 2, most);
}

std::string SizeText(double bytes) { return FormatBytes(std::llround(bytes)); }

}  // namespace param
