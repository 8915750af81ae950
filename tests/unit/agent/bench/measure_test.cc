#include "agent/bench/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "tests/fakes/thread_team.h"
#include "tests/unit/agent/bench/scripted_operation.h"

namespace param {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Takes 1 ms, with a deviation of `relative` up and down in turn.
ScriptedMachine::Seconds Alternating(double relative) {
  return [relative](std::int64_t i) { return 1e-3 * (i % 2 == 0 ? 1 + relative : 1 - relative); };
}

class MeasureTest : public ::testing::Test {
 protected:
  absl::StatusOr<Measurement> Run(ScriptedMachine& machine) {
    return Measure(team_, machine, machine, options_, machine.clock, reporter_);
  }
  SoloTeam team_;
  RecordingReporter reporter_;
  MeasureOptions options_ = DefaultOptions();
};

TEST_F(MeasureTest, TakesExactlyAsManySamplesAsAskedFor) {
  ScriptedMachine machine(Alternating(0));
  options_.iters = 137;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(measured->samples, SizeIs(137));
  EXPECT_EQ(machine.iterations, 137 + options_.warmup);
  EXPECT_EQ(measured->stopped_by, StopReason::kIters);
}

TEST_F(MeasureTest, ReportsPhasesInOrderAndNoWarmUpSample) {
  ScriptedMachine machine([](std::int64_t i) { return i < 5 ? 1.0 : 1e-3; });
  options_.iters = 3;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(reporter_.events, ElementsAre("warmup", "timed", "time in s"));
  EXPECT_THAT(reporter_.samples, SizeIs(3));
  EXPECT_THAT(reporter_.samples, Each(DoubleNear(1e-3, 1e-6)));
}

TEST_F(MeasureTest, StopsForQuietSamplesOnceTheMinimumTimeHasPassed) {
  ScriptedMachine machine(Alternating(0.002));
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->stopped_by, StopReason::kNoise);
  EXPECT_GE(measured->samples.size(), 499u);
  EXPECT_LE(measured->samples.size(), 600u);  // at most a chunk more
}

TEST_F(MeasureTest, StopsWhenTheNoiseIsHighButNoLongerChanges) {
  ScriptedMachine machine(Alternating(0.1));
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->stopped_by, StopReason::kSettled);
  EXPECT_LT(measured->samples.size(), 1000u);
}

TEST_F(MeasureTest, StopsAtTheMaximumTimeHoweverNoisy) {
  // Ever slower: neither quiet nor settled.
  ScriptedMachine machine([](std::int64_t i) { return 1e-4 * static_cast<double>(1 + i); });
  options_.min_time_s = 0.1;
  options_.max_time_s = 0.5;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->stopped_by, StopReason::kMaxTime);
  EXPECT_LT(machine.clock.Monotonic(), absl::Seconds(0.7));
}

TEST_F(MeasureTest, TakesAtLeastOneSampleHoweverLongOneIs) {
  ScriptedMachine machine([](std::int64_t) { return 100.0; });
  options_.warmup = 0;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(measured->samples, SizeIs(1));
  EXPECT_EQ(measured->stopped_by, StopReason::kMaxTime);
}

TEST_F(MeasureTest, CountsTimeBetweenSamplesTowardsTheMaximum) {
  ScriptedMachine machine([](std::int64_t) { return 1e-6; });
  options_.flush_cache = true;  // a millisecond each
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->stopped_by, StopReason::kMaxTime);
  EXPECT_LT(machine.clock.Monotonic(), absl::Seconds(2.2));
}

TEST_F(MeasureTest, KeepsFlushAndPreparationOutOfTheSamples) {
  ScriptedMachine machine(Alternating(0));
  machine.prepare_s = 0.01;
  options_.flush_cache = true;
  options_.iters = 20;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_THAT(measured->samples, Each(DoubleNear(1e-3, 1e-6)));
  EXPECT_EQ(machine.flushes, 20 + options_.warmup);
  EXPECT_EQ(machine.prepared, 20 + options_.warmup);
  EXPECT_EQ(measured->flushed_bytes, 4096u);
}

