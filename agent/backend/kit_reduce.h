#pragma once
// For authors of comm backends: element-wise reduction on the host, for types and operations that a
// library lacks. Header-only, the standard library and nothing else. Pure.
//
// One step rounds to the element type (to nearest, ties to even), as libraries do that add in the
// type itself. Integers wrap.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "agent/backend/kit.h"

namespace param::kit {

enum class RedOp { kSum, kProd, kMin, kMax, kAvg };

inline bool RedOpFromName(const std::string& name, RedOp* out) {
  constexpr const char* kNames[] = {"sum", "prod", "min", "max", "avg"};
  for (int i = 0; i < 5; ++i) {
    if (name != kNames[i]) continue;
    *out = static_cast<RedOp>(i);
    return true;
  }
  return false;
}

inline const char* RedOpName(RedOp op) {
  constexpr const char* kNames[] = {"sum", "prod", "min", "max", "avg"};
  return kNames[static_cast<int>(op)];
}

// ---- 16-bit floats -----------------------------------------------------------------------------

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

inline float ToFloat(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

inline float ToFloat(F16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = value.bits & 0x3ffu;
  if (exponent == 0) {
    const float tiny = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -tiny : tiny;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

inline void FromFloat(float value, Bf16* out) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    out->bits = static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return;
  }
  out->bits = static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline void FromFloat(float value, F16* out) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const float magnitude = std::fabs(value);
  std::uint32_t result = 0;
  if (std::isnan(value)) {
    result = 0x7e00u;
  } else if (magnitude >= 65520.0F) {  // rounds to more than the largest, 65504
    result = 0x7c00u;
  } else if (magnitude < 0x1p-14F) {
    result = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 24)));
  } else {
    const std::uint32_t wide = std::bit_cast<std::uint32_t>(magnitude);
    result = ((wide + 0xfffu + (wide >> 13 & 1u)) >> 13) - (112u << 10);
  }
  out->bits = static_cast<std::uint16_t>(sign | result);
}

// ---- reduction ---------------------------------------------------------------------------------

namespace internal {

template <typename T>
T Combine(RedOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;  // wraps instead of being undefined
    // Narrow factors would be promoted to int, whose product overflows.
    using Wide = std::common_type_t<U, unsigned>;
    if (op == RedOp::kProd) return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    if (op == RedOp::kMin) return b < a ? b : a;
    if (op == RedOp::kMax) return b > a ? b : a;
    return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  } else {
    if (op == RedOp::kProd) return a * b;
    if (op == RedOp::kMin) return b < a ? b : a;
    if (op == RedOp::kMax) return b > a ? b : a;
    return a + b;
  }
}

template <typename T>
constexpr bool kIsSmallFloat = std::is_same_v<T, Bf16> || std::is_same_v<T, F16>;

template <RedOp Op, typename T>
void ReduceLoop(T* out, const T* a, const T* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (kIsSmallFloat<T>) {
      FromFloat(Combine(Op, ToFloat(a[i]), ToFloat(b[i])), &out[i]);
    } else {
      out[i] = Combine(Op, a[i], b[i]);
    }
  }
}

// The choice stands outside of the loops.
template <typename T>
void ReduceArray(RedOp op, T* out, const T* a, const T* b, std::size_t count) {
  if (op == RedOp::kProd) return ReduceLoop<RedOp::kProd>(out, a, b, count);
  if (op == RedOp::kMin) return ReduceLoop<RedOp::kMin>(out, a, b, count);
  if (op == RedOp::kMax) return ReduceLoop<RedOp::kMax>(out, a, b, count);
  ReduceLoop<RedOp::kSum>(out, a, b, count);
}

template <typename T>
void DivideArray(T* data, std::size_t count, std::int32_t by) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (kIsSmallFloat<T>) {
      FromFloat(ToFloat(data[i]) / static_cast<float>(by), &data[i]);
    } else if constexpr (std::is_same_v<T, std::uint8_t>) {
      data[i] = static_cast<T>(static_cast<std::int32_t>(data[i]) / by);
    } else {
      data[i] = static_cast<T>(data[i] / static_cast<T>(by));
    }
  }
}

// Calls `body` with a null pointer of the element's C++ type; false for types without one here.
template <typename Body>
bool WithType(param_dtype dtype, Body&& body) {
  switch (dtype) {
    case PARAM_DTYPE_F64:
      return body(static_cast<double*>(nullptr)), true;
    case PARAM_DTYPE_F32:
      return body(static_cast<float*>(nullptr)), true;
    case PARAM_DTYPE_F16:
      return body(static_cast<F16*>(nullptr)), true;
    case PARAM_DTYPE_BF16:
      return body(static_cast<Bf16*>(nullptr)), true;
    case PARAM_DTYPE_I8:
      return body(static_cast<std::int8_t*>(nullptr)), true;
    case PARAM_DTYPE_U8:
      return body(static_cast<std::uint8_t*>(nullptr)), true;
    case PARAM_DTYPE_I32:
      return body(static_cast<std::int32_t*>(nullptr)), true;
    case PARAM_DTYPE_I64:
      return body(static_cast<std::int64_t*>(nullptr)), true;
    case PARAM_DTYPE_TF32:
    case PARAM_DTYPE_F8E4M3:
    case PARAM_DTYPE_F8E5M2:
      return false;
  }
  return false;
}

}  // namespace internal

// out[i] = a[i] op b[i]; `out` may be one of both. kAvg adds (FinishAvg divides once all ranks are
// in). All aligned for the type. False, and nothing done, for tf32 and the 8-bit floats.
inline bool ReduceInto(RedOp op, param_dtype dtype, void* out, const void* a, const void* b,
                       std::size_t count) {
  return internal::WithType(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    internal::ReduceArray(op, static_cast<T*>(out), static_cast<const T*>(a),
                          static_cast<const T*>(b), count);
  });
}

// inout[i] = inout[i] op in[i]; else as ReduceInto.
inline bool Reduce(RedOp op, param_dtype dtype, void* inout, const void* in, std::size_t count) {
  return ReduceInto(op, dtype, inout, inout, in, count);
}

// The average from the sum over `ranks` ranks; integers are cut off towards zero.
inline bool FinishAvg(param_dtype dtype, void* data, std::size_t count, std::int32_t ranks) {
  return internal::WithType(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    internal::DivideArray(static_cast<T*>(data), count, ranks);
  });
}

}  // namespace param::kit
