#include "agent/bench/noise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace param {
namespace {

TEST(NoiseTracker, IsInfiniteBelowTenSamples) {
  NoiseTracker noise;
  for (int i = 0; i < 9; ++i) noise.Add(1);
  EXPECT_TRUE(std::isinf(noise.noise()));
  noise.Add(1);
  EXPECT_EQ(noise.noise(), 0);
}

TEST(NoiseTracker, IsTheRelativeStandardDeviation) {
  NoiseTracker noise;
  for (int i = 1; i <= 10; ++i) noise.Add(i);
  EXPECT_NEAR(noise.mean(), 5.5, 1e-12);
  EXPECT_NEAR(noise.noise(), 3.0276503540974917 / 5.5, 1e-12);  // numpy std, ddof=1
}

TEST(NoiseTracker, KeepsItsPrecisionFarFromZero) {
  NoiseTracker noise;
  for (int i = 0; i < 1000; ++i) noise.Add(1e9 + i % 2);
  EXPECT_NEAR(noise.noise() * 1e9, 0.50025, 1e-4);
}

TEST(NoiseTracker, SettlesAfterMoreThan64EqualEstimates) {
  NoiseTracker noise;
  for (int i = 0; i < 73; ++i) noise.Add(i % 2 == 0 ? 1 : 2);
  EXPECT_FALSE(noise.settled());  // 64 estimates
  noise.Add(1);
  EXPECT_TRUE(noise.settled());
}

TEST(NoiseTracker, IsNotSettledWhileTheNoiseGrows) {
  NoiseTracker noise;
  for (int i = 1; i < 400; ++i) noise.Add(std::exp(i / 30.0));
  EXPECT_FALSE(noise.settled());
}

}  // namespace
}  // namespace param
