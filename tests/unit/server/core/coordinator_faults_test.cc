#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/server/core/coordinator_fixture.h"

namespace param {
namespace {

using testing::HasSubstr;

TEST_F(CoordinatorTest, LostAgentFailsTheAttemptAfterItsLease) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  const AttemptKey key{job->job_id, 1};
  coordinator_->Disconnected(n2.get());
  Drain();
  clock_.Advance(options_.lease - absl::Seconds(1));
  coordinator_->Heartbeat(n1.get());
  Advance(absl::ZeroDuration());
  EXPECT_TRUE(n1->Sent<StopAttempt>().empty());
  Advance(absl::Seconds(1));
  ASSERT_EQ(n1->Sent<StopAttempt>().size(), 1u);
  End(n1, key);
  const Job ended = Stored(job->job_id);
  EXPECT_EQ(ended.state, JobState::kFailed);
  EXPECT_EQ(ended.failure.node, "n2");
  EXPECT_THAT(ended.failure.cause, HasSubstr("agent lost"));
}

TEST_F(CoordinatorTest, LostAttemptIsRepeatedWhileRetriesAreLeft) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  JobSpec spec = Gemm(1);
  spec.retries = 1;
  const auto job = Submit(spec);
  coordinator_->Disconnected(n1.get());
  Drain();
  clock_.Advance(options_.lease / 2);
  coordinator_->Heartbeat(n2.get());
  Advance(options_.lease / 2);
  const AttemptKey second{job->job_id, 2};
  ASSERT_EQ(n2->Sent<StartAttempt>().size(), 1u);
  EXPECT_EQ(n2->Sent<StartAttempt>()[0].key, second);
  RunRank(n2, second, 0);
  End(n2, second);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kSucceeded);
  EXPECT_EQ((*store_.GetAttempts(job->job_id))[0].state, "LOST");
}

TEST_F(CoordinatorTest, ReconnectedAgentGoesOnWithItsAttempt) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  coordinator_->Disconnected(n1.get());
  Drain();
  const auto back = Connected("n1", "first", {key});
  RunRank(back, key, 0);
  End(back, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kSucceeded);
}

TEST_F(CoordinatorTest, RestartedAgentLosesItsAttempt) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  Say(n1, {job->job_id, 1}, 0, line::CaseBegin{0});
  coordinator_->Disconnected(n1.get());
  Drain();
  const auto back = Connected("n1", "second");
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
  EXPECT_THAT(Stored(job->job_id).failure.cause, HasSubstr("restarted"));
}

TEST_F(CoordinatorTest, RestartedCoordinatorGoesOnWithTheJob) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  const AttemptKey key{job->job_id, 1};
  RunRank(n1, key, 0);
  Restart();
  const auto m1 = Connected("n1", "first", {key});
  const auto m2 = Connected("n2", "first", {key});
  RunRank(m2, key, 1);
  End(m1, key);
  End(m2, key);
  const Job ended = Stored(job->job_id);
  EXPECT_EQ(ended.state, JobState::kSucceeded) << ended.reason;
  const auto cases = store_.GetCases(job->job_id);
  for (const Measurement& m : (*cases)[0].measurements) {
    if (m.rank == -1 && m.metric == "time") {
      EXPECT_EQ(m.summary.n, 6);
    }
  }
}

TEST_F(CoordinatorTest, RestartedCoordinatorGivesAgentsOneLease) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  Restart();
  Advance(options_.lease - absl::Seconds(1));
  EXPECT_EQ(Stored(job->job_id).state, JobState::kStarting);
  Advance(absl::Seconds(1));
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
}

TEST_F(CoordinatorTest, EventsSentAgainChangeNothingAndAreAcknowledged) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  Say(n1, key, 0, line::CaseBegin{0});
  Say(n1, key, 0, line::Samples{0, "time", "s", {}, {1.0}});
  const RankEvent again{key, 0, 2, 0,
                        line::Encode(line::FromWorker{line::Samples{0, "time", "s", {}, {1.0}}})};
  coordinator_->RankEvents(n1.get(), {again});
  Drain();
  EXPECT_EQ(n1->Sent<EventsAck>().back().seq, 2u);
  Say(n1, key, 0, line::CaseEnd{0, line::CaseStatus::kPassed, "", {}, {}});
  const auto cases = store_.GetCases(job->job_id);
  for (const Measurement& m : (*cases)[0].measurements) {
    if (m.metric == "time") {
      EXPECT_EQ(m.summary.n, 1);
    }
  }
}

TEST_F(CoordinatorTest, AnEventAfterAGapIsNotTaken) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  coordinator_->RankEvents(n1.get(),
                           {RankEvent{key, 0, 5, 0, line::Encode(line::FromWorker{line::Done{}})}});
  Drain();
  EXPECT_TRUE(n1->Sent<EventsAck>().empty());
}

TEST_F(CoordinatorTest, AnAgentCannotReportForAnothersRank) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  Say(n1, {job->job_id, 1}, 1, line::Failure{"INTERNAL", line::Phase::kTimed, "a lie", "", 0, -1});
  EXPECT_TRUE(n2->Sent<StopAttempt>().empty());
}

