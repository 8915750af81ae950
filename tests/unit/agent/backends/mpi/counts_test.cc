#include "agent/backends/mpi/counts.h"

#include <gtest/gtest.h>

namespace param::mpi {
namespace {

constexpr std::int64_t kTwoTo31 = std::int64_t{1} << 31;

TEST(BlockFor, IsOneForWhatFits) {
  EXPECT_EQ(BlockFor({0}), 1);
  EXPECT_EQ(BlockFor({1}), 1);
  EXPECT_EQ(BlockFor({kMaxCount}), 1);
  EXPECT_EQ(BlockFor({kMaxCount - 5, 5}), 1);
}

TEST(BlockFor, IsTheSmallestPowerOfTwoThatDoes) {
  EXPECT_EQ(BlockFor({kTwoTo31}), 2);
  EXPECT_EQ(BlockFor({kTwoTo31 * 2 - 2}), 2);
  EXPECT_EQ(BlockFor({kTwoTo31 * 2}), 4);
  EXPECT_EQ(BlockFor({kTwoTo31 * 8}), 16);
}

// Displacements are sums of counts, in the same unit.
TEST(BlockFor, CountsTheSum) { EXPECT_EQ(BlockFor({kTwoTo31 / 2, kTwoTo31 / 2}), 2); }

TEST(BlockFor, IsZeroForWhatDoesNotDivide) {
  EXPECT_EQ(BlockFor({kTwoTo31 + 1}), 0);
  EXPECT_EQ(BlockFor({kTwoTo31, 1, 0}), 0);
  EXPECT_EQ(BlockFor({kTwoTo31 * 2, 2}), 0);
}

}  // namespace
}  // namespace param::mpi
