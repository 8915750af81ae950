#pragma once
// Units are types. Base units everywhere (s, B, B/s, FLOP/s); scaling is the printer's business.

#include <compare>
#include <cstdint>

#include "absl/time/time.h"

namespace param {

// One count, one unit. Nothing converts implicitly; unlike units do not mix.
template <typename Tag, typename Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_(count) {}
  constexpr Rep count() const { return count_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.count_ + b.count_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.count_ - b.count_);
  }

 private:
  Rep count_{};
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Flop = Quantity<struct FlopTag, double>;  // work; the rate is FlopPerSecond
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using FlopPerSecond = Quantity<struct FlopPerSecondTag, double>;
// Time is absl::Duration and absl::Time; measured samples are doubles in seconds.

inline BytesPerSecond operator/(Bytes b, absl::Duration t) {
  return BytesPerSecond(static_cast<double>(b.count()) / absl::ToDoubleSeconds(t));
}
inline FlopPerSecond operator/(Flop f, absl::Duration t) {
  return FlopPerSecond(f.count() / absl::ToDoubleSeconds(t));
}

}  // namespace param
