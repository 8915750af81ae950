#include "agent/bench/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace param {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every finite pattern converts back to itself, and between two neighbours the nearer one wins,
// ties going to the even pattern: all there is to rounding, for all values of a format.
template <typename Bits>
void CheckFormat(float (*decode)(Bits), Bits (*encode)(float), std::uint32_t largest,
                 std::uint32_t sign) {
  for (std::uint32_t i = 0; i <= largest; ++i) {
    const float value = decode(static_cast<Bits>(i));
    ASSERT_TRUE(std::isfinite(value)) << i;
    ASSERT_EQ(encode(value), i);
    ASSERT_EQ(decode(static_cast<Bits>(i | sign)), -value) << i;
    ASSERT_EQ(encode(-value), i | sign);
    if (i == largest) break;
    const float next = decode(static_cast<Bits>(i + 1));
    ASSERT_LT(value, next) << i;
    const float middle = value + (next - value) / 2;  // exact: f32 has bits to spare
    ASSERT_EQ(encode(middle), i % 2 == 0 ? i : i + 1) << i;
    ASSERT_EQ(encode(std::nextafter(middle, 0.0f)), i);
    ASSERT_EQ(encode(std::nextafter(middle, kInf)), i + 1);
  }
}

TEST(Element, AllValuesOfF16ConvertAndRound) {
  CheckFormat<std::uint16_t>(FloatFromF16, F16FromFloat, 0x7bff, 0x8000);
  EXPECT_EQ(FloatFromF16(0x3c00), 1);
  EXPECT_EQ(FloatFromF16(0x7bff), 65504);
  EXPECT_EQ(FloatFromF16(0x0001), 0x1p-24f);
}

TEST(Element, AllValuesOfBf16ConvertAndRound) {
  CheckFormat<std::uint16_t>(FloatFromBf16, Bf16FromFloat, 0x7f7f, 0x8000);
  EXPECT_EQ(FloatFromBf16(0x3f80), 1);
}

TEST(Element, AllValuesOfF8e4m3ConvertAndRound) {
  CheckFormat<std::uint8_t>(FloatFromF8e4m3, F8e4m3FromFloat, 0x7e, 0x80);
  EXPECT_EQ(FloatFromF8e4m3(0x38), 1);
  EXPECT_EQ(FloatFromF8e4m3(0x7e), 448);
  EXPECT_EQ(FloatFromF8e4m3(0x01), 0x1p-9f);
}

TEST(Element, AllValuesOfF8e5m2ConvertAndRound) {
  CheckFormat<std::uint8_t>(FloatFromF8e5m2, F8e5m2FromFloat, 0x7b, 0x80);
  EXPECT_EQ(FloatFromF8e5m2(0x3c), 1);
  EXPECT_EQ(FloatFromF8e5m2(0x7b), 57344);
  EXPECT_EQ(FloatFromF8e5m2(0x01), 0x1p-16f);
}

TEST(Element, PatternsAboveTheLargestAreInfinityOrNan) {
  EXPECT_EQ(FloatFromF16(0x7c00), kInf);
  EXPECT_EQ(FloatFromF16(0xfc00), -kInf);
  EXPECT_EQ(FloatFromBf16(0x7f80), kInf);
  EXPECT_EQ(FloatFromF8e5m2(0x7c), kInf);
  for (std::uint32_t i = 0x7c01; i < 0x8000; ++i) {
    ASSERT_TRUE(std::isnan(FloatFromF16(static_cast<std::uint16_t>(i))));
  }
  for (std::uint32_t i = 0x7f81; i < 0x8000; ++i) {
    ASSERT_TRUE(std::isnan(FloatFromBf16(static_cast<std::uint16_t>(i))));
  }
  EXPECT_TRUE(std::isnan(FloatFromF8e4m3(0x7f)));
  EXPECT_TRUE(std::isnan(FloatFromF8e4m3(0xff)));
  for (std::uint32_t i = 0x7d; i < 0x80; ++i) {
    EXPECT_TRUE(std::isnan(FloatFromF8e5m2(static_cast<std::uint8_t>(i))));
  }
}

