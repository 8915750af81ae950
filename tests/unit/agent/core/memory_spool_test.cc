#include "agent/core/memory_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankEvent Event(int rank, std::uint64_t seq, std::string line = "x") {
  return {.key = {"j", 1}, .rank = rank, .seq = seq, .time_ns = 0, .line = std::move(line)};
}
void Put(Spool& spool, const RankEvent& event) {
  ASSERT_TRUE(spool.Append(event, Spool::Importance::kEvent).ok());
}

TEST(MemorySpoolTest, ReadsInOrderOverAllRanksAndSkipsWhatIsAcknowledged) {
  MemorySpool spool(1000);
  for (std::uint64_t seq = 1; seq <= 3; ++seq) {
    Put(spool, Event(0, seq));
    Put(spool, Event(1, seq));
  }
  spool.Ack({{"j", 1}, 0, 2});
  const Spool::Batch batch = *spool.Read(0, 100, 1000);
  EXPECT_THAT(batch.events, ElementsAre(Event(1, 1), Event(1, 2), Event(0, 3), Event(1, 3)));
  EXPECT_EQ(batch.next, spool.end());
  EXPECT_EQ(spool.events(), 4);
  EXPECT_EQ(spool.bytes(), 4);
}

TEST(MemorySpoolTest, ABatchEndsAtItsBounds) {
  MemorySpool spool(1000);
  for (std::uint64_t seq = 1; seq <= 5; ++seq) Put(spool, Event(0, seq, "0123456789"));
  const Spool::Batch first = *spool.Read(0, 2, 1000);
  EXPECT_EQ(first.events.size(), 2u);
  EXPECT_EQ(spool.Read(first.next, 100, 15)->events.size(), 2u);
}

TEST(MemorySpoolTest, RefusesAtItsLimitButTakesAnEnd) {
  MemorySpool spool(5);
  EXPECT_EQ(spool.Append(Event(0, 1, "too much"), Spool::Importance::kEvent).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(spool.Append(Event(0, 1, "the end"), Spool::Importance::kEnd).ok());
}

TEST(MemorySpoolTest, DropForgetsOneAttemptOnly) {
  MemorySpool spool(1000);
  Put(spool, Event(0, 1));
  Put(spool, {.key = {"j", 2}, .rank = 0, .seq = 1, .time_ns = 0, .line = "y"});
  spool.Drop({"j", 1});
  EXPECT_FALSE(spool.HasUnacked({"j", 1}));
  EXPECT_TRUE(spool.HasUnacked({"j", 2}));
  spool.Drop({"j", 2});
  EXPECT_THAT(spool.Read(0, 10, 10)->events, IsEmpty());
}

}  // namespace
}  // namespace param::agent
