#include "agent/bench/verify_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "agent/backend/kit.h"
#include "agent/bench/element.h"
#include "agent/bench/fill.h"
#include "proto/base/text.h"

namespace param {
namespace {

constexpr double kSafety = 8;          // standard deviations of the rounding error, amply
constexpr double kPartial = 4;         // partial sums in units of the root of the sum of squares
constexpr double kTf32Input = 0x1p-9;  // two operands, each truncated to ten bits
constexpr std::int64_t kAllBelow = 1 << 20;    // multiplications: check every element
constexpr std::int64_t kSampleWork = 1 << 22;  // multiplications of the random samples
constexpr std::int64_t kMinSamples = 16;
constexpr std::int64_t kMaxSamples = 128;
constexpr unsigned char kFloatPoison = 0xff;    // NaN in every format
constexpr unsigned char kIntegerPoison = 0x7f;  // 0x7f7f7f7f

double SumRoundoff(param_dtype input) {
  switch (input) {
    case PARAM_DTYPE_F64:
      return 0x1p-53;
    case PARAM_DTYPE_F32:
      return 0x1p-24;
    case PARAM_DTYPE_F8E4M3:
    case PARAM_DTYPE_F8E5M2:
      return 0x1p-15;
    case PARAM_DTYPE_TF32:
    case PARAM_DTYPE_F16:
    case PARAM_DTYPE_BF16:
      return 0x1p-22;
    case PARAM_DTYPE_I8:
    case PARAM_DTYPE_U8:
    case PARAM_DTYPE_I32:
    case PARAM_DTYPE_I64:
      return 0;
  }
  return 0;
}

// Sum of products of a row of op(A) and a column of op(B), and of their squares.
struct Sums {
  long double products = 0;
  long double squares = 0;
};

Sums SumProducts(const GemmShape& s, const GemmData& data, std::int64_t index) {
  const std::int64_t matrix = index / (s.m * s.n);
  const std::int64_t row = index / s.n % s.m;
  const std::int64_t column = index % s.n;
  const std::int64_t a_step = s.trans_a ? s.m : 1;
  const std::int64_t b_step = s.trans_b ? 1 : s.n;
  std::int64_t a_at = matrix * s.m * s.k + (s.trans_a ? row : row * s.k);
  std::int64_t b_at = matrix * s.k * s.n + (s.trans_b ? column * s.k : column);
  Sums sums;
  for (std::int64_t i = 0; i < s.k; ++i, a_at += a_step, b_at += b_step) {
    const long double a = LoadElement(s.input, data.a, static_cast<std::size_t>(a_at));
    const long double b = LoadElement(s.input, data.b, static_cast<std::size_t>(b_at));
    sums.products += a * b;
    sums.squares += a * b * (a * b);
  }
  return sums;
}

double Tolerance(const GemmShape& s, double p, double q, double from_c) {
  const double scale = kPartial * q + std::fabs(p);
  const double result = std::fabs(p) + std::fabs(from_c);
  if (TraitsOf(s.result).integer) {
    const bool exact = s.alpha == 1 && (s.beta == 0 || s.beta == 1);
    return exact ? 0 : 1 + result * 0x1p-22;
  }
  double tolerance = kSafety * SumRoundoff(s.input) * std::sqrt(static_cast<double>(s.k)) * scale;
  if (s.input == PARAM_DTYPE_TF32) tolerance += kTf32Input * scale;
  tolerance += 2 * TraitsOf(s.result).unit_roundoff * result;
  // Nothing was rounded where everything is zero.
  return scale == 0 && result == 0 ? 0 : tolerance + TraitsOf(s.result).smallest;
}

// Deviation in units of the tolerance; infinite for what can never be right.
double Deviation(const GemmShape& s, const GemmExpectation& expected, double got) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (std::isnan(got)) return kNever;
  const double largest = TraitsOf(s.result).largest;
  if (std::isinf(got)) {
    const bool overflows = std::fabs(expected.value) + expected.tolerance >= largest &&
                           std::signbit(expected.value) == std::signbit(got);
    return overflows ? 0 : kNever;
  }
  const double error = std::fabs(got - expected.value);
  if (error == 0) return 0;
  return expected.tolerance > 0 ? error / expected.tolerance : kNever;
}

template <typename T>
std::int64_t FindPattern(const void* array, std::size_t count, unsigned char byte) {
  T pattern;
  std::memset(&pattern, byte, sizeof(pattern));
  const T* const first = static_cast<const T*>(array);
  const T* const found = std::find(first, first + count, pattern);
  return found == first + count ? -1 : found - first;
}

// First element that still holds the poison, or -1.
std::int64_t FindPoison(param_dtype dtype, const void* array, std::size_t count) {
  const unsigned char byte = TraitsOf(dtype).integer ? kIntegerPoison : kFloatPoison;
  switch (kit::DtypeSize(dtype)) {
    case 8:
      return FindPattern<std::uint64_t>(array, count, byte);
    case 4:
      return FindPattern<std::uint32_t>(array, count, byte);
    case 2:
      return FindPattern<std::uint16_t>(array, count, byte);
    default:
      return FindPattern<std::uint8_t>(array, count, byte);
  }
}

std::string DescribeProblem(const GemmShape& s, std::int64_t index, const GemmExpectation& expected,
                            double got, bool unwritten) {
  return absl::StrCat("element ", index, " (", index / (s.m * s.n), ", ", index / s.n % s.m, ", ",
                      index % s.n, ") of ", kit::DtypeName(s.result), " C: expected ",
                      FormatDouble(expected.value), ", got ", FormatDouble(got),
                      unwritten ? " (never written)" : "", ", tolerance ",
                      FormatDouble(expected.tolerance));
}

}  // namespace