TEST_F(CoordinatorTest, EventsOfAJobThatEndedAreAcknowledgedAndForgotten) {
  const auto n1 = Connected("n1");
  coordinator_->RankEvents(n1.get(), {RankEvent{{"j-gone", 1}, 0, 7, 0, "x"}});
  Drain();
  ASSERT_EQ(n1->Sent<EventsAck>().size(), 1u);
  EXPECT_EQ(n1->Sent<EventsAck>()[0].seq, 7u);
}

TEST_F(CoordinatorTest, AFullDiskAtTheEndOfAJobIsTriedAgain) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  RunRank(n1, key, 0);
  // The wait behind earlier events, then the end itself.
  store_.FailNext(absl::ResourceExhaustedError("disk full"), 2);
  End(n1, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kRunning);
  coordinator_->Heartbeat(n1.get());
  Advance(options_.store_retry);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kSucceeded);
}

TEST_F(CoordinatorTest, EventsThatCannotBeStoredAreNotAcknowledgedAndCanComeAgain) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  store_.FailNext(absl::ResourceExhaustedError("disk full"), 1);
  Say(n1, key, 0, line::CaseBegin{0});
  EXPECT_TRUE(n1->Sent<EventsAck>().empty());
  EXPECT_EQ(n1->closed.code(), absl::StatusCode::kResourceExhausted);
  const auto back = Connected("n1", "first", {key});
  seq_[{key, 0}] = 0;
  Say(back, key, 0, line::CaseBegin{0});
  EXPECT_EQ(back->Sent<EventsAck>().back().seq, 1u);
}

TEST_F(CoordinatorTest, AnEndWhoseResultsCouldNotBeStoredWaitsForThem) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  store_.FailNext(absl::ResourceExhaustedError("disk full"), 1);
  Say(n1, key, 0, line::CaseBegin{0});
  End(n1, key);  // was on its way before the agent could know
  EXPECT_EQ(Stored(job->job_id).state, JobState::kStarting);
  const auto back = Connected("n1", "first", {key});
  seq_[{key, 0}] = 0;
  RunRank(back, key, 0);
  End(back, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kSucceeded);
}

TEST_F(CoordinatorTest, AJobThatCannotBeStoredIsNotAccepted) {
  store_.FailNext(absl::ResourceExhaustedError("disk full"), 1);
  EXPECT_EQ(Submit(Gemm(1)).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(coordinator_->counts().jobs_queued, 0);
}

TEST_F(CoordinatorTest, AnAttemptThatCannotBeStoredIsNotStarted) {
  const auto n1 = Connected("n1");
  const auto first = Submit(Gemm(1)), second = Submit(Gemm(1));
  RunRank(n1, {first->job_id, 1}, 0);
  // The wait behind earlier events, the end of the first, the attempt of the second.
  store_.FailNext(absl::ResourceExhaustedError("disk full"), 3);
  End(n1, {first->job_id, 1});
  EXPECT_EQ(n1->Sent<StartAttempt>().size(), 1u);
  EXPECT_EQ(Stored(second->job_id).state, JobState::kFailed);
  EXPECT_EQ(Stored(second->job_id).failure.phase, "place");
  EXPECT_EQ(coordinator_->Nodes()[0].state, "ready");
}

TEST_F(CoordinatorTest, ALineThatARankMayNotSayFailsTheAttempt) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  Say(n1, key, 0, line::CaseBegin{7});
  ASSERT_EQ(n1->Sent<StopAttempt>().size(), 1u);
  End(n1, key);
  EXPECT_EQ(Stored(job->job_id).failure.code, "INVALID_ARGUMENT");
}

TEST_F(CoordinatorTest, AnAgentThatEndsAnAttemptWithoutResultsLosesIt) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  End(n1, {job->job_id, 1});
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
  EXPECT_THAT(Stored(job->job_id).failure.cause, HasSubstr("without its results"));
}

TEST_F(CoordinatorTest, ABadExchangePartFailsTheAttempt) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  coordinator_->ExchangePart(n1.get(), {job->job_id, 1}, 0, {5}, {"x"});
  Drain();
  EXPECT_EQ(n1->Sent<StopAttempt>().size(), 1u);
}

TEST_F(CoordinatorTest, AgentsAreToldWhichAttemptsAreNotTheirsAnyMore) {
  auto session = std::make_shared<PlayedSession>();
  const auto welcome = Connect("n1", session, "first", {{"j-old", 3}});
  ASSERT_TRUE(welcome.ok());
  EXPECT_EQ(welcome->unknown, (std::vector<AttemptKey>{{"j-old", 3}}));
}

TEST_F(CoordinatorTest, ANewInventoryCanMakeAJobPlaceable) {
  const auto n1 = Connected("n1");
  Inventory without = NodeInventory("boot-n1", {0, 1});
  without.backends[0].usable = false;
  coordinator_->InventoryChanged(n1.get(), without, "{}");
  Drain();
  EXPECT_EQ(Submit(Gemm(1)).status().code(), absl::StatusCode::kFailedPrecondition);
  coordinator_->InventoryChanged(n1.get(), NodeInventory("boot-n1", {0, 1}), "{}");
  Drain();
  EXPECT_TRUE(Submit(Gemm(1)).ok());
}

