#include "agent/core/exchange_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

const AttemptKey kKey{"j-x", 2};

std::optional<ExchangePart> Give(ExchangeRouter& router, int rank, std::uint64_t round,
                                 const std::string& data) {
  const auto part = router.Add(rank, round, data);
  EXPECT_TRUE(part.ok()) << part.status();
  return part.ok() ? *part : std::nullopt;
}

TEST(ExchangeRouterTest, GathersTheLocalRanksBeforeItSends) {
  ExchangeRouter router(kKey, {5, 3}, 8);
  EXPECT_FALSE(Give(router, 5, 0, "five").has_value());
  EXPECT_TRUE(router.IsWaiting(5));
  EXPECT_FALSE(router.IsWaiting(3));
  const std::optional<ExchangePart> part = Give(router, 3, 0, "three");
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(*part, (ExchangePart{kKey, 0, {3, 5}, {"three", "five"}}));
}

TEST(ExchangeRouterTest, AnAnswerIsTakenOnceAndInOrder) {
  ExchangeRouter router(kKey, {0}, 1);
  EXPECT_FALSE(*router.Answer({kKey, 0, {"early"}}));
  Give(router, 0, 0, "a");
  EXPECT_FALSE(*router.Answer({kKey, 1, {"ahead"}}));
  EXPECT_TRUE(*router.Answer({kKey, 0, {"a"}}));
  EXPECT_FALSE(*router.Answer({kKey, 0, {"a"}}));
  EXPECT_FALSE(router.IsWaiting(0));
}

TEST(ExchangeRouterTest, AnAnswerNeedsOnePartPerRank) {
  ExchangeRouter router(kKey, {0}, 2);
  Give(router, 0, 0, "a");
  EXPECT_EQ(router.Answer({kKey, 0, {"a"}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ExchangeRouterTest, ResendsTheLastTwoRoundsTheAnsweredOneToo) {
  ExchangeRouter router(kKey, {0}, 1);
  for (std::uint64_t round = 0; round < 3; ++round) {
    Give(router, 0, round, std::to_string(round));
    if (round < 2) {
      EXPECT_TRUE(*router.Answer({kKey, round, {"all"}}));
    }
  }
  const std::vector<ExchangePart> again = router.Resend();
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_EQ(again[0].round, 1u);
  EXPECT_EQ(again[1].round, 2u);
}

TEST(ExchangeRouterTest, RanksOutOfStepAreErrors) {
  ExchangeRouter router(kKey, {0, 1}, 2);
  EXPECT_FALSE(router.Add(7, 0, "stranger").ok());
  EXPECT_FALSE(router.Add(0, 1, "ahead").ok());
  Give(router, 0, 0, "a");
  EXPECT_FALSE(router.Add(0, 0, "again").ok());
}

}  // namespace
}  // namespace param::agent
