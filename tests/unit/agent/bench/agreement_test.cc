#include "agent/bench/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/fakes/thread_team.h"

namespace param {
namespace {

using ::testing::ElementsAre;

struct Ended {
  std::vector<Outcome> outcomes;
  std::vector<std::string> reasons;
};

// What each rank makes of the steps of all.
Ended Agree(const std::vector<absl::Status>& steps) {
  ThreadTeam team(static_cast<int>(steps.size()));
  Ended ended{std::vector<Outcome>(steps.size()), std::vector<std::string>(steps.size())};
  team.Run([&](Team& mine) {
    const std::size_t rank = static_cast<std::size_t>(mine.rank());
    const absl::StatusOr<Agreement> agreement = AgreeOnStep(mine, steps[rank]);
    ASSERT_TRUE(agreement.ok()) << agreement.status();
    ended.outcomes[rank] = agreement->outcome;
    ended.reasons[rank] = agreement->reason;
  });
  return ended;
}

TEST(AgreeOnStepTest, AllGoOnWhenAllManaged) {
  const Ended ended = Agree({absl::OkStatus(), absl::OkStatus()});
  EXPECT_THAT(ended.outcomes, ElementsAre(Outcome::kPassed, Outcome::kPassed));
  EXPECT_THAT(ended.reasons, ElementsAre("", ""));
}

TEST(AgreeOnStepTest, AllSkipWhatOneCannotDo) {
  const Ended ended = Agree({absl::OkStatus(), absl::UnimplementedError("no bf16")});
  EXPECT_THAT(ended.outcomes, ElementsAre(Outcome::kSkipped, Outcome::kSkipped));
  EXPECT_THAT(ended.reasons, ElementsAre("no bf16", "no bf16"));
}

TEST(AgreeOnStepTest, TheCaseFailsOnAllRanksAndEachSaysWhere) {
  const Ended ended =
      Agree({absl::UnimplementedError("no bf16"), absl::OkStatus(),
             absl::ResourceExhaustedError("no memory"), absl::OutOfRangeError("too large")});
  EXPECT_THAT(ended.outcomes,
              ElementsAre(Outcome::kFailed, Outcome::kFailed, Outcome::kFailed, Outcome::kFailed));
  EXPECT_THAT(ended.reasons,
              ElementsAre("rank 2: no memory", "rank 2: no memory", "no memory", "too large"));
}

TEST(AgreeOnStepTest, AnErrorOfTheDeviceComesBackWithoutAnExchange) {
  SoloTeam team;
  for (const absl::Status& error :
       {absl::InternalError("x"), absl::DataLossError("x"), absl::AbortedError("x"),
        absl::CancelledError("x"), absl::UnavailableError("x"), absl::DeadlineExceededError("x")}) {
    EXPECT_EQ(AgreeOnStep(team, error).status(), error);
  }
  EXPECT_EQ(team.exchanges, 0);
}

TEST(AgreeOnStepTest, ALongReasonIsCutToFitAnExchange) {
  SoloTeam team;
  const absl::Status error = absl::InvalidArgumentError(std::string(100'000, 'x'));
  EXPECT_EQ(AgreeOnStep(team, error)->reason.size(), 2048u);
}

}  // namespace
}  // namespace param
