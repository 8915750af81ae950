#include "agent/bench/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "agent/backend/kit.h"
#include "proto/base/status.h"

namespace param {
namespace {

// A binary format with `kExponentBits` and `kMantissaBits`, subnormals included.
template <int kExponentBits, int kMantissaBits, bool kHasInfinity>
struct Small {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kSign = 1u << (kExponentBits + kMantissaBits);
  static constexpr std::uint32_t kInfinity = ((1u << kExponentBits) - 1) << kMantissaBits;
  // Formats without infinities use the top exponent for numbers and all ones for NaN.
  static constexpr std::uint32_t kLargest = kHasInfinity ? kInfinity - 1 : kSign - 2;
  static constexpr std::uint32_t kNan = kSign - 1;

  static float Decode(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & (kSign - 1);
    const float sign = (bits & kSign) != 0 ? -1.0f : 1.0f;
    if (magnitude > (kHasInfinity ? kInfinity : kLargest)) {
      return std::numeric_limits<float>::quiet_NaN();
    }
    if (kHasInfinity && magnitude == kInfinity) {
      return sign * std::numeric_limits<float>::infinity();
    }
    const int exponent = static_cast<int>(magnitude >> kMantissaBits);
    const std::uint32_t mantissa = magnitude & ((1u << kMantissaBits) - 1);
    const std::uint32_t whole = exponent == 0 ? mantissa : mantissa | (1u << kMantissaBits);
    return sign *
           std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - kBias - kMantissaBits);
  }

  // Magnitude bits of a value that may exceed kLargest; the caller decides what that means.
  static std::uint32_t RoundMagnitude(double magnitude) {
    int exponent = magnitude == 0 ? 1 - kBias : std::ilogb(magnitude);
    exponent = std::max(exponent, 1 - kBias);
    if (exponent > kBias + 1) return kInfinity + (1u << kMantissaBits);
    // 1.m as an integer; rounding up to the next power of two carries into the exponent by itself.
    const double whole = std::nearbyint(std::ldexp(magnitude, kMantissaBits - exponent));
    const std::uint32_t units = static_cast<std::uint32_t>(whole);
    const std::uint32_t hidden = 1u << kMantissaBits;
    if (units < hidden) return units;
    return (static_cast<std::uint32_t>(exponent + kBias) << kMantissaBits) + (units - hidden);
  }

