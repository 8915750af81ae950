// Attempts whose launcher has a head node: the plan that agents get, and what they ask of each
// other.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/core/coordinator_fixture.h"

namespace param {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoordinatorLaunchTest : public CoordinatorTest {
 protected:
  static JobSpec MpiGemm(int nodes) {
    JobSpec spec = Gemm(nodes);
    spec.backend = "mpi";
    return spec;
  }
  // Two nodes that run an attempt.
  void Run() {
    n1_ = Connected("n1");
    n2_ = Connected("n2");
    const auto job = Submit(MpiGemm(2));
    ASSERT_TRUE(job.ok()) << job.status();
    key_ = {job->job_id, 1};
  }
  std::shared_ptr<PlayedSession> n1_, n2_;
  AttemptKey key_;
};

TEST_F(CoordinatorLaunchTest, EveryAgentGetsThePlan) {
  Run();
  for (const auto& session : {n1_, n2_}) {
    ASSERT_THAT(session->Sent<StartAttempt>(), SizeIs(1));
    const StartAttempt start = session->Sent<StartAttempt>()[0];
    EXPECT_EQ(start.launcher, "mpirun");
    EXPECT_THAT(start.plan.hosts,
                ElementsAre(LaunchHost{"pnode0", "n1", 1}, LaunchHost{"pnode1", "n2", 1}));
    EXPECT_EQ(start.plan.interface, "10.0.0.0/24");
    EXPECT_THAT(start.plan.head_addresses, ElementsAre("10.0.0.1"));
  }
}

TEST_F(CoordinatorLaunchTest, AnInterfaceThatIsAskedForIsTheOne) {
  const auto n1 = Connected("n1");
  JobSpec spec = MpiGemm(1);
  spec.interface = "ib0";
  ASSERT_TRUE(Submit(spec).ok());
  EXPECT_EQ(n1->Sent<StartAttempt>()[0].plan.interface, "ib0");
  spec.interface = "ib0;reboot";
  EXPECT_EQ(Submit(spec).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorLaunchTest, AnInterfaceThatNothingUsesIsNotTakenSilently) {
  const auto n1 = Connected("n1");
  JobSpec spec = Gemm(1);
  spec.interface = "eth0";
  const auto job = Submit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
  EXPECT_EQ(Stored(job->job_id).failure.phase, "place");
  EXPECT_THAT(Stored(job->job_id).failure.cause, HasSubstr("--interface eth0"));
  EXPECT_THAT(n1->Sent<StartAttempt>(), IsEmpty());
}

TEST_F(CoordinatorLaunchTest, WithoutSuchABackendThereIsNone) {
  const auto n1 = Connected("n1");
  ASSERT_TRUE(Submit(Gemm(1)).ok());
  EXPECT_EQ(n1->Sent<StartAttempt>()[0].launcher, "direct");
  EXPECT_THAT(n1->Sent<StartAttempt>()[0].plan.hosts, IsEmpty());
}

TEST_F(CoordinatorLaunchTest, ADaemonIsRelayedThereAndItsEndBack) {
  Run();
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {" orted", "-mca", "a", "b"});
  ASSERT_THAT(n2_->Sent<StartDaemon>(), SizeIs(1));
  EXPECT_EQ(n2_->Sent<StartDaemon>()[0].key, key_);
  EXPECT_EQ(n2_->Sent<StartDaemon>()[0].host, "pnode1");
  EXPECT_THAT(n2_->Sent<StartDaemon>()[0].args, ElementsAre(" orted", "-mca", "a", "b"));
  coordinator_->DaemonEnded(n2_.get(), key_, "pnode1", 137, "orted killed by SIGKILL");
  ASSERT_THAT(n1_->Sent<DaemonEnded>(), SizeIs(1));
  EXPECT_EQ(n1_->Sent<DaemonEnded>()[0].exit_code, 137);
  EXPECT_EQ(n1_->Sent<DaemonEnded>()[0].cause, "orted killed by SIGKILL");
}

TEST_F(CoordinatorLaunchTest, OnlyTheHeadOfARunningAttemptIsHeard) {
  Run();
  coordinator_->StartDaemon(n2_.get(), key_, "pnode0", {"orted"});
  ASSERT_THAT(n2_->Sent<DaemonEnded>(), SizeIs(1));
  EXPECT_THAT(n2_->Sent<DaemonEnded>()[0].cause, HasSubstr("n2 is not the head"));
  EXPECT_THAT(n1_->Sent<StartDaemon>(), IsEmpty());
  coordinator_->StartDaemon(n1_.get(), {"j-other", 1}, "pnode1", {"orted"});
  coordinator_->StartDaemon(n1_.get(), {key_.job_id, 2}, "pnode1", {"orted"});
  ASSERT_THAT(n1_->Sent<DaemonEnded>(), SizeIs(2));
  EXPECT_THAT(n1_->Sent<DaemonEnded>()[1].cause, HasSubstr("no such attempt"));
  EXPECT_THAT(n2_->Sent<StartDaemon>(), IsEmpty());
  coordinator_->DaemonEnded(n1_.get(), key_, "pnode1", 0, "");  // not its host
  EXPECT_THAT(n1_->Sent<DaemonEnded>(), SizeIs(2));
}

TEST_F(CoordinatorLaunchTest, NothingStartsOnceTheAttemptEnds) {
  Run();
  Say(n2_, key_, 1, line::Failure{"INTERNAL", line::Phase::kSpawn, "no", "", 0, -1});
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {"orted"});
  EXPECT_THAT(n2_->Sent<StartDaemon>(), IsEmpty());
  ASSERT_THAT(n1_->Sent<DaemonEnded>(), SizeIs(1));
}

