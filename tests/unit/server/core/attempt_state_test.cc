#include "server/core/attempt_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/core/exchange_table.h"

namespace param {
namespace {

using testing::HasSubstr;

class AttemptStateTest : public testing::Test {
 protected:
  AttemptStateTest() {
    const BenchmarkSpec& bench = **FindBenchmark("gemm");
    std::vector<CaseRecord> cases;
    auto planned = ExpandCases(bench, {{"m", "8,16"}});
    for (Case& each : *planned) {
      CaseRecord record;
      record.index = static_cast<int>(cases.size());
      record.planned = std::move(each);
      cases.push_back(std::move(record));
    }
    state_ = std::make_unique<AttemptState>(bench, AttemptKey{"j", 1},
                                            std::vector<std::string>{"n1", "n2"}, std::move(cases));
  }
  absl::StatusOr<AttemptState::Effects> Say(int rank, const line::FromWorker& message) {
    return state_->Apply(
        RankEvent{{"j", 1}, rank, state_->NextSeq(rank), ++time_, line::Encode(message)});
  }
  std::unique_ptr<AttemptState> state_;
  std::int64_t time_ = 100;
};

TEST_F(AttemptStateTest, MarksAPhaseWhenTheLastRankIsThrough) {
  ASSERT_TRUE(Say(0, line::PhaseBegin{line::Phase::kRendezvous, -1}).ok());
  EXPECT_EQ(state_->timeline().spawned, 0);
  ASSERT_TRUE(Say(1, line::PhaseBegin{line::Phase::kRendezvous, -1}).ok());
  EXPECT_EQ(state_->timeline().spawned, 102);
}

TEST_F(AttemptStateTest, FirstRankMarksWarmUpAndTimed) {
  ASSERT_TRUE(Say(1, line::PhaseBegin{line::Phase::kWarmup, 0}).ok());
  ASSERT_TRUE(Say(0, line::PhaseBegin{line::Phase::kTimed, 0}).ok());
  EXPECT_EQ(state_->timeline().warmup, 101);
  EXPECT_EQ(state_->timeline().first_timed, 102);
}

TEST_F(AttemptStateTest, RefusesWhatARankMayNotSay) {
  EXPECT_THAT(std::string(Say(0, line::CaseBegin{2}).status().message()),
              HasSubstr("not one of the job's 2"));
  EXPECT_FALSE(Say(0, line::Samples{-1, "time", "s", {}, {1}}).ok());
  ASSERT_TRUE(Say(0, line::CaseEnd{0, line::CaseStatus::kPassed, "", {}, {}}).ok());
  EXPECT_THAT(
      std::string(
          Say(0, line::CaseEnd{0, line::CaseStatus::kPassed, "", {}, {}}).status().message()),
      HasSubstr("ended twice"));
  EXPECT_FALSE(Say(0, line::Samples{0, "time", "s", {}, {1}}).ok());
  EXPECT_FALSE(state_->Apply(RankEvent{{"j", 1}, 2, 1, 0, "{}"}).ok());
  EXPECT_FALSE(state_->Apply(RankEvent{{"j", 1}, 1, 1, 0, "not json"}).ok());
}

TEST_F(AttemptStateTest, TheFirstFailureIsTheCause) {
  ASSERT_TRUE(
      Say(1, line::Failure{"ABORTED", line::Phase::kTimed, "first", "10.0.0.2:5", 111, 0}).ok());
  ASSERT_TRUE(Say(0, line::Failure{"ABORTED", line::Phase::kTimed, "second", "", 0, 0}).ok());
  EXPECT_EQ(state_->failure().cause, "first");
  EXPECT_EQ(state_->failure().node, "n2");
  EXPECT_EQ(state_->failure().address, "10.0.0.2:5");
  EXPECT_EQ(state_->failure().error_number, 111);
  EXPECT_TRUE(state_->AllRanksEnded());
}

TEST_F(AttemptStateTest, WordsOfARankThatEndedChangeNothing) {
  ASSERT_TRUE(Say(0, line::Done{}).ok());
  const auto late = Say(0, line::CaseBegin{0});
  ASSERT_TRUE(late.ok());
  EXPECT_TRUE(late->duplicate);
}

TEST_F(AttemptStateTest, LogsAndFactsComeThrough) {
  const auto log = Say(0, line::LogLine{"warn", "hot"});
  ASSERT_TRUE(log.ok() && log->log.has_value());
  EXPECT_EQ(log->log->text, "hot");
  const auto facts = Say(0, line::Environment{{{"kernel", "6"}}});
  ASSERT_TRUE(facts.ok() && facts->environment.has_value());
  EXPECT_EQ(facts->environment->facts.at("kernel"), "6");
}

TEST_F(AttemptStateTest, CasesEndInOrderWhenTheLastRankSaysSo) {
  ASSERT_TRUE(Say(0, line::CaseEnd{0, line::CaseStatus::kPassed, "", {}, {}}).ok());
  const auto last = Say(1, line::CaseEnd{0, line::CaseStatus::kSkipped, "cannot", {}, {}});
  EXPECT_EQ(last->concluded, std::vector<int>({0}));
  EXPECT_EQ(state_->cases()[0].status, line::CaseStatus::kSkipped);
  EXPECT_EQ(state_->cases_done(), 1);
  EXPECT_EQ(state_->ConcludeRest("gone"), std::vector<int>({1}));
  EXPECT_EQ(state_->cases()[1].reason, "gone");
}

TEST_F(AttemptStateTest, SamplesAreHandedOutOnce) {
  ASSERT_TRUE(Say(0, line::Samples{0, "time", "s", {}, {1, 2}}).ok());
  EXPECT_EQ(state_->samples_of_current_case(), 2);
  EXPECT_EQ(state_->TakeSamples(0).size(), 1u);
  EXPECT_TRUE(state_->TakeSamples(0).empty());
}

TEST_F(AttemptStateTest, LosingANodeEndsItsRanksOnly) {
  state_->FailUnfinished(Failure{"UNAVAILABLE", "timed", "n2", 1, "gone", "", 0});
  EXPECT_TRUE(state_->RanksEndedOn("n2"));
  EXPECT_FALSE(state_->RanksEndedOn("n1"));
  EXPECT_TRUE(state_->failed());
}

TEST(ExchangeTable, RefusesPartsThatCannotBe) {
  ExchangeTable table(2);
  EXPECT_FALSE(table.Add(0, {2}, {"x"}).ok());
  EXPECT_FALSE(table.Add(0, {0, 1}, {"x"}).ok());
  EXPECT_FALSE(table.Add(0, {0}, {std::string(line::kMaxExchangeBytes + 1, 'x')}).ok());
  for (std::uint64_t round = 10; round < 13; ++round)
    EXPECT_TRUE(table.Add(round, {0}, {"x"}).ok());
  EXPECT_FALSE(table.Add(99, {0}, {"x"}).ok());  // too many open rounds
}

TEST(ExchangeTable, KeepsTwoAnsweredRounds) {
  ExchangeTable table(1);
  for (std::uint64_t round = 0; round < 4; ++round) {
    EXPECT_EQ(*table.Add(round, {0}, {"x"}), ExchangeTable::Answer::kToAll);
  }
  EXPECT_EQ(*table.Add(3, {0}, {"x"}), ExchangeTable::Answer::kToAsker);
  EXPECT_EQ(*table.Add(2, {0}, {"x"}), ExchangeTable::Answer::kToAsker);
}

}  // namespace
}  // namespace param