  static std::uint32_t Encode(float value, bool saturate) {
    const std::uint32_t sign = std::signbit(value) ? kSign : 0u;
    if (std::isnan(value)) return sign | kNan;
    std::uint32_t bits = kLargest + 1;
    if (!std::isinf(value)) bits = RoundMagnitude(std::fabs(static_cast<double>(value)));
    if (bits > kLargest) bits = saturate || !kHasInfinity ? kLargest : kInfinity;
    return sign | bits;
  }
};

using F16 = Small<5, 10, true>;
using Bf16 = Small<8, 7, true>;
using F8e4m3 = Small<4, 3, false>;
using F8e5m2 = Small<5, 2, true>;

template <typename T>
T LoadAs(const void* array, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void StoreAs(void* array, std::size_t index, T value) {
  std::memcpy(static_cast<char*>(array) + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T Saturate(double value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  // The upper limit of 64 bits is no double: compare with the power of two above it.
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(rounded);
}

}  // namespace

absl::StatusOr<param_dtype> DtypeFromName(absl::string_view name) {
  for (int value = PARAM_DTYPE_F64; value <= PARAM_DTYPE_I64; ++value) {
    const param_dtype dtype = static_cast<param_dtype>(value);
    if (name == kit::DtypeName(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat("dtype: \"", name, "\" is no element type"));
}

float FloatFromBf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
float FloatFromF16(std::uint16_t bits) { return F16::Decode(bits); }
float FloatFromF8e4m3(std::uint8_t bits) { return F8e4m3::Decode(bits); }
float FloatFromF8e5m2(std::uint8_t bits) { return F8e5m2::Decode(bits); }

std::uint16_t Bf16FromFloat(float value) {
  return static_cast<std::uint16_t>(Bf16::Encode(value, false));
}
std::uint16_t F16FromFloat(float value) {
  return static_cast<std::uint16_t>(F16::Encode(value, false));
}
std::uint8_t F8e4m3FromFloat(float value) {
  return static_cast<std::uint8_t>(F8e4m3::Encode(value, true));
}
std::uint8_t F8e5m2FromFloat(float value) {
  return static_cast<std::uint8_t>(F8e5m2::Encode(value, true));
}
std::int8_t I8FromFloat(float value) { return Saturate<std::int8_t>(static_cast<double>(value)); }

double LoadElement(param_dtype dtype, const void* array, std::size_t index) {
  switch (dtype) {
    case PARAM_DTYPE_F64:
      return LoadAs<double>(array, index);
    case PARAM_DTYPE_F32:
    case PARAM_DTYPE_TF32:
      return static_cast<double>(LoadAs<float>(array, index));
    case PARAM_DTYPE_F16:
      return static_cast<double>(FloatFromF16(LoadAs<std::uint16_t>(array, index)));
    case PARAM_DTYPE_BF16:
      return static_cast<double>(FloatFromBf16(LoadAs<std::uint16_t>(array, index)));
    case PARAM_DTYPE_F8E4M3:
      return static_cast<double>(FloatFromF8e4m3(LoadAs<std::uint8_t>(array, index)));
    case PARAM_DTYPE_F8E5M2:
      return static_cast<double>(FloatFromF8e5m2(LoadAs<std::uint8_t>(array, index)));
    case PARAM_DTYPE_I8:
      return LoadAs<std::int8_t>(array, index);
    case PARAM_DTYPE_U8:
      return LoadAs<std::uint8_t>(array, index);
    case PARAM_DTYPE_I32:
      return LoadAs<std::int32_t>(array, index);
    case PARAM_DTYPE_I64:
      return static_cast<double>(LoadAs<std::int64_t>(array, index));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void StoreElement(param_dtype dtype, void* array, std::size_t index, double value) {
  const float narrow = static_cast<float>(value);
  switch (dtype) {
    case PARAM_DTYPE_F64:
      return StoreAs(array, index, value);
    case PARAM_DTYPE_F32:
    case PARAM_DTYPE_TF32:
      return StoreAs(array, index, narrow);
    case PARAM_DTYPE_F16:
      return StoreAs(array, index, F16FromFloat(narrow));
    case PARAM_DTYPE_BF16:
      return StoreAs(array, index, Bf16FromFloat(narrow));
    case PARAM_DTYPE_F8E4M3:
      return StoreAs(array, index, F8e4m3FromFloat(narrow));
    case PARAM_DTYPE_F8E5M2:
      return StoreAs(array, index, F8e5m2FromFloat(narrow));
    case PARAM_DTYPE_I8:
      return StoreAs(array, index, Saturate<std::int8_t>(value));
    case PARAM_DTYPE_U8:
      return StoreAs(array, index, Saturate<std::uint8_t>(value));
    case PARAM_DTYPE_I32:
      return StoreAs(array, index, Saturate<std::int32_t>(value));
    case PARAM_DTYPE_I64:
      return StoreAs(array, index, Saturate<std::int64_t>(value));
  }
}

ElementTraits TraitsOf(param_dtype dtype) {
  switch (dtype) {
    case PARAM_DTYPE_F64:
      return {false, 0x1p-53, std::numeric_limits<double>::max(),
              std::numeric_limits<double>::min()};
    case PARAM_DTYPE_F32:
    case PARAM_DTYPE_TF32:
      return {false, 0x1p-24, static_cast<double>(std::numeric_limits<float>::max()), 0x1p-126};
    case PARAM_DTYPE_F16:
      return {false, 0x1p-11, 65504, 0x1p-14};
    case PARAM_DTYPE_BF16:
      return {false, 0x1p-8, 0x1.fep127, 0x1p-126};
    case PARAM_DTYPE_F8E4M3:
      return {false, 0x1p-4, 448, 0x1p-6};
    case PARAM_DTYPE_F8E5M2:
      return {false, 0x1p-3, 57344, 0x1p-14};
    case PARAM_DTYPE_I8:
      return {true, 0, 127, 1};
    case PARAM_DTYPE_U8:
      return {true, 0, 255, 1};
    case PARAM_DTYPE_I32:
      return {true, 0, 2147483647, 1};
    case PARAM_DTYPE_I64:
      return {true, 0, 9223372036854775807.0, 1};
  }
  return {true, 0, 0, 1};
}

}  // namespace param
