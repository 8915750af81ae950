#include "server/rpc/agent_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/rpc/rpc_fixture.h"

namespace param {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(RpcTest, AgentIsWelcomedWithItsTimesAndItsShareOfTheCores) {
  PlayedAgent agent(address());
  agent.Register(PlayedAgent::Registration("n1"));
  const v1::Registered welcome = agent.Await(v1::ToAgent::kRegistered).registered();
  EXPECT_EQ(welcome.lease_ns(), absl::ToInt64Nanoseconds(absl::Hours(1)));
  EXPECT_EQ(welcome.heartbeat_period_ns(),
            absl::ToInt64Nanoseconds(CoordinatorOptions().heartbeat));
  EXPECT_THAT(welcome.share().cpus(), ElementsAre(0, 1));
  EXPECT_FALSE(welcome.share().oversubscribed());
  EXPECT_EQ(welcome.unknown_size(), 0);
}

TEST_F(RpcTest, AgentOfAnotherProtocolVersionIsRefusedWithBothVersions) {
  PlayedAgent agent(address());
  v1::Register registration = PlayedAgent::Registration("n1");
  registration.set_protocol(kProtocolVersion + 41);
  agent.Register(registration);
  const absl::Status status = agent.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("(version 9.8.7) speaks protocol ", kProtocolVersion + 41)));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("(version ", Version(), ") speaks ", kProtocolVersion)));
}

TEST_F(RpcTest, SecondLiveAgentOfANameIsRefusedAndTheFirstGoesOn) {
  const auto first = Connected("n1");
  PlayedAgent second(address());
  v1::Register registration = PlayedAgent::Registration("n1");
  registration.set_instance("another process");
  second.Register(registration);
  const absl::Status status = second.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"n1\" is taken by a live agent at "));
  EXPECT_TRUE(first->Beat(7));
}