TEST_F(MeasureTest, DoesNotFlushUnasked) {
  ScriptedMachine machine(Alternating(0));
  options_.iters = 5;
  ASSERT_TRUE(Run(machine).ok());
  EXPECT_EQ(machine.flushes, 0);
}

TEST_F(MeasureTest, PipelinedSamplesAreBatchTimesDividedByTheirLength) {
  ScriptedMachine machine([](std::int64_t) { return 2e-6; });
  machine.overhead_s = 1e-6;
  options_.mode = "pipelined";
  options_.iters = 7;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_GT(measured->batch, 100);
  EXPECT_LT(measured->batch, 1000);
  EXPECT_THAT(measured->samples, SizeIs(7));
  EXPECT_THAT(measured->samples, Each(DoubleNear(2e-6, 2e-8)));
}

TEST_F(MeasureTest, PipelinedLongIterationsAreBatchesOfOne) {
  ScriptedMachine machine([](std::int64_t) { return 0.1; });
  options_.mode = "pipelined";
  options_.iters = 3;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->batch, 1);
  EXPECT_EQ(machine.iterations, 3 + options_.warmup);
}

TEST_F(MeasureTest, ReportsTheTimersOwnCostAndDoesNotSubtractIt) {
  ScriptedMachine machine([](std::int64_t) { return 1e-6; });
  machine.overhead_s = 5e-8;
  options_.iters = 10;
  const auto measured = Run(machine);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_NEAR(measured->timer_overhead_s, 5e-8, 1e-10);
  EXPECT_THAT(measured->samples, Each(DoubleNear(1.05e-6, 1e-9)));
}

TEST_F(MeasureTest, MistrustsWhatIsShortAgainstTheTimer) {
  ScriptedMachine machine([](std::int64_t) { return 1e-6; });
  machine.overhead_s = 5e-8;
  options_.iters = 10;
  CaseResult result;
  Run(machine).value().Describe(result);
  EXPECT_THAT(result.info["mistrusted"], HasSubstr("less than 100 times"));
  ScriptedMachine longer([](std::int64_t) { return 1e-4; });
  longer.overhead_s = 5e-8;
  CaseResult trusted;
  Run(longer).value().Describe(trusted);
  EXPECT_EQ(trusted.info.count("mistrusted"), 0u);
}

TEST_F(MeasureTest, DescribesHowItMeasured) {
  ScriptedMachine machine(Alternating(0));
  options_.iters = 10;
  CaseResult result;
  Run(machine).value().Describe(result);
  EXPECT_EQ(result.info["stopped_by"], "iters");
  EXPECT_EQ(result.info["batch"], "1");
  EXPECT_EQ(result.info["flushed_bytes"], "0");
  EXPECT_NEAR(result.scalars["timer_overhead"], 1e-9, 1e-10);
}

TEST_F(MeasureTest, AsksATeamOfOneForNothing) {
  ScriptedMachine machine(Alternating(0));
  ASSERT_TRUE(Run(machine).ok());
  EXPECT_EQ(team_.exchanges, 0);
}

TEST_F(MeasureTest, EndsAfterTheChunkInWhichTheJobWasCancelled) {
  ScriptedMachine machine(Alternating(0));
  options_.iters = 1'000'000;
  reporter_.cancelled = [&machine] { return machine.iterations > 100; };
  EXPECT_TRUE(absl::IsCancelled(Run(machine).status()));
  EXPECT_LT(machine.iterations, 300);
  EXPECT_THAT(reporter_.samples, SizeIs(0));
}

TEST_F(MeasureTest, PassesOnWhatTheOperationSays) {
  ScriptedMachine machine(Alternating(0));
  machine.fail_at = 30;
  const absl::Status status = Run(machine).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("device lost"));
}

