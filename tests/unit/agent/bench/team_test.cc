#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "agent/bench/driver.h"
#include "tests/fakes/thread_team.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(Team, BroadcastGivesEveryRankTheRootsBytes) {
  ThreadTeam team(3);
  std::atomic<int> right = 0;
  team.Run([&](Team& mine) {
    const std::string bytes = "from " + std::to_string(mine.rank());
    if (mine.Broadcast(1, bytes).value() == "from 1") ++right;
  });
  EXPECT_EQ(right, 3);
}

TEST(Team, BroadcastRefusesARootOutsideTheTeam) {
  SoloTeam team;
  EXPECT_EQ(team.Broadcast(1, "x").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Team, GatherGivesAllPartsByRank) {
  ThreadTeam team(3);
  std::atomic<int> right = 0;
  team.Run([&](Team& mine) {
    const auto all = mine.Gather(std::to_string(mine.rank()));
    if (all.ok() && *all == std::vector<std::string>{"0", "1", "2"}) ++right;
  });
  EXPECT_EQ(right, 3);
}

TEST(Team, AgreeGivesTheFirstObjectionToAll) {
  ThreadTeam team(3);
  std::atomic<int> right = 0;
  team.Run([&](Team& mine) {
    const std::string mine_says = mine.rank() == 0 ? "" : "rank " + std::to_string(mine.rank());
    if (mine.Agree(mine_says).value() == "rank 1") ++right;
  });
  EXPECT_EQ(right, 3);
}

TEST(Team, AgreeIsEmptyWhenNobodyObjects) {
  SoloTeam team;
  EXPECT_EQ(team.Agree("").value(), "");
  EXPECT_EQ(team.Agree("no").value(), "no");
}

TEST(Team, BarrierIsARoundOfAllRanks) {
  ThreadTeam team(4);
  std::atomic<int> arrived = 0;
  std::atomic<int> early = 0;
  team.Run([&](Team& mine) {
    ++arrived;
    ASSERT_TRUE(mine.Barrier().ok());
    if (arrived != 4) ++early;
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(team.rounds(), 1);
}

}  // namespace
}  // namespace param