TEST_F(RpcTest, SameProcessReplacesTheSessionItLost) {
  const auto first = Connected("n1");
  const auto again = Connected("n1");
  EXPECT_EQ(first->Finish().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(again->Beat(8));
}

TEST_F(RpcTest, ReturningAgentIsToldWhichAttemptsAreNotTheCoordinators) {
  PlayedAgent agent(address());
  v1::Register registration = PlayedAgent::Registration("n1");
  v1::AttemptKey& key = *registration.add_running();
  key.set_job_id("j-forgotten");
  key.set_attempt(3);
  agent.Register(registration);
  const v1::Registered welcome = agent.Await(v1::ToAgent::kRegistered).registered();
  ASSERT_EQ(welcome.unknown_size(), 1);
  EXPECT_EQ(welcome.unknown(0).job_id(), "j-forgotten");
  EXPECT_EQ(welcome.unknown(0).attempt(), 3);
}

TEST_F(RpcTest, MessagesBeforeRegistrationAreIgnored) {
  PlayedAgent agent(address());
  v1::FromAgent message;
  message.mutable_heartbeat()->set_time_ns(5);
  EXPECT_TRUE(agent.Send(message));
  EXPECT_TRUE(agent.Send(v1::FromAgent()));  // of a kind that is not known here
  agent.Register(PlayedAgent::Registration("n1"));
  EXPECT_TRUE(agent.Await(v1::ToAgent::kRegistered).has_registered());
  EXPECT_TRUE(agent.Beat(6));  // the first answer to a heartbeat is to this one
}

TEST_F(RpcTest, AgentsOfOneMachineShareItsCores) {
  v1::Register registration = PlayedAgent::Registration("n1");
  registration.mutable_inventory()->set_boot_id("one machine");
  const auto n1 = Connected(registration);
  registration.set_node("n2");
  registration.set_instance("second process");
  PlayedAgent n2(address());
  n2.Register(registration);
  const v1::Registered welcome = n2.Await(v1::ToAgent::kRegistered).registered();
  const v1::CpuShare changed = n1->Await(v1::ToAgent::kCpuShare).cpu_share();
  EXPECT_THAT(changed.cpus(), ElementsAre(0));
  EXPECT_THAT(welcome.share().cpus(), ElementsAre(1));
}

TEST_F(RpcTest, JobOfAPlayedAgentRunsToItsEndInSightOfAWatcher) {
  const auto agent = Connected("n1");
  v1::JobSpec spec = Gemm(1);
  spec.set_fake_script("{}");
  (*spec.mutable_phase_deadlines_ns())["timed"] = 5'000'000'000;
  const auto job = Submit(spec);
  ASSERT_TRUE(job.ok()) << job.status();
  PlayedWatcher watcher(address(), job->job_id());
  const v1::StartAttempt start = agent->AwaitStart();
  EXPECT_EQ(start.key().job_id(), job->job_id());
  EXPECT_EQ(start.key().attempt(), 1);
  EXPECT_EQ(start.benchmark(), "gemm");
  EXPECT_EQ(start.benchmark_version(), job->benchmark_version());
  EXPECT_EQ(start.ranks(), 1);
  EXPECT_EQ(start.device_backend(), "cpu");
  EXPECT_EQ(start.launcher(), "direct");
  EXPECT_EQ(start.fake_script(), "{}");
  EXPECT_EQ(start.phase_deadlines_ns().at("timed"), 5'000'000'000);
  EXPECT_THAT(start.rank_nodes(), ElementsAre("n1"));
  EXPECT_THAT(start.cpus(), ElementsAre(0, 1));
  ASSERT_EQ(start.cases_size(), 1);
  EXPECT_EQ(start.cases(0).params().at("m").integer(), 64);
  RunToEnd(*agent, start.key());  // with an acknowledgement of all that was said

  const auto events = watcher.ReadToEnd();
  EXPECT_TRUE(watcher.Finish().ok());
  ASSERT_GE(events.size(), 3u);
  EXPECT_TRUE(events.front().has_job());
  int cases = 0;
  for (const v1::JobEvent& event : events) {
    EXPECT_EQ(event.job_id(), job->job_id());
    if (!event.has_case_done()) continue;
    ++cases;
    EXPECT_EQ(event.case_done().case_id(), start.cases(0).case_id());
    EXPECT_EQ(event.case_done().status(), v1::PASSED);
    EXPECT_EQ(event.case_done().info().at("library"), "played");
    ASSERT_EQ(event.case_done().ranks_size(), 1);
    EXPECT_EQ(event.case_done().ranks(0).node(), "n1");
  }
  EXPECT_EQ(cases, 1);
  const v1::Job& ended = events.back().job();
  EXPECT_EQ(ended.state(), v1::SUCCEEDED);
  EXPECT_EQ(ended.cases_done(), 1);
  EXPECT_THAT(ended.nodes(), ElementsAre("n1"));
  EXPECT_GE(ended.timeline().finished(), ended.timeline().first_timed());
  EXPECT_GT(ended.timeline().first_timed(), 0);
}

TEST_F(RpcTest, ExchangeRoundGoesToEveryAgentOfTheAttempt) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  ASSERT_TRUE(Submit(Gemm(2)).ok());
  const v1::AttemptKey key = n1->AwaitStart().key();
  EXPECT_EQ(n2->AwaitStart().key().job_id(), key.job_id());
  const auto part = [&key](int rank, const std::string& data) {
    v1::FromAgent message;
    *message.mutable_exchange()->mutable_key() = key;
    message.mutable_exchange()->add_ranks(rank);
    message.mutable_exchange()->add_data(data);
    return message;
  };
  const std::string bytes("\0\xff", 2);
  EXPECT_TRUE(n2->Send(part(1, bytes)));
  EXPECT_TRUE(n1->Send(part(0, "zero")));
  for (PlayedAgent* agent : {n1.get(), n2.get()}) {
    const v1::ExchangeAll all = agent->Await(v1::ToAgent::kExchange).exchange();
    EXPECT_EQ(all.key().attempt(), 1);
    EXPECT_EQ(all.round(), 0u);
    EXPECT_THAT(all.data(), ElementsAre("zero", bytes));
  }
}

TEST_F(RpcTest, FailedRankStopsTheOthersAndItsFailureIsTheJobs) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = n1->AwaitStart().key();
  n2->AwaitStart();
  n2->Say(key, 1,
          {line::Failure{"UNAVAILABLE", line::Phase::kCommInit, "refused", "10.0.0.1:9", 111, -1}});
  const v1::StopAttempt stop = n1->Await(v1::ToAgent::kStop).stop();
  EXPECT_FALSE(stop.graceful());
  EXPECT_THAT(stop.reason(), HasSubstr("rank 1 on n2: refused"));
  n1->EndAttempt(key);
  n2->EndAttempt(key);
  const auto events = WatchToEnd(job->job_id());
  ASSERT_FALSE(events.empty());
  const v1::Job& ended = events.back().job();
  EXPECT_EQ(ended.state(), v1::FAILED);
  EXPECT_EQ(ended.failure().code(), "UNAVAILABLE");
  EXPECT_EQ(ended.failure().phase(), "comm_init");
  EXPECT_EQ(ended.failure().node(), "n2");
  EXPECT_EQ(ended.failure().rank(), 1);
  EXPECT_EQ(ended.failure().address(), "10.0.0.1:9");
  EXPECT_EQ(ended.failure().error_number(), 111);
}

TEST_F(RpcTest, EventsOfAJobThatIsOverAreAcknowledged) {
  const auto agent = Connected("n1");
  v1::AttemptKey key;
  key.set_job_id("j-long-gone");
  key.set_attempt(1);
  agent->Say(key, 0, {line::Done{}});
  EXPECT_TRUE(agent->AwaitAck(key, 0));
}

}  // namespace
}  // namespace param