TEST(Element, SixteenBitTypesOverflowToInfinity) {
  EXPECT_EQ(F16FromFloat(65519), 0x7bff);
  EXPECT_EQ(F16FromFloat(65520), 0x7c00);  // half way to 65536, which is even
  EXPECT_EQ(F16FromFloat(-1e30f), 0xfc00);
  EXPECT_EQ(Bf16FromFloat(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Element, EightBitTypesSaturate) {
  EXPECT_EQ(F8e4m3FromFloat(1e30f), 0x7e);
  EXPECT_EQ(F8e4m3FromFloat(-kInf), 0xfe);
  EXPECT_EQ(F8e5m2FromFloat(1e30f), 0x7b);
  EXPECT_EQ(F8e5m2FromFloat(kInf), 0x7b);
  EXPECT_EQ(I8FromFloat(1000), 127);
  EXPECT_EQ(I8FromFloat(-1000), -128);
}

TEST(Element, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(FloatFromF16(F16FromFloat(nan))));
  EXPECT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(nan))));
  EXPECT_TRUE(std::isnan(FloatFromF8e4m3(F8e4m3FromFloat(nan))));
  EXPECT_TRUE(std::isnan(FloatFromF8e5m2(F8e5m2FromFloat(nan))));
}

TEST(Element, I8RoundsTiesToEven) {
  for (int i = -128; i <= 127; ++i) ASSERT_EQ(I8FromFloat(static_cast<float>(i)), i);
  EXPECT_EQ(I8FromFloat(0.5f), 0);
  EXPECT_EQ(I8FromFloat(1.5f), 2);
  EXPECT_EQ(I8FromFloat(-2.5f), -2);
}

TEST(Element, StoreAndLoadAgreeForEveryType) {
  for (int type = PARAM_DTYPE_F64; type <= PARAM_DTYPE_I64; ++type) {
    const param_dtype dtype = static_cast<param_dtype>(type);
    char array[33] = {};
    StoreElement(dtype, array + 1, 2, 3);  // unaligned
    EXPECT_EQ(LoadElement(dtype, array + 1, 2), 3) << type;
    EXPECT_EQ(LoadElement(dtype, array + 1, 1), 0) << type;
  }
}

TEST(Element, LargestAndSmallestAreWhatTheTypeHolds) {
  for (const param_dtype dtype :
       {PARAM_DTYPE_F64, PARAM_DTYPE_F32, PARAM_DTYPE_F16, PARAM_DTYPE_BF16, PARAM_DTYPE_F8E4M3,
        PARAM_DTYPE_F8E5M2, PARAM_DTYPE_I8, PARAM_DTYPE_I32}) {
    char element[8] = {};
    const ElementTraits traits = TraitsOf(dtype);
    StoreElement(dtype, element, 0, traits.largest);
    EXPECT_EQ(LoadElement(dtype, element, 0), traits.largest) << dtype;
    StoreElement(dtype, element, 0, traits.smallest);
    EXPECT_EQ(LoadElement(dtype, element, 0), traits.smallest) << dtype;
    if (traits.integer) continue;
    StoreElement(dtype, element, 0, 1 + 2 * traits.unit_roundoff);
    EXPECT_EQ(LoadElement(dtype, element, 0), 1 + 2 * traits.unit_roundoff) << dtype;
    StoreElement(dtype, element, 0, 1 + traits.unit_roundoff);  // a tie
    EXPECT_EQ(LoadElement(dtype, element, 0), 1) << dtype;
  }
}

TEST(Element, NamesOfTypesAreParsed) {
  EXPECT_EQ(DtypeFromName("f8e4m3").value(), PARAM_DTYPE_F8E4M3);
  EXPECT_EQ(DtypeFromName("tf32").value(), PARAM_DTYPE_TF32);
  EXPECT_EQ(DtypeFromName("f99").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace param