TEST(MeasureTeamTest, RanksOfDifferentSpeedTakeEqualNumbersOfSamples) {
  ThreadTeam team(3);
  std::mutex mu;
  std::vector<std::size_t> counts;
  std::vector<StopReason> reasons;
  team.Run([&](Team& mine) {
    const double scale = 1 + mine.rank();
    ScriptedMachine machine(
        [scale](std::int64_t i) { return scale * (i % 2 == 0 ? 1e-3 : 1.001e-3); });
    RecordingReporter reporter;
    const auto measured =
        Measure(mine, machine, machine, DefaultOptions(), machine.clock, reporter);
    ASSERT_TRUE(measured.ok()) << measured.status();
    const std::lock_guard<std::mutex> lock(mu);
    counts.push_back(measured->samples.size());
    reasons.push_back(measured->stopped_by);
  });
  ASSERT_THAT(counts, SizeIs(3));
  EXPECT_THAT(counts, Each(counts[0]));
  EXPECT_THAT(reasons, Each(StopReason::kNoise));
  EXPECT_GE(counts[0], 499u);  // min_time holds for the fastest rank
}

TEST(MeasureTeamTest, TheNoisiestRankDecides) {
  ThreadTeam team(2);
  std::atomic<int> settled = 0;
  team.Run([&](Team& mine) {
    ScriptedMachine machine(Alternating(mine.rank() == 1 ? 0.2 : 0.0));
    RecordingReporter reporter;
    const auto measured =
        Measure(mine, machine, machine, DefaultOptions(), machine.clock, reporter);
    ASSERT_TRUE(measured.ok()) << measured.status();
    if (measured->stopped_by == StopReason::kSettled) ++settled;
  });
  EXPECT_EQ(settled, 2);
}

TEST(MeasureTeamTest, BatchesAreEquallyLongOnAllRanks) {
  ThreadTeam team(2);
  std::mutex mu;
  std::vector<std::int64_t> batches;
  team.Run([&](Team& mine) {
    const double seconds = mine.rank() == 0 ? 1e-6 : 4e-6;
    ScriptedMachine machine([seconds](std::int64_t) { return seconds; });
    RecordingReporter reporter;
    MeasureOptions options = DefaultOptions();
    options.mode = "pipelined";
    options.iters = 4;
    const auto measured = Measure(mine, machine, machine, options, machine.clock, reporter);
    ASSERT_TRUE(measured.ok()) << measured.status();
    const std::lock_guard<std::mutex> lock(mu);
    batches.push_back(measured->batch);
  });
  ASSERT_THAT(batches, SizeIs(2));
  EXPECT_EQ(batches[0], batches[1]);
  EXPECT_GT(batches[0], 400);
}

// What a rank that looks on times is next to nothing: it must neither stretch the batches nor keep
// the others from being quiet or from having sampled for long enough.
TEST(MeasureTeamTest, ARankThatLooksOnDecidesNothing) {
  ThreadTeam team(2);
  std::mutex mutex;
  std::vector<Measurement> all(2);
  std::vector<RecordingReporter> reporters(2);
  team.Run([&](Team& mine) {
    const auto rank = static_cast<std::size_t>(mine.rank());
    const ScriptedMachine::Seconds next_to_nothing = [](std::int64_t i) {
      return i % 2 == 0 ? 1e-8 : 9e-8;
    };
    ScriptedMachine machine(rank == 0 ? Alternating(0.002) : next_to_nothing);
    machine.looks_on = rank == 1;
    const auto measured =
        Measure(mine, machine, machine, DefaultOptions(), machine.clock, reporters[rank]);
    const std::lock_guard lock(mutex);
    ASSERT_TRUE(measured.ok()) << measured.status();
    all[rank] = *measured;
  });
  EXPECT_EQ(all[0].stopped_by, StopReason::kNoise);
  EXPECT_LE(all[0].samples.size(), 700u);  // of 1 ms: 0.5 s and at most a chunk
  EXPECT_THAT(all[1].samples, SizeIs(0));
  EXPECT_THAT(reporters[1].samples, SizeIs(0));
  EXPECT_EQ(all[1].mistrusted, "");
}

