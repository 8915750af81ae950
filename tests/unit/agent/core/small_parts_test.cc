// Exit decoding, core splits, log budget and ring, deadlines: each a table or two.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "agent/core/cpu_split.h"
#include "agent/core/deadlines.h"
#include "agent/core/log_budget.h"
#include "agent/core/log_ring.h"
#include "agent/core/worker_exit.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WorkerExitTest, DecodesEveryKindOfEnd) {
  EXPECT_EQ(WorkerExit(SIGSEGV, false), absl::AbortedError("worker killed by SIGSEGV"));
  EXPECT_EQ(WorkerExit(SIGKILL, true), absl::AbortedError("worker killed by SIGKILL"));
  EXPECT_EQ(WorkerExit(SIGABRT | 0x80, false), absl::AbortedError("worker killed by SIGABRT"));
  EXPECT_EQ(WorkerExit(SIGRTMIN + 3, false),
            absl::AbortedError(absl::StrCat("worker killed by signal ", SIGRTMIN + 3)));
  EXPECT_EQ(WorkerExit(7 << 8, true), absl::InternalError("worker exited with 7"));
  EXPECT_EQ(WorkerExit(0, false).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(WorkerExit(0, true).ok());
}

TEST(SplitCpusTest, GivesNeighboursAndTheRestToTheFirst) {
  EXPECT_THAT(SplitCpus({4, 0, 1, 2, 3}, 2), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4)));
}
TEST(SplitCpusTest, SharesWhereThereAreTooFew) {
  EXPECT_THAT(SplitCpus({5, 6}, 3), ElementsAre(ElementsAre(5), ElementsAre(6), ElementsAre(5)));
}
TEST(SplitCpusTest, WithoutCoresNobodyGetsAny) {
  EXPECT_THAT(SplitCpus({}, 2), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(LogBudgetTest, LetsABurstThroughAndThenTheRate) {
  LogBudget budget({.lines_per_second = 10, .burst_lines = 5});
  int passed = 0;
  for (int i = 0; i < 20; ++i) passed += budget.Take(absl::ZeroDuration(), 10) ? 1 : 0;
  EXPECT_EQ(passed, 5);
  EXPECT_EQ(budget.TakeDropped(), 15);
  EXPECT_EQ(budget.TakeDropped(), 0);
  EXPECT_TRUE(budget.Take(absl::Milliseconds(100), 10));
  EXPECT_FALSE(budget.Take(absl::Milliseconds(100), 10));
}
TEST(LogBudgetTest, StopsAtItsTotals) {
  LogBudget lines({.burst_lines = 100, .max_lines = 3});
  LogBudget bytes({.burst_lines = 100, .max_bytes = 100});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(lines.Take(absl::Seconds(i), 1));
  EXPECT_FALSE(lines.Take(absl::Hours(1), 1));
  EXPECT_TRUE(bytes.Take(absl::ZeroDuration(), 100));
  EXPECT_FALSE(bytes.Take(absl::Hours(1), 1));
}

TEST(LogRingTest, KeepsTheLastLines) {
  LogRing ring(2, 10);
  for (const char* line : {"one", "two", "three"}) ring.Push(line);
  EXPECT_THAT(ring.lines(), ElementsAre("two", "three"));
  ring.Push("0123456789abc");
  EXPECT_THAT(ring.lines(), ElementsAre("0123456789"));
}

TEST(PhaseDeadlinesTest, GivenOnesReplaceTheDefaultsAndNonsenseDoesNot) {
  const PhaseDeadlines deadlines({{"timed", 5'000'000'000}, {"verify", -1}, {"lunch", 1}});
  EXPECT_EQ(deadlines.Of(line::Phase::kTimed), absl::Seconds(5));
  EXPECT_EQ(deadlines.Of(line::Phase::kVerify), absl::Seconds(300));
  EXPECT_EQ(deadlines.Of(line::Phase::kSpawn), absl::Seconds(30));
  EXPECT_EQ(deadlines.Longest(), absl::Seconds(300));
}
TEST(DurationTextTest, ReadsLikeAPersonWritesIt) {
  EXPECT_EQ(DurationText(absl::Seconds(5)), "5 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(1500)), "1.5 s");
  EXPECT_EQ(DurationText(absl::Milliseconds(250)), "250 ms");
}

}  // namespace
}  // namespace param::agent
