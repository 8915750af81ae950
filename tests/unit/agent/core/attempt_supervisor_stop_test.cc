#include "tests/unit/agent/core/attempt_supervisor_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(AttemptSupervisorTest, AWorkersOwnFailureIsPassedOnAndMakesTheDeviceSuspect) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  Say(0, line::Failure{"INTERNAL", line::Phase::kCommInit, "no link", "10.0.0.7:1", 113, -1});
  EXPECT_EQ(OnlyFailure(0).cause, "no link");
  EXPECT_EQ(OnlyFailure(0).address, "10.0.0.7:1");
  EXPECT_EQ(OnlyFailure(0).error_number, 113);
  EXPECT_THAT(suspects_, ElementsAre("no link"));
  supervisor_->OnExit(0, ExitedWith(1));
  EXPECT_THAT(Events<line::Failure>(0), SizeIs(1));
}

TEST_F(AttemptSupervisorTest, ASpawnFailureEndsThatRankAndAbortsTheOthers) {
  launcher_.spawn_failures[1] = absl::ResourceExhaustedError("cannot start /x: no memory");
  Begin(GemmAttempt(2, 2, 1));
  EXPECT_EQ(OnlyFailure(1).code, "RESOURCE_EXHAUSTED");
  EXPECT_FALSE(supervisor_->has_ended());
  Advance(absl::Milliseconds(500));
  EXPECT_THAT(launcher_.signals[0], ElementsAre(SIGTERM));
  supervisor_->OnExit(0, SIGTERM);
  EXPECT_EQ(OnlyFailure(0).code, "CANCELLED");
  EXPECT_TRUE(supervisor_->has_ended());
}

TEST_F(AttemptSupervisorTest, ALauncherThatCannotStartEndsEveryRank) {
  launcher_.start_status = absl::InternalError("mkdtemp: No space left on device");
  Begin(GemmAttempt(2, 2, 1));
  EXPECT_EQ(OnlyFailure(0).code, "INTERNAL");
  EXPECT_EQ(OnlyFailure(1).code, "INTERNAL");
  EXPECT_TRUE(supervisor_->has_ended());
}

TEST_F(AttemptSupervisorTest, AGracefulStopLetsTheRanksFinish) {
  Begin(GemmAttempt(1, 1, 3));
  Greet(0);
  RunCase(0, 0);
  supervisor_->Stop({key_, true, "cancelled by local"});
  ASSERT_THAT(launcher_.SentTo<line::Cancel>(0), SizeIs(1));
  Say(0, line::Done{});
  supervisor_->OnExit(0, ExitedWith(0));
  EXPECT_THAT(Events<line::Done>(0), SizeIs(1));
}

TEST_F(AttemptSupervisorTest, AGracefulStopThatIsIgnoredEndsInAnAbort) {
  Begin(GemmAttempt(1, 1, 3));
  Greet(0);
  supervisor_->Stop({key_, true, "cancelled by local"});
  Advance(absl::Seconds(10));
  EXPECT_EQ(OnlyFailure(0).code, "CANCELLED");
  Advance(absl::Milliseconds(500));
  EXPECT_THAT(launcher_.signals[0], ElementsAre(SIGTERM));
  supervisor_->OnExit(0, SIGTERM);
  EXPECT_EQ(supervisor_->outcome(), "cancelled");
}

TEST_F(AttemptSupervisorTest, ACancelBeforeTheGreetingIsSaidAfterIt) {
  Begin(GemmAttempt(1, 1, 1));
  supervisor_->Stop({key_, true, "never mind"});
  launcher_.sent.clear();
  Greet(0);
  EXPECT_THAT(launcher_.SentTo<line::Cancel>(0), SizeIs(1));
}

TEST_F(AttemptSupervisorTest, ALogFloodIsCutAndTheCutIsSaid) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  for (int i = 0; i < 5000; ++i) supervisor_->OnOutput(0, absl::StrCat("line ", i));
  EXPECT_THAT(Events<line::LogLine>(0), SizeIs(200));
  clock_.Advance(absl::Seconds(1));
  supervisor_->OnOutput(0, "after");
  const auto logs = Events<line::LogLine>(0);
  ASSERT_THAT(logs, SizeIs(202));
  EXPECT_EQ(logs[200].text, "4800 lines dropped");
  EXPECT_EQ(logs[201].text, "after");
}

TEST_F(AttemptSupervisorTest, TheLastWordsOfACrashSurviveTheFlood) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  for (int i = 0; i < 1000; ++i) supervisor_->OnOutput(0, absl::StrCat("line ", i));
  supervisor_->OnOutput(0, "Assertion failed");
  supervisor_->OnExit(0, SIGABRT);
  const auto logs = Events<line::LogLine>(0);
  EXPECT_EQ(logs.back().text, "Assertion failed");
  EXPECT_EQ(logs[200].text, "781 lines dropped");
}

TEST_F(AttemptSupervisorTest, AFullSpoolFailsTheRankAndNamesThePlace) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  Say(0, line::CaseBegin{0});
  const std::vector<double> many(50'000, 0.001);
  Say(0, line::Samples{0, "time", "s", {}, many});
  Say(0, line::Samples{0, "time", "s", {}, many});
  EXPECT_EQ(OnlyFailure(0).code, "RESOURCE_EXHAUSTED");
  EXPECT_THAT(OnlyFailure(0).cause, HasSubstr("the spool in memory reached its limit"));
}

TEST_F(AttemptSupervisorTest, AnExchangeGoesUpOnceAndComesDownToAll) {
  Begin(GemmAttempt(2, 3, 1));
  Greet(0);
  Greet(1);
  Say(1, line::Exchange{0, "b"});
  EXPECT_THAT(parts_, IsEmpty());
  Say(0, line::Exchange{0, "a"});
  ASSERT_THAT(parts_, SizeIs(1));
  EXPECT_THAT(parts_[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(parts_[0].data, ElementsAre("a", "b"));
  supervisor_->OnExchangeAll({key_, 0, {"a", "b", "c"}});
  supervisor_->OnExchangeAll({key_, 0, {"a", "b", "c"}});  // twice after a reconnect
  ASSERT_THAT(launcher_.SentTo<line::ExchangeReply>(0), SizeIs(1));
  EXPECT_THAT(launcher_.SentTo<line::ExchangeReply>(1)[0].data, ElementsAre("a", "b", "c"));
  EXPECT_THAT(Events<line::Exchange>(0), IsEmpty());
}

TEST_F(AttemptSupervisorTest, AnAnswerThatDoesNotFitTheRanksEndsTheAttempt) {
  Begin(GemmAttempt(1, 2, 1));
  Greet(0);
  Say(0, line::Exchange{0, "a"});
  supervisor_->OnExchangeAll({key_, 0, {"a"}});
  EXPECT_EQ(OnlyFailure(0).code, "INTERNAL");
}

TEST_F(AttemptSupervisorTest, WhatARankSaysAfterItsEndDoesNotCount) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  Say(0, line::Failure{"INTERNAL", line::Phase::kVerify, "x", "", 0, 0});
  const std::size_t events = AllEvents().size();
  Say(0, line::CaseBegin{0});
  Say(0, line::Done{});
  EXPECT_THAT(AllEvents(), SizeIs(events));
}

}  // namespace
}  // namespace param::agent