TEST(MeasureTeamTest, OfRanksThatWorkTogetherTheSlowestMakesTheBatch) {
  for (const bool together : {false, true}) {
    ThreadTeam team(2);
    std::mutex mutex;
    std::vector<std::int64_t> batches;
    team.Run([&](Team& mine) {
      const double seconds = mine.rank() == 0 ? 1e-6 : 1e-4;
      ScriptedMachine machine([seconds](std::int64_t) { return seconds; });
      machine.one_for_all = together;
      MeasureOptions options = DefaultOptions();
      options.mode = "pipelined";
      options.iters = 3;
      RecordingReporter reporter;
      const auto measured = Measure(mine, machine, machine, options, machine.clock, reporter);
      const std::lock_guard lock(mutex);
      ASSERT_TRUE(measured.ok()) << measured.status();
      batches.push_back(measured->batch);
    });
    const std::int64_t expected = together ? 5 : 500;  // half a millisecond of the deciding rank
    EXPECT_THAT(batches,
                Each(::testing::AllOf(::testing::Ge(expected), ::testing::Le(expected + 1))));
  }
}

TEST_F(MeasureTest, MeetsLastBeforeEachSample) {
  ScriptedMachine machine(Alternating(0));
  options_.iters = 20;
  ASSERT_TRUE(Run(machine).ok());
  EXPECT_EQ(machine.met, 20 + options_.warmup);
}

TEST(MeasureTeamTest, OneExchangePerChunk) {
  ThreadTeam team(2);
  team.Run([&](Team& mine) {
    ScriptedMachine machine(Alternating(0));  // a chunk is about 50 of them
    RecordingReporter reporter;
    MeasureOptions options = DefaultOptions();
    options.iters = 500;
    ASSERT_TRUE(Measure(mine, machine, machine, options, machine.clock, reporter).ok());
  });
  EXPECT_LE(team.rounds(), 13);
  EXPECT_GE(team.rounds(), 5);
}

// Iterations that two ranks run for 500 samples, each, and the chunks that it took.
struct Spent {
  std::int64_t samples = 0, iterations = 0, warmup = 0, chunks = 0;
};
Spent SpendOnTwoRanks(bool flush_cache) {
  ThreadTeam team(2);
  std::mutex mu;
  Spent spent;
  team.Run([&](Team& mine) {
    ScriptedMachine machine(Alternating(0));
    RecordingReporter reporter;
    MeasureOptions options = DefaultOptions();
    options.iters = 500;
    options.flush_cache = flush_cache;
    const auto measured = Measure(mine, machine, machine, options, machine.clock, reporter);
    ASSERT_TRUE(measured.ok()) << measured.status();
    const std::lock_guard<std::mutex> lock(mu);
    spent.samples = static_cast<std::int64_t>(measured->samples.size());
    spent.iterations = machine.iterations;
    spent.warmup = options.warmup;
  });
  spent.chunks = team.rounds() - 1;  // the first exchange ends the warm-up
  return spent;
}

TEST(MeasureTeamTest, EachChunkBeginsWithAnIterationThatDoesNotCount) {
  const Spent spent = SpendOnTwoRanks(false);
  EXPECT_EQ(spent.samples, 500);
  EXPECT_GE(spent.chunks, 4);
  EXPECT_EQ(spent.iterations, spent.warmup + 500 + spent.chunks);
}

TEST(MeasureTeamTest, ColdSamplesNeedNoIterationBeforeThem) {
  const Spent spent = SpendOnTwoRanks(true);
  EXPECT_EQ(spent.samples, 500);
  EXPECT_EQ(spent.iterations, spent.warmup + 500);
}

TEST(MeasureTeamTest, AllRanksStopWhenOneIsCancelled) {
  ThreadTeam team(3);
  std::atomic<int> cancelled = 0;
  team.Run([&](Team& mine) {
    ScriptedMachine machine(Alternating(0));
    RecordingReporter reporter;
    if (mine.rank() == 2) reporter.cancelled = [&machine] { return machine.iterations > 200; };
    MeasureOptions options = DefaultOptions();
    options.iters = 1'000'000;
    const auto measured = Measure(mine, machine, machine, options, machine.clock, reporter);
    if (absl::IsCancelled(measured.status())) ++cancelled;
  });
  EXPECT_EQ(cancelled, 3);
}

}  // namespace
}  // namespace param