TEST_F(CoordinatorLaunchTest, ANodeThatIsAwayHearsOfItsDaemonWhenItIsBack) {
  Run();
  coordinator_->Disconnected(n2_.get());
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {"orted", "x"});
  EXPECT_THAT(n1_->Sent<DaemonEnded>(), IsEmpty());
  const auto n2 = Connected("n2", "first", {key_});
  ASSERT_THAT(n2->Sent<StartDaemon>(), SizeIs(1));
  EXPECT_THAT(n2->Sent<StartDaemon>()[0].args, ElementsAre("orted", "x"));
}

TEST_F(CoordinatorLaunchTest, ANodeThatStaysAwayEndsTheAttempt) {
  Run();
  coordinator_->Disconnected(n2_.get());
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {"orted"});
  coordinator_->Heartbeat(n1_.get());
  clock_.Advance(options_.lease / 2);
  coordinator_->Heartbeat(n1_.get());
  Advance(options_.lease / 2 + absl::Seconds(1));
  ASSERT_THAT(n1_->Sent<StopAttempt>(), SizeIs(1));
  EXPECT_THAT(n1_->Sent<StopAttempt>()[0].reason, HasSubstr("agent lost"));
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {"orted"});
  EXPECT_THAT(n1_->Sent<DaemonEnded>(), SizeIs(1));
}

TEST_F(CoordinatorLaunchTest, AHeadThatWasAwayHearsOfTheEnds) {
  Run();
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {"orted"});
  coordinator_->Disconnected(n1_.get());
  coordinator_->DaemonEnded(n2_.get(), key_, "pnode1", 7, "gone");
  const auto n1 = Connected("n1", "first", {key_});
  ASSERT_THAT(n1->Sent<DaemonEnded>(), SizeIs(1));
  EXPECT_EQ(n1->Sent<DaemonEnded>()[0].exit_code, 7);
  coordinator_->StartDaemon(n1.get(), key_, "pnode1", {"orted"});  // asked again: the same answer
  ASSERT_THAT(n1->Sent<DaemonEnded>(), SizeIs(2));
  EXPECT_EQ(n1->Sent<DaemonEnded>()[1].cause, "gone");
  EXPECT_THAT(n2_->Sent<StartDaemon>(), SizeIs(1));
}

TEST_F(CoordinatorLaunchTest, AfterARestartWantsAreRelayedWhenTheTargetIsBack) {
  Run();
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {"orted"});
  Restart();
  const auto n1 = Connected("n1", "first", {key_});
  coordinator_->StartDaemon(n1.get(), key_, "pnode1", {"orted"});  // as agents do
  EXPECT_THAT(n1->Sent<DaemonEnded>(), IsEmpty());
  const auto n2 = Connected("n2", "first", {key_});
  EXPECT_THAT(n2->Sent<StartDaemon>(), SizeIs(1));
}

// A coordinator that was restarted knows the nodes of an attempt by name only, until they are back.
TEST_F(CoordinatorLaunchTest, AfterARestartTheStartWaitsForAllNodesOfThePlan) {
  Run();
  Restart();
  const auto n2 = Connected("n2", "second");  // it never began
  EXPECT_THAT(n2->Sent<StartAttempt>(), IsEmpty());
  const auto n1 = Connected("n1", "second");
  for (const auto& session : {n1, n2}) {
    ASSERT_THAT(session->Sent<StartAttempt>(), SizeIs(1));
    const StartAttempt start = session->Sent<StartAttempt>()[0];
    EXPECT_EQ(start.launcher, "mpirun");
    EXPECT_EQ(start.plan.interface, "10.0.0.0/24");
    EXPECT_THAT(start.plan.head_addresses, ElementsAre("10.0.0.1"));
  }
  EXPECT_EQ(Stored(key_.job_id).state, JobState::kStarting);
}

