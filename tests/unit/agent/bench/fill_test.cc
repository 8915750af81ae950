#include "agent/bench/fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "agent/backend/kit.h"
#include "agent/bench/element.h"

namespace param {
namespace {

constexpr param_dtype kTypes[] = {PARAM_DTYPE_F64,    PARAM_DTYPE_F32,  PARAM_DTYPE_TF32,
                                  PARAM_DTYPE_F16,    PARAM_DTYPE_BF16, PARAM_DTYPE_F8E4M3,
                                  PARAM_DTYPE_F8E5M2, PARAM_DTYPE_I8};

std::vector<double> Filled(Fill fill, param_dtype dtype, std::uint64_t seed, std::size_t count) {
  std::vector<char> bytes(count * kit::DtypeSize(dtype));
  FillElements(fill, dtype, seed, bytes.data(), count);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = LoadElement(dtype, bytes.data(), i);
  return values;
}

struct Moments {
  double mean = 0, stdev = 0, min = 0, max = 0;
};
Moments MomentsOf(const std::vector<double>& values) {
  Moments m;
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.min = std::min(m.min, v);
    m.max = std::max(m.max, v);
  }
  for (const double v : values) m.stdev += (v - m.mean) * (v - m.mean);
  m.stdev = std::sqrt(m.stdev / static_cast<double>(values.size()));
  return m;
}

TEST(Fill, NormalHasMeanZeroAndItsStatedDeviationInEveryType) {
  for (const param_dtype dtype : kTypes) {
    const Moments m = MomentsOf(Filled(Fill::kNormal, dtype, 1, 100'000));
    const double stdev = dtype == PARAM_DTYPE_I8 ? 16 : 1;
    EXPECT_NEAR(m.mean, 0, 0.02 * stdev) << kit::DtypeName(dtype);
    EXPECT_NEAR(m.stdev, stdev, 0.02 * stdev) << kit::DtypeName(dtype);
  }
}

TEST(Fill, UniformCoversItsRangeInEveryType) {
  for (const param_dtype dtype : kTypes) {
    const Moments m = MomentsOf(Filled(Fill::kUniform, dtype, 1, 100'000));
    const double end = dtype == PARAM_DTYPE_I8 ? 63 : 1;
    EXPECT_GE(m.min, -end) << kit::DtypeName(dtype);
    EXPECT_LE(m.max, end) << kit::DtypeName(dtype);
    EXPECT_NEAR(m.stdev, end / std::sqrt(3), 0.02 * end) << kit::DtypeName(dtype);
  }
}

TEST(Fill, ConstantsAreThatInEveryType) {
  for (const param_dtype dtype : kTypes) {
    for (const double v : Filled(Fill::kOnes, dtype, 1, 1001)) ASSERT_EQ(v, 1);
    for (const double v : Filled(Fill::kZeros, dtype, 1, 1001)) ASSERT_EQ(v, 0);
  }
}

TEST(Fill, ExactIsMinusOneZeroAndOneInEveryType) {
  for (const param_dtype dtype : kTypes) {
    const std::vector<double> values = Filled(Fill::kExact, dtype, 1, 10'000);
    EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{-1, 0, 1}));
  }
}

TEST(Fill, DependsOnTheSeedAndOnNothingElse) {
  const std::size_t count = 3 * kFillBlock;  // repeats too
  const auto once = Filled(Fill::kNormal, PARAM_DTYPE_F32, 7, count);
  EXPECT_EQ(once, Filled(Fill::kNormal, PARAM_DTYPE_F32, 7, count));
  EXPECT_NE(once, Filled(Fill::kNormal, PARAM_DTYPE_F32, 8, count));
}

TEST(Fill, RepeatsOfTheBlockKeepTheDistributionButNotThePlaces) {
  const auto values = Filled(Fill::kNormal, PARAM_DTYPE_F32, 3, 4 * kFillBlock + 17);
  const Moments m = MomentsOf(values);
  EXPECT_NEAR(m.mean, 0, 0.01);
  EXPECT_NEAR(m.stdev, 1, 0.01);
  std::size_t equal = 0;
  for (std::size_t i = 0; i < kFillBlock; ++i) equal += values[i] == values[i + kFillBlock];
  EXPECT_LT(equal, kFillBlock / 100);
}

TEST(Fill, WritesNothingBeyondItsElements) {
  std::vector<char> bytes(64, 'x');
  for (const Fill fill : {Fill::kNormal, Fill::kOnes, Fill::kExact}) {
    FillElements(fill, PARAM_DTYPE_BF16, 1, bytes.data(), 13);
    for (std::size_t i = 26; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], 'x');
    FillElements(fill, PARAM_DTYPE_BF16, 1, bytes.data() + 30, 0);
    ASSERT_EQ(bytes[30], 'x');
  }
}

TEST(Fill, DerivedSeedsDiffer) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (std::uint64_t which = 0; which < 50; ++which) seeds.insert(DeriveSeed(seed, which));
  }
  EXPECT_EQ(seeds.size(), 2500u);
}

TEST(Fill, NamesAreParsed) {
  EXPECT_EQ(FillFromName("exact").value(), Fill::kExact);
  EXPECT_EQ(FillFromName("noise").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace param
