#include "proto/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace param {
namespace {

constexpr std::size_t kLeastForInterval = 6;

}  // namespace

double Percentile(absl::Span<const double> sorted, double q) {
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * part;
}

std::pair<double, double> MedianInterval(absl::Span<const double> sorted) {
  if (sorted.empty()) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    return {kNan, kNan};
  }
  if (sorted.size() < kLeastForInterval) return {sorted.front(), sorted.back()};
  const double n = static_cast<double>(sorted.size());
  const double half = 1.96 * std::sqrt(n) / 2;
  const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2 - half)));
  const auto high = static_cast<std::size_t>(std::min(n - 1, std::ceil(n / 2 + half)));
  return {sorted[low], sorted[high]};
}

}  // namespace param