TEST_F(CoordinatorLaunchTest, ANodeThatHasBegunIsWaitedForToo) {
  Run();
  Restart();
  const auto n2 = Connected("n2", "second");
  const auto n1 = Connected("n1", "first", {key_});
  ASSERT_THAT(n2->Sent<StartAttempt>(), SizeIs(1));
  EXPECT_THAT(n2->Sent<StartAttempt>()[0].plan.head_addresses, ElementsAre("10.0.0.1"));
  EXPECT_THAT(n1->Sent<StartAttempt>(), IsEmpty());
}

TEST_F(CoordinatorLaunchTest, ADaemonWaitsForTheAttemptOnItsNode) {
  for (const char* const name : {"n1", "n2", "n3"}) Connected(name);
  const auto job = Submit(MpiGemm(3));
  ASSERT_TRUE(job.ok()) << job.status();
  key_ = {job->job_id, 1};
  Restart();
  const auto n1 = Connected("n1", "first", {key_}), n2 = Connected("n2", "second");
  coordinator_->StartDaemon(n1.get(), key_, "pnode1", {"orted"});
  EXPECT_THAT(n2->sent, IsEmpty());  // n3 is not back, so there is no plan
  const auto n3 = Connected("n3", "first", {key_});
  ASSERT_THAT(n2->sent, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<StartAttempt>(n2->sent[0]));
  EXPECT_TRUE(std::holds_alternative<StartDaemon>(n2->sent[1]));
}

TEST_F(CoordinatorLaunchTest, DirectStartsWaitForNobody) {
  Connected("n1");
  Connected("n2");
  ASSERT_TRUE(Submit(Gemm(2)).ok());
  Restart();
  EXPECT_THAT(Connected("n2", "second")->Sent<StartAttempt>(), SizeIs(1));
}

TEST_F(CoordinatorLaunchTest, ANodeThatIsNotBackYetIsNotBlamed) {
  Run();
  Restart();
  const auto n1 = Connected("n1", "first", {key_});
  Say(n1, key_, 0, line::Failure{"ABORTED", line::Phase::kTimed, "it broke", "", 0, -1});
  End(n1, key_);
  Connected("n2", "first", {key_});
  clock_.Advance(options_.lease * 4 + options_.stop_grace);
  Advance(absl::Seconds(1));
  EXPECT_EQ(Stored(key_.job_id).failure.cause, "it broke");
}

// The launcher takes the other ranks away at once when an agent dies, long before its lease is
// over.
TEST_F(CoordinatorLaunchTest, ALostAgentIsBlamedBeforeWhatFollowsFromIt) {
  Run();
  coordinator_->Disconnected(n2_.get());
  Say(n1_, key_, 0,
      line::Failure{"UNAVAILABLE", line::Phase::kTimed, "mpirun ended it", "", 0, -1});
  End(n1_, key_);
  clock_.Advance(options_.lease + absl::Seconds(1));
  coordinator_->Tick();
  Drain();
  const Job job = Stored(key_.job_id);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.failure.node, "n2");
  EXPECT_EQ(job.failure.rank, 1);
  EXPECT_THAT(job.failure.cause,
              HasSubstr("agent lost: it disconnected; then rank 0 on n1: mpirun"));
}

TEST_F(CoordinatorLaunchTest, ARanksOwnFailureStaysItsFailure) {
  Run();
  coordinator_->Disconnected(n2_.get());
  Say(n1_, key_, 0, line::Failure{"DEADLINE_EXCEEDED", line::Phase::kTimed, "slow", "", 0, -1});
  EXPECT_EQ(Stored(key_.job_id).state, JobState::kStarting);
  coordinator_->Cancel(key_.job_id, [](const absl::StatusOr<Job>&) {});
  End(n1_, key_);
  clock_.Advance(options_.lease + absl::Seconds(1));
  coordinator_->Tick();
  Drain();
  EXPECT_EQ(Stored(key_.job_id).failure.cause, "slow");
}

TEST_F(CoordinatorLaunchTest, AfterARestartEndsAreStillPassedOn) {
  Run();
  coordinator_->StartDaemon(n1_.get(), key_, "pnode1", {"orted"});
  Restart();
  const auto n1 = Connected("n1", "first", {key_}), n2 = Connected("n2", "first", {key_});
  coordinator_->DaemonEnded(n2.get(), key_, "pnode1", 1, "gone");
  ASSERT_THAT(n1->Sent<DaemonEnded>(), SizeIs(1));
}

}  // namespace
}  // namespace param
