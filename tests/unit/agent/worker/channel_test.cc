#include "agent/worker/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "agent/worker/affinity.h"
#include "agent/worker/environment.h"
#include "agent/worker/events.h"
#include "agent/worker/socket_team.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/agent/worker/scripted_agent.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A channel whose other end is in the test's hand.
class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    agent_.emplace(Fd(ends[0]));
    channel_.emplace(Fd(ends[1]), [this](const std::string& why) { left_.set_value(why); });
  }

  std::optional<LineConnection> agent_;
  std::promise<std::string> left_;
  std::optional<Channel> channel_;  // first to go
};

TEST_F(ChannelTest, ExchangeSendsItsPartAndWaitsForAll) {
  SocketTeam team(*channel_, 1, 2);
  auto first = std::async(std::launch::async, [&] { return team.Exchange("mine"); });
  EXPECT_EQ(agent_->Await<line::Exchange>().value().data, "mine");
  agent_->Send(line::ExchangeReply{0, {"theirs", "mine"}});
  EXPECT_THAT(first.get().value(), ElementsAre("theirs", "mine"));
}

TEST_F(ChannelTest, RoundsAreNumberedFromZero) {
  SocketTeam team(*channel_, 0, 2);
  agent_->Send(line::ExchangeReply{0, {"a", "b"}});  // early replies wait
  agent_->Send(line::ExchangeReply{1, {"c", "d"}});
  EXPECT_THAT(team.Exchange("").value(), ElementsAre("a", "b"));
  EXPECT_THAT(team.Exchange("").value(), ElementsAre("c", "d"));
  EXPECT_EQ(agent_->Await<line::Exchange>().value().round, 0u);
  EXPECT_EQ(agent_->Await<line::Exchange>().value().round, 1u);
}

TEST_F(ChannelTest, ATeamOfOneAnswersItself) {
  SocketTeam team(*channel_, 0, 1);
  EXPECT_THAT(team.Exchange("alone").value(), ElementsAre("alone"));
  channel_->Send(line::Done{});
  EXPECT_TRUE(std::holds_alternative<line::Done>(agent_->Next().value()));  // nothing before it
}

TEST_F(ChannelTest, AReplyWithoutAPartPerRankIsAnError) {
  SocketTeam team(*channel_, 0, 3);
  agent_->Send(line::ExchangeReply{0, {"a", "b"}});
  EXPECT_EQ(team.Exchange("").status().code(), absl::StatusCode::kInternal);
}

