#pragma once
// What inputs are filled with: stated, seeded, the same on every machine.

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/backend/param_backend.h"

namespace param {

// Integers keep to seven bits: processors without VNNI add pairs of i8 products in 16 bits, where
// larger values saturate, and a library that does so is not wrong by its own contract.
enum class Fill {
  kNormal,   // mean 0, stdev 1; for i8 stdev 16, rounded, within -63 to 63
  kUniform,  // [-1, 1); for i8 the integers -63 to 63
  kOnes,
  kZeros,
  kExact,  // -1, 0 or 1, each as likely: sums of products are exact in any order
};

// INVALID_ARGUMENT for a name that is none.
absl::StatusOr<Fill> FillFromName(absl::string_view name);

// Writes `count` elements of `dtype`. Random fills generate a block of at most kFillBlock values
// and repeat it from changing places and with changing sign, so that a matrix of gigabytes is
// filled at the speed of memory; block and places depend on `seed` only.
inline constexpr std::size_t kFillBlock = 1'000'003;  // a prime: no row length lines up with it
void FillElements(Fill fill, param_dtype dtype, std::uint64_t seed, void* out, std::size_t count);

// A seed for one of several things that are filled from one.
std::uint64_t DeriveSeed(std::uint64_t seed, std::uint64_t which);

}  // namespace param