GemmExpectation ExpectGemm(const GemmShape& shape, const GemmData& data, std::int64_t index) {
  const Sums sums = SumProducts(shape, data, index);
  const double c = data.c_before == nullptr
                       ? 0
                       : LoadElement(shape.result, data.c_before, static_cast<std::size_t>(index));
  const long double p = static_cast<long double>(shape.alpha) * sums.products;
  const long double from_c = static_cast<long double>(shape.beta) * static_cast<long double>(c);
  const double q = std::fabs(shape.alpha) * std::sqrt(static_cast<double>(sums.squares));
  return {static_cast<double>(p + from_c),
          Tolerance(shape, static_cast<double>(p), q, static_cast<double>(from_c))};
}

std::vector<std::int64_t> ElementsToCheck(const GemmShape& s, std::optional<std::int64_t> watched,
                                          std::uint64_t seed) {
  const std::int64_t count = s.c_elements();
  std::vector<std::int64_t> picked;
  if (count <= kAllBelow / s.k) {
    for (std::int64_t i = 0; i < count; ++i) picked.push_back(i);
    return picked;
  }
  const std::int64_t matrix = s.m * s.n;
  for (const std::int64_t first : {std::int64_t{0}, count - matrix}) {
    picked.insert(picked.end(), {first, first + s.n - 1, first + matrix - s.n, first + matrix - 1});
  }
  const std::int64_t samples = std::clamp(kSampleWork / s.k, kMinSamples, kMaxSamples);
  const auto random = [&](std::int64_t i, std::int64_t below) {
    const std::uint64_t bits = DeriveSeed(seed, static_cast<std::uint64_t>(i));
    return static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(below));
  };
  for (std::int64_t i = 0; i < samples; ++i) {
    if (i % 8 == 0) {
      picked.push_back(count - s.n + random(i, s.n));
    } else if (i % 8 == 1) {
      picked.push_back(count - matrix + random(i, s.m) * s.n + s.n - 1);
    } else {
      picked.push_back(random(i, count));
    }
  }
  if (watched.has_value()) picked.push_back(*watched);
  std::sort(picked.begin(), picked.end());
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  return picked;
}

GemmCheck CheckGemm(const GemmShape& shape, const GemmData& data,
                    std::optional<std::int64_t> watched, std::uint64_t seed) {
  std::vector<std::int64_t> indices = ElementsToCheck(shape, watched, seed);
  std::int64_t unwritten = -1;
  if (data.c_before == nullptr) {
    const std::size_t count = static_cast<std::size_t>(shape.c_elements());
    unwritten = FindPoison(shape.result, data.c_after, count);
    if (unwritten >= 0) indices.push_back(unwritten);
  }
  GemmCheck check;
  for (const std::int64_t index : indices) {
    const GemmExpectation expected = ExpectGemm(shape, data, index);
    const double got = LoadElement(shape.result, data.c_after, static_cast<std::size_t>(index));
    const double deviation = Deviation(shape, expected, got);
    if (deviation > 1 && (check.problem.empty() || deviation > check.max_error)) {
      check.problem = DescribeProblem(shape, index, expected, got, index == unwritten);
    }
    check.max_error = std::max(check.max_error, deviation);
    ++check.checked;
  }
  return check;
}

void Poison(param_dtype dtype, void* array, std::size_t count) {
  std::memset(array, TraitsOf(dtype).integer ? kIntegerPoison : kFloatPoison,
              count * kit::DtypeSize(dtype));
}

void CorruptElement(param_dtype dtype, void* element) {
  const ElementTraits traits = TraitsOf(dtype);
  if (traits.integer) {
    const std::size_t size = kit::DtypeSize(dtype);  // little-endian: the high byte is the last
    static_cast<unsigned char*>(element)[size - 1] ^= 0x40;
    return;
  }
  const double before = LoadElement(dtype, element, 0);
  StoreElement(dtype, element, 0, std::signbit(before) ? traits.largest : -traits.largest);
}

}  // namespace param