TEST_F(CoordinatorTest, ACancelThatWasAnsweredSurvivesARestart) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  bool answered = false;
  coordinator_->Cancel(job->job_id, [&answered](absl::StatusOr<Job>) { answered = true; });
  Drain();
  ASSERT_TRUE(answered);
  Restart();
  const auto back = Connected("n1", "first", {key});
  EXPECT_FALSE(back->Sent<StopAttempt>().empty());
  RunRank(back, key, 0);
  End(back, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kCancelled);
}

TEST_F(CoordinatorTest, ACancelThatCannotBeStoredIsNotAnsweredAsIfItWere) {
  const auto n1 = Connected("n1");
  const auto running = Submit(Gemm(1)), queued = Submit(Gemm(1));
  for (const std::string& id : {running->job_id, queued->job_id}) {
    store_.FailNext(absl::ResourceExhaustedError("disk full"), 2);  // the change, and the answer
    absl::StatusOr<Job> answer = absl::UnknownError("no reply");
    coordinator_->Cancel(id, [&answer](absl::StatusOr<Job> job) { answer = std::move(job); });
    Drain();
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted) << id;
    EXPECT_THAT(answer.status().message(), HasSubstr(id));
  }
  EXPECT_FALSE(n1->Sent<StopAttempt>().empty());  // it takes effect all the same
  End(n1, {running->job_id, 1});
  Advance(options_.store_retry);
  EXPECT_EQ(Stored(running->job_id).state, JobState::kCancelled);
  EXPECT_EQ(Stored(queued->job_id).state, JobState::kCancelled);
}

TEST_F(CoordinatorTest, AFailureKeepsItsCauseOverARestart) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  const AttemptKey key{job->job_id, 1};
  clock_.Advance(absl::Milliseconds(1));
  Say(n2, key, 1, line::Failure{"ABORTED", line::Phase::kTimed, "the cause", "", 0, 0});
  clock_.Advance(absl::Milliseconds(1));
  Say(n1, key, 0, line::Failure{"CANCELLED", line::Phase::kTimed, "a consequence", "", 0, 0});
  Restart();
  const auto m1 = Connected("n1", "first", {key}), m2 = Connected("n2", "first", {key});
  End(m1, key);
  End(m2, key);
  EXPECT_EQ(Stored(job->job_id).failure.cause, "the cause");
  EXPECT_EQ(Stored(job->job_id).failure.node, "n2");
}

TEST_F(CoordinatorTest, ARefusedEventStaysAFailureOverARestart) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  Say(n1, key, 0, line::CaseBegin{7});
  Restart();
  const auto back = Connected("n1", "first", {key});
  EXPECT_FALSE(back->Sent<StopAttempt>().empty());
  End(back, key);
  EXPECT_EQ(Stored(job->job_id).failure.code, "INVALID_ARGUMENT");
}

TEST_F(CoordinatorTest, AStartThatNeverArrivedIsSentAgain) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  Restart();
  const auto back = Connected("n1", "first");
  ASSERT_EQ(back->Sent<StartAttempt>().size(), 1u);
  const AttemptKey key{job->job_id, 1};
  RunRank(back, key, 0);
  End(back, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kSucceeded);
}

TEST_F(CoordinatorTest, ResultsWhoseWriteFailedAreStoredWithTheEnd) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  Say(n1, key, 0, line::CaseBegin{0});
  Say(n1, key, 0, line::Samples{0, "time", "s", {}, {1.0}});
  // The event of the case's end is stored; what follows from it is not.
  RankEvent event{
      key, 0, ++seq_[{key, 0}], 0,
      line::Encode(line::FromWorker{line::CaseEnd{0, line::CaseStatus::kPassed, "", {}, {}}})};
  coordinator_->RankEvents(n1.get(), {event});
  store_.FailNext(absl::ResourceExhaustedError("disk full"), 1);
  Drain();
  End(n1, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
  const auto cases = store_.GetCases(job->job_id);
  EXPECT_EQ((*cases)[0].status, line::CaseStatus::kPassed);
  EXPECT_FALSE((*cases)[0].measurements.empty());
}

TEST_F(CoordinatorTest, SamplesThatCannotBeAreRefused) {
  for (const line::Samples& lie :
       {line::Samples{0, "flops", "FLOP/s", {}, {1}}, line::Samples{0, "time", "ms", {}, {1}},
        line::Samples{0, "time", "s", {}, {std::nan("")}}}) {
    const auto n1 = Connected("n1");
    const auto job = Submit(Gemm(1));
    const AttemptKey key{job->job_id, 1};
    Say(n1, key, 0, lie);
    End(n1, key);
    EXPECT_EQ(Stored(job->job_id).failure.code, "INVALID_ARGUMENT") << lie.metric;
  }
}

}  // namespace
}  // namespace param