TEST_F(ChannelTest, RefusesMoreBytesThanFit) {
  SocketTeam team(*channel_, 0, 2);
  EXPECT_EQ(team.Exchange(std::string(line::kMaxExchangeBytes + 1, 'x')).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ChannelTest, EndOfFileLeavesAndWakesWhoWaits) {
  SocketTeam team(*channel_, 0, 2);
  auto waiting = std::async(std::launch::async, [&] { return team.Exchange("").status(); });
  ASSERT_TRUE(agent_->Await<line::Exchange>().ok());
  agent_->Close();
  EXPECT_EQ(waiting.get().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(left_.get_future().get(), HasSubstr("closed"));
}

TEST_F(ChannelTest, ALineThatMakesNoSenseLeaves) {
  ASSERT_EQ(send(agent_->fd(), "nonsense\n", 9, 0), 9);
  EXPECT_THAT(left_.get_future().get(), HasSubstr("from the agent"));
}

TEST_F(ChannelTest, AbortLeavesWithItsReason) {
  agent_->Send(line::Abort{"rank 2 crashed"});
  EXPECT_THAT(left_.get_future().get(), HasSubstr("rank 2 crashed"));
}

TEST_F(ChannelTest, WritingToAClosedSocketLeaves) {
  agent_->Close();
  channel_->Send(line::Done{});
  EXPECT_NE(left_.get_future().get(), "");
}

TEST_F(ChannelTest, CancelIsSeenAndWakesWhoWaits) {
  auto waiting = std::async(std::launch::async, [&] { return channel_->WaitForReply(0).status(); });
  EXPECT_FALSE(channel_->cancelled());
  agent_->Send(line::Cancel{"enough"});
  EXPECT_EQ(waiting.get().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(channel_->cancelled());
  EXPECT_THAT(channel_->cancel_reason(), HasSubstr("enough"));
}

TEST_F(ChannelTest, AfterFinishTheEndOfTheSocketIsNoReasonToLeave) {
  channel_->Finish();
  agent_->Close();
  EXPECT_EQ(channel_->WaitForReply(0).status().code(), absl::StatusCode::kAborted);
  channel_.reset();  // joins the reader
  EXPECT_EQ(left_.get_future().wait_for(std::chrono::seconds(0)), std::future_status::timeout);
}

TEST_F(ChannelTest, SamplesAreCutIntoLinesThatFit) {
  PhaseTracker phases(*channel_);
  FakeClock clock;
  LineReporter reporter(*channel_, phases, clock, 4);
  std::vector<double> values(line::kMaxSamplesPerLine * 2 + 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  auto sending = std::async(std::launch::async, [&] {
    reporter.Samples("time", "s", {{"phase", "x"}}, values);
  });
  std::vector<double> got;
  for (const std::size_t expected :
       {line::kMaxSamplesPerLine, line::kMaxSamplesPerLine, std::size_t{5}}) {
    const auto piece = agent_->Await<line::Samples>();
    ASSERT_TRUE(piece.ok()) << piece.status();
    EXPECT_EQ(piece->case_index, 4);
    EXPECT_THAT(piece->values, SizeIs(expected));
    got.insert(got.end(), piece->values.begin(), piece->values.end());
  }
  sending.get();
  EXPECT_EQ(got, values);
}

TEST_F(ChannelTest, EnteringAPhaseEndsTheOneBefore) {
  PhaseTracker phases(*channel_);
  phases.Enter(line::Phase::kRendezvous, -1);
  phases.Enter(line::Phase::kRendezvous, -1);  // the same: nothing
  phases.End();
  phases.End();
  channel_->Send(line::Done{});
  EXPECT_EQ(agent_->Await<line::PhaseEnd>().value().phase, line::Phase::kSpawn);
  EXPECT_EQ(agent_->Await<line::PhaseBegin>().value().phase, line::Phase::kRendezvous);
  EXPECT_EQ(agent_->Await<line::PhaseEnd>().value().phase, line::Phase::kRendezvous);
  EXPECT_TRUE(std::holds_alternative<line::Done>(agent_->Next().value()));
}

TEST_F(ChannelTest, ALongMeasurementGivesSignsOfLife) {
  PhaseTracker phases(*channel_);
  FakeClock clock;
  LineReporter reporter(*channel_, phases, clock, 0);
  reporter.TimedBegins();
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(reporter.Cancelled());
    clock.Advance(absl::Milliseconds(50));
  }
  channel_->Send(line::Done{});
  int signs = 0;
  while (true) {
    const auto message = agent_->Next().value();
    if (std::holds_alternative<line::Done>(message)) break;
    const auto* const begin = std::get_if<line::PhaseBegin>(&message);
    if (begin == nullptr) continue;
    EXPECT_EQ(begin->phase, line::Phase::kTimed);
    EXPECT_EQ(begin->case_index, 0);
    ++signs;
  }
  EXPECT_EQ(signs, 3);  // the beginning, and two in five seconds
}

TEST(ConnectUnix, NamesThePathThatIsNotThere) {
  const auto socket = ConnectUnix("/nowhere/s");
  EXPECT_THAT(std::string(socket.status().message()), HasSubstr("/nowhere/s"));
  EXPECT_EQ(ConnectUnix(std::string(200, 'x')).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuListText, JoinsNeighbours) {
  EXPECT_EQ(CpuListText({}), "");
  EXPECT_EQ(CpuListText({3}), "3");
  EXPECT_EQ(CpuListText({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
}

TEST(BindToCpus, NamesCpusThatAreNotThere) {
  EXPECT_TRUE(BindToCpus({}).ok());
  EXPECT_EQ(BindToCpus({-1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(BindToCpus({1000}).message()), HasSubstr("1000"));
}

TEST(CollectFacts, NamesEveryVariableThatChangesHowLibrariesWork) {
  setenv("GOMP_SPINCOUNT", "7", 1);
  setenv("PMIX_SECURITY_TOKEN", "hush", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "hush", 1);
  const auto facts = CollectFacts({}, 1);
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("PMIX_SECURITY_TOKEN");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  EXPECT_EQ(facts.at("env.GOMP_SPINCOUNT"), "7");
  EXPECT_EQ(facts.at("env.PMIX_SECURITY_TOKEN"), "(set)");
  EXPECT_EQ(facts.count("env.AWS_SECRET_ACCESS_KEY"), 0u);
}

}  // namespace
}  // namespace param
