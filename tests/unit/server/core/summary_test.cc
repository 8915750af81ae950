#include "server/core/summary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "proto/base/statistics.h"

namespace param {
namespace {

TEST(Percentile, InterpolatesLinearlyBetweenSamples) {
  const std::vector<double> sorted = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(Percentile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(Percentile(sorted, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Percentile(sorted, 0.75), 3.25);
  EXPECT_DOUBLE_EQ(Percentile(sorted, 1), 4);
  EXPECT_TRUE(std::isnan(Percentile({}, 0.5)));
}

TEST(Summarise, KnowsTheTextbookCase) {
  const Summary s = Summarise({4, 2, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(s.n, 8);
  EXPECT_DOUBLE_EQ(s.mean, 5);
  EXPECT_NEAR(s.stdev, 2.13809, 1e-5);
  EXPECT_DOUBLE_EQ(s.min, 2);
  EXPECT_DOUBLE_EQ(s.max, 9);
  EXPECT_DOUBLE_EQ(s.p50, 4.5);
}

TEST(Summarise, OneSampleHasNoSpread) {
  const Summary s = Summarise({3});
  EXPECT_DOUBLE_EQ(s.stdev, 0);
  EXPECT_DOUBLE_EQ(s.ci95_low, 3);
  EXPECT_DOUBLE_EQ(s.ci95_high, 3);
}

TEST(Summarise, NothingIsNothing) { EXPECT_EQ(Summarise({}).n, 0); }

TEST(Summarise, IntervalOfTheMedianHoldsItAndNarrowsWithN) {
  std::vector<double> few, many;
  for (int i = 0; i < 20; ++i) few.push_back(i);
  for (int i = 0; i < 2000; ++i) many.push_back(i / 100.0);
  const Summary a = Summarise(few), b = Summarise(many);
  EXPECT_LE(a.ci95_low, a.p50);
  EXPECT_GE(a.ci95_high, a.p50);
  EXPECT_LT(b.ci95_high - b.ci95_low, a.ci95_high - a.ci95_low);
}

}  // namespace
}  // namespace param
