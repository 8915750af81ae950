#include "server/core/job.h"

#include <gtest/gtest.h>

namespace param {
namespace {

TEST(JobState, NamesReadBack) {
  for (const char* name :
       {"QUEUED", "STARTING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT"}) {
    const auto state = JobStateFromName(name);
    ASSERT_TRUE(state.ok());
    EXPECT_EQ(JobStateName(*state), name);
  }
  EXPECT_FALSE(JobStateFromName("queued?").ok());
}

TEST(JobState, FourAreFinal) {
  EXPECT_FALSE(IsFinal(JobState::kQueued));
  EXPECT_FALSE(IsFinal(JobState::kRunning));
  EXPECT_TRUE(IsFinal(JobState::kSucceeded));
  EXPECT_TRUE(IsFinal(JobState::kTimedOut));
}

}  // namespace
}  // namespace param
