// Ranks that a launcher starts later, takes away, or never starts.

#include "tests/unit/agent/core/attempt_supervisor_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(AttemptSupervisorTest, ThePlanReachesTheLauncher) {
  StartAttempt start = GemmAttempt(1, 1, 1);
  start.plan.hosts = {{"pnode0", "n1", 1}};
  Begin(start);
  ASSERT_THAT(launcher_.requests, SizeIs(1));
  EXPECT_EQ(launcher_.requests[0].plan.hosts[0].host, "pnode0");
}

TEST_F(AttemptSupervisorTest, ARankThatWasNeverStartedEndsWithTheReason) {
  Begin(GemmAttempt(2, 2, 1));
  supervisor_->OnLost(1, absl::NotFoundError("orted is not on the PATH"));
  EXPECT_EQ(OnlyFailure(1).code, "NOT_FOUND");
  EXPECT_EQ(OnlyFailure(1).phase, line::Phase::kSpawn);
  EXPECT_EQ(OnlyFailure(1).cause, "orted is not on the PATH");
  EXPECT_THAT(launcher_.aborted, ElementsAre(key_));
  EXPECT_FALSE(supervisor_->has_ended());
  supervisor_->OnLost(0, absl::CancelledError("not started"));
  EXPECT_EQ(OnlyFailure(0).code, "CANCELLED");
  EXPECT_TRUE(supervisor_->has_ended());
}

TEST_F(AttemptSupervisorTest, AProcessThatComesLateIsTheRankToBlame) {
  Begin(GemmAttempt(1, 1, 1));
  Advance(absl::Seconds(20));
  supervisor_->OnSpawned(0, 4242);
  Advance(absl::Seconds(20));  // its own time to connect begins with it
  EXPECT_THAT(Events<line::Failure>(0), IsEmpty());
  EXPECT_FALSE(supervisor_->OnGreeting(4242, "garbage").ok());
  EXPECT_THAT(OnlyFailure(0).cause, HasSubstr("garbage"));
}

TEST_F(AttemptSupervisorTest, ABrokenLauncherFailsOneRankAndAbortsTheOthers) {
  Begin(GemmAttempt(2, 2, 1));
  Greet(0);
  supervisor_->OnLauncherFailed(absl::AbortedError("mpirun killed by SIGKILL"));
  EXPECT_EQ(OnlyFailure(0).cause, "mpirun killed by SIGKILL");
  EXPECT_THAT(launcher_.aborted, ElementsAre(key_));
  supervisor_->OnLauncherFailed(absl::AbortedError("again"));
  supervisor_->OnExit(0, SIGKILL);
  supervisor_->OnLost(1, absl::CancelledError("not started"));
  EXPECT_THAT(OnlyFailure(1).cause, HasSubstr("rank 0 failed: mpirun killed by SIGKILL"));
  EXPECT_TRUE(supervisor_->has_ended());
}

TEST_F(AttemptSupervisorTest, ALauncherThatGoesAfterItsRanksIsNoFailure) {
  Begin(GemmAttempt(1, 1, 1));
  Greet(0);
  RunCase(0, 0);
  Say(0, line::Done{});
  supervisor_->OnLauncherFailed(absl::AbortedError("mpirun exited with 1"));
  supervisor_->OnExit(0, ExitedWith(0));
  EXPECT_THAT(Events<line::Failure>(0), IsEmpty());
  EXPECT_EQ(supervisor_->outcome(), "succeeded");
}

TEST_F(AttemptSupervisorTest, ACancelBeforeAllRanksHaveAProcessDoesNotWait) {
  launcher_.spawns_later = true;
  Begin(GemmAttempt(2, 2, 1));
  supervisor_->OnSpawned(0, 1000);
  supervisor_->Stop({key_, true, "cancelled"});
  EXPECT_THAT(launcher_.aborted, ElementsAre(key_));
  EXPECT_EQ(OnlyFailure(1).code, "CANCELLED");
}

TEST_F(AttemptSupervisorTest, ACancelOfRanksThatWereSpawnedLaterIsGraceful) {
  launcher_.spawns_later = true;
  Begin(GemmAttempt(1, 1, 1));
  supervisor_->OnSpawned(0, 1000);
  Greet(0);
  supervisor_->Stop({key_, true, "cancelled"});
  EXPECT_THAT(launcher_.aborted, IsEmpty());
  EXPECT_THAT(launcher_.SentTo<line::Cancel>(0), SizeIs(1));
}

TEST_F(AttemptSupervisorTest, AStopEndsTheLauncherToo) {
  Begin(GemmAttempt(1, 1, 1));
  supervisor_->Stop({key_, false, "another rank failed"});
  EXPECT_THAT(launcher_.aborted, ElementsAre(key_));
}

}  // namespace
}  // namespace param::agent
