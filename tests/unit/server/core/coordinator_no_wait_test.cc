// Jobs that start at once or are rejected (--no-wait), asked for while others are on their way to
// the store.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/core/coordinator_fixture.h"

namespace param {
namespace {

using testing::HasSubstr;

class NoWaitTest : public CoordinatorTest {
 protected:
  using Answer = std::shared_ptr<absl::StatusOr<Job>>;

  static JobSpec NoWait(int nodes = 1) {
    JobSpec spec = Gemm(nodes);
    spec.no_wait = true;
    return spec;
  }
  // Asks without letting what was posted run: the job is not stored yet.
  Answer Ask(JobSpec spec, const std::string& request_id) {
    auto answer = std::make_shared<absl::StatusOr<Job>>(absl::UnknownError("no reply"));
    coordinator_->Submit("local", request_id, std::move(spec),
                         [answer](absl::StatusOr<Job> job) { *answer = std::move(job); });
    return answer;
  }
};

TEST_F(NoWaitTest, OfTwoAtOnceOnOneNodeExactlyOneIsPlaced) {
  const auto n1 = Connected("n1");
  const Answer first = Ask(NoWait(), "first"), second = Ask(NoWait(), "second");
  Drain();
  ASSERT_NE(first->ok(), second->ok()) << first->status() << " / " << second->status();
  const absl::Status rejected = first->ok() ? second->status() : first->status();
  EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("--no-wait was given: waits for 1 free"));
  const Job placed = first->ok() ? **first : **second;
  EXPECT_EQ(placed.state, JobState::kStarting);
  EXPECT_EQ(n1->Sent<StartAttempt>().size(), 1u);
  EXPECT_EQ(coordinator_->counts().jobs_queued, 0);
}

TEST_F(NoWaitTest, TwoAtOnceOnTwoNodesAreBothPlaced) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const Answer first = Ask(NoWait(), "first"), second = Ask(NoWait(), "second");
  Drain();
  EXPECT_TRUE(first->ok()) << first->status();
  EXPECT_TRUE(second->ok()) << second->status();
}

TEST_F(NoWaitTest, TheSameRequestTwiceAtOnceIsOneJob) {
  const auto n1 = Connected("n1");
  const Answer first = Ask(NoWait(), "same"), second = Ask(NoWait(), "same");
  Drain();
  ASSERT_TRUE(first->ok()) << first->status();
  ASSERT_TRUE(second->ok()) << second->status();
  EXPECT_EQ((*first)->job_id, (*second)->job_id);
  EXPECT_EQ(n1->Sent<StartAttempt>().size(), 1u);
}

TEST_F(NoWaitTest, AYoungerJobDoesNotTakeTheNodeMeanwhile) {
  const auto n1 = Connected("n1");
  const Answer first = Ask(NoWait(), "first");
  clock_.Advance(absl::Seconds(1));
  const Answer waits = Ask(Gemm(1), "waits");
  Drain();
  ASSERT_TRUE(first->ok()) << first->status();
  EXPECT_EQ((*first)->state, JobState::kStarting);
  ASSERT_TRUE(waits->ok());
  EXPECT_EQ(Stored((*waits)->job_id).state, JobState::kQueued);
}

TEST_F(NoWaitTest, ANodeLostWhileTheJobIsStoredRejectsItForGood) {
  const auto n1 = Connected("n1");
  const Answer answer = Ask(NoWait(), "late");
  coordinator_->Drain("n1", "repair", [](const absl::StatusOr<NodeView>&) {});
  Drain();
  EXPECT_EQ(answer->status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(answer->status().message()), HasSubstr("n1 is drained"));
  EXPECT_TRUE(n1->Sent<StartAttempt>().empty());
  EXPECT_EQ(coordinator_->counts().jobs_queued, 0);
  coordinator_->Resume("n1", [](const absl::StatusOr<NodeView>&) {});
  Drain();
  EXPECT_TRUE(n1->Sent<StartAttempt>().empty());
  const Answer again = Ask(NoWait(), "late");  // the same request has the same answer
  Drain();
  EXPECT_EQ(again->status(), answer->status());
}

}  // namespace
}  // namespace param
