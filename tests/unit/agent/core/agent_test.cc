// The agent as a whole, with its session, on a fake clock.

#include "agent/core/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "agent/core/memory_spool.h"
#include "proto/base/version.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_random.h"
#include "tests/unit/agent/core/agent_fakes.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() { agent_.Start(); }

  void Register(std::vector<AttemptKey> unknown = {}) {
    agent_.OnMessage(Registered{.heartbeat_period = absl::Seconds(5),
                                .lease = absl::Seconds(15),
                                .share = {},
                                .unknown = std::move(unknown)});
    agent_.Tick();
  }
  void Advance(absl::Duration step) {
    clock_.Advance(step);
    agent_.Tick();
  }
  void Close(const absl::Status& status) {
    uplink_.is_open = false;
    agent_.OnClosed(status);
    agent_.Tick();
  }
  // Closes, waits, registers again.
  void Reconnect(std::vector<AttemptKey> unknown = {}) {
    Close(absl::UnavailableError("socket closed"));
    Advance(absl::Seconds(1));
    uplink_.sent.clear();
    Register(std::move(unknown));
  }
  void Greet(int rank) {
    const line::Hello hello{launcher_.tokens[rank], 1000 + rank, kProtocolVersion, ""};
    ASSERT_TRUE(agent_.OnGreeting(key_, 1000 + rank, WorkerLine(hello)).ok());
    agent_.OnConnected({key_, rank});
  }
  // One rank, one case, well done.
  void RunWhole() {
    agent_.OnMessage(GemmAttempt(1, 1, 1));
    Greet(0);
    agent_.OnLines({key_, 0}, {WorkerLine(line::CaseBegin{0}),
                               WorkerLine(line::CaseEnd{0, line::CaseStatus::kSkipped, "", {}, {}}),
                               WorkerLine(line::Done{})});
    agent_.OnExit({key_, 0}, 0);
    agent_.Tick();
  }
  std::vector<std::uint64_t> SentSequence() {
    std::vector<std::uint64_t> all;
    for (const RankEvent& event : uplink_.Events()) all.push_back(event.seq);
    return all;
  }
  line::Failure OnlyFailure() {
    const Spool::Batch batch = *spool_.Read(0, 1000, 1 << 30);
    for (const RankEvent& event : batch.events) {
      const auto message = line::DecodeFromWorker(event.line);
      if (message.ok() && std::holds_alternative<line::Failure>(*message)) {
        return std::get<line::Failure>(*message);
      }
    }
    return {};
  }

  const AttemptKey key_{"j-test", 1};
  FakeClock clock_;
  FakeRandom random_;
  LogLines log_;
  FakeUplink uplink_;
  FakeLauncher launcher_;
  MemorySpool spool_{1 << 20};
  FakeBackends backends_;
  FakeObserver observer_;
  Agent agent_{AgentOptions{.node = "n1",
                            .version = "1",
                            .instance = "token",
                            .labels = {{"rack", "7"}},
                            .session = {},
                            .limits = {}},
               Inventory{},
               Agent::Parts{.clock = &clock_,
                            .log = &log_.log,
                            .random = &random_,
                            .uplink = &uplink_,
                            .launchers = {{"direct", &launcher_}},
                            .spool = &spool_,
                            .backends = &backends_,
                            .observer = &observer_}};
};

TEST_F(AgentTest, RegistersWithWhoItIs) {
  ASSERT_THAT(uplink_.hellos, SizeIs(1));
  EXPECT_EQ(uplink_.hellos[0].node, "n1");
  EXPECT_EQ(uplink_.hellos[0].protocol, kProtocolVersion);
  EXPECT_EQ(uplink_.hellos[0].instance, "token");
  EXPECT_EQ(uplink_.hellos[0].labels.at("rack"), "7");
  EXPECT_FALSE(agent_.is_connected());
  Register();
  EXPECT_TRUE(agent_.is_connected());
}

TEST_F(AgentTest, BeatsAtThePeriodItWasTold) {
  Register();
  Advance(absl::Seconds(4));
  EXPECT_THAT(uplink_.Sent<Heartbeat>(), IsEmpty());
  Advance(absl::Seconds(1));
  EXPECT_THAT(uplink_.Sent<Heartbeat>(), SizeIs(1));
  agent_.OnMessage(HeartbeatReply{});
  Advance(absl::Seconds(5));
  EXPECT_THAT(uplink_.Sent<Heartbeat>(), SizeIs(2));
}

TEST_F(AgentTest, BacksOffLongerAndLongerWithAnUpperBound) {
  absl::Duration last;
  for (int i = 0; i < 20; ++i) {
    Close(absl::UnavailableError("refused"));
    const absl::Duration wait = agent_.due() - clock_.Monotonic();
    EXPECT_LE(wait, absl::Seconds(6));
    last = wait;
    Advance(wait);
  }
  EXPECT_GE(last, absl::Seconds(4));
  EXPECT_THAT(uplink_.hellos, SizeIs(21));
}

TEST_F(AgentTest, BacksOffFromACoordinatorThatKeepsEndingTheCall) {
  const auto reconnects_within = [this](absl::Duration total) {
    const std::size_t before = uplink_.hellos.size();
    for (absl::Duration at; at < total; at += absl::Milliseconds(20)) {
      if (uplink_.is_open) {
        Register();
        Close(absl::ResourceExhaustedError("disk full"));
      }
      Advance(absl::Milliseconds(20));
    }
    return uplink_.hellos.size() - before;
  };
  (void)reconnects_within(absl::Seconds(30));
  // A quarter of the lease of 15 s at most, with jitter: it is found in time once it is well.
  const std::size_t later = reconnects_within(absl::Seconds(30));
  EXPECT_GE(later, 6u);
  EXPECT_LE(later, 11u);
  EXPECT_THAT(launcher_.signals, IsEmpty());
  while (!uplink_.is_open) Advance(absl::Milliseconds(20));
  Register();
  for (int i = 0; i < 6; ++i) {
    Advance(absl::Seconds(1));
    agent_.OnMessage(HeartbeatReply{});
  }
  Close(absl::UnavailableError("socket closed"));  // after a sound connection: soon
  Advance(absl::Milliseconds(200));
  EXPECT_TRUE(uplink_.is_open);
}

TEST_F(AgentTest, ATakenNameIsSaidOnceAndTriedAgainSlowly) {
  for (int i = 0; i < 3; ++i) {
    Close(absl::AlreadyExistsError("node n1 is connected from elsewhere"));
    EXPECT_GE(agent_.due() - clock_.Monotonic(), absl::Seconds(5));
    Advance(agent_.due() - clock_.Monotonic());
  }
  int said = 0;
  for (const std::string& line : log_.lines) said += line.find("has this name") != line.npos;
  EXPECT_EQ(said, 1);
  EXPECT_THAT(uplink_.hellos, SizeIs(4));
  EXPECT_EQ(observer_.reasons.back(), "refused");
}

TEST_F(AgentTest, ARegistrationWithoutAnswerIsGivenUp) {
  Advance(absl::Seconds(10));
  EXPECT_EQ(uplink_.closes, 1);
}

TEST_F(AgentTest, EventsAreSentUntilTheyAreAcknowledged) {
  Register();
  RunWhole();
  EXPECT_THAT(SentSequence(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(uplink_.Sent<AttemptEnded>(), SizeIs(1));
  Reconnect();
  EXPECT_THAT(uplink_.hellos.back().running, ElementsAre(key_));
  EXPECT_THAT(SentSequence(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(uplink_.Sent<AttemptEnded>(), SizeIs(1));
  agent_.OnMessage(EventsAck{{{key_, 0, 3}}});
  Reconnect();
  EXPECT_THAT(SentSequence(), ElementsAre(4));
  agent_.OnMessage(EventsAck{{{key_, 0, 4}}});
  agent_.OnMessage(EventsAck{{{key_, 0, 4}}});  // a repeat is harmless
  agent_.Tick();
  Reconnect();
  EXPECT_THAT(uplink_.hellos.back().running, IsEmpty());
  EXPECT_THAT(uplink_.sent, IsEmpty());
}

// The agent's folder already holds results of an attempt when the agent starts.
class RestartedAgentTest : public ::testing::Test {
 protected:
  RestartedAgentTest() {
    for (std::uint64_t seq = 1; seq <= 2; ++seq) {
      const absl::Status kept = spool_.Append(
          {.key = key_, .rank = 0, .seq = seq, .time_ns = 1, .line = WorkerLine(line::Done{})},
          Spool::Importance::kEnd);
      EXPECT_TRUE(kept.ok()) << kept;
    }
  }

  const AttemptKey key_{"j-left", 1};
  FakeClock clock_;
  FakeRandom random_;
  LogLines log_;
  FakeUplink uplink_;
  MemorySpool spool_{1 << 20};
  FakeBackends backends_;
  FakeObserver observer_;
};

TEST_F(RestartedAgentTest, HandsOverWhatAnEarlierProcessLeftAndThenEndsTheAttempt) {
  Agent agent(AgentOptions{.node = "n1",
                           .version = "1",
                           .instance = "second",
                           .labels = {},
                           .session = {},
                           .limits = {}},
              Inventory{},
              Agent::Parts{.clock = &clock_,
                           .log = &log_.log,
                           .random = &random_,
                           .uplink = &uplink_,
                           .launchers = {},
                           .spool = &spool_,
                           .backends = &backends_,
                           .observer = &observer_});
  agent.Start();
  ASSERT_THAT(uplink_.hellos, SizeIs(1));
  EXPECT_THAT(uplink_.hellos[0].running, ElementsAre(key_));
  EXPECT_EQ(agent.running_attempts(), 0);
  agent.OnMessage(Registered{.heartbeat_period = absl::Seconds(5),
                             .lease = absl::Seconds(15),
                             .share = {},
                             .unknown = {}});
  agent.Tick();
  EXPECT_THAT(uplink_.Events(), SizeIs(2));
  ASSERT_THAT(uplink_.sent, SizeIs(2));
  ASSERT_TRUE(std::holds_alternative<AttemptEnded>(uplink_.sent.back()));  // behind the events
  EXPECT_EQ(std::get<AttemptEnded>(uplink_.sent.back()).key, key_);
  agent.OnMessage(EventsAck{{{key_, 0, 2}}});
  agent.Stop("done");
  agent.Tick();
  EXPECT_TRUE(agent.is_stopped());  // nothing of it is left
}

TEST_F(AgentTest, NothingIsSentWhileTheUplinkIsBusy) {
  Register();
  uplink_.is_idle = false;
  RunWhole();
  EXPECT_THAT(uplink_.sent, IsEmpty());
  uplink_.is_idle = true;
  agent_.OnDrained();
  agent_.Tick();
  EXPECT_THAT(SentSequence(), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(std::holds_alternative<AttemptEnded>(uplink_.sent.back()));
}

TEST_F(AgentTest, AnAttemptRunsOnThroughALostConnection) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 2, 1));
  Greet(0);
  agent_.OnLines({key_, 0}, {WorkerLine(line::Exchange{0, "a"})});
  Reconnect();
  EXPECT_THAT(uplink_.hellos.back().running, ElementsAre(key_));
  EXPECT_THAT(uplink_.Sent<ExchangePart>(), SizeIs(1));
  EXPECT_THAT(launcher_.signals[0], IsEmpty());
  EXPECT_EQ(agent_.running_ranks(), 1);
}

TEST_F(AgentTest, FencesItselfWhenTheLeaseIsOver) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  Close(absl::UnavailableError("gone"));
  Advance(absl::Seconds(14));
  EXPECT_THAT(launcher_.SentTo<line::Abort>(0), IsEmpty());
  Advance(absl::Seconds(1));
  EXPECT_EQ(OnlyFailure().code, "UNAVAILABLE");
  EXPECT_THAT(OnlyFailure().cause, HasSubstr("not heard for 15 s"));
  Advance(absl::Milliseconds(500));
  EXPECT_THAT(launcher_.signals[0], ElementsAre(SIGTERM));
}

TEST_F(AgentTest, ASilentConnectionIsClosedWhenTheLeaseIsOver) {
  Register();
  for (int i = 0; i < 15; ++i) Advance(absl::Seconds(1));
  EXPECT_EQ(uplink_.closes, 1);
}

TEST_F(AgentTest, KillsWhatTheCoordinatorDoesNotKnowAndForgetsItsEvents) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  Greet(0);
  Reconnect({key_});
  Advance(absl::Milliseconds(500));
  EXPECT_THAT(launcher_.signals[0], ElementsAre(SIGTERM));
  agent_.OnExit({key_, 0}, SIGTERM);
  agent_.Tick();
  EXPECT_FALSE(spool_.HasUnacked(key_));
}

TEST_F(AgentTest, ForgetsARefusedAttemptThatTheCoordinatorDoesNotKnow) {
  Register();
  StartAttempt start = GemmAttempt(1, 1, 1);
  start.launcher = "teleport";
  agent_.OnMessage(start);
  agent_.Tick();
  ASSERT_TRUE(spool_.HasUnacked(key_));
  Reconnect({key_});
  EXPECT_FALSE(spool_.HasUnacked(key_));
  Reconnect();
  EXPECT_THAT(uplink_.hellos.back().running, IsEmpty());
}

TEST_F(AgentTest, ARepeatedStartIsNotASecondOne) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  EXPECT_THAT(launcher_.requests, SizeIs(1));
}

TEST_F(AgentTest, AStopOfWhatIsNotHereIsAnsweredWithItsEnd) {
  Register();
  agent_.OnMessage(StopAttempt{{"j-none", 1}, false, "x"});
  ASSERT_THAT(uplink_.Sent<AttemptEnded>(), SizeIs(1));
}

struct Refusal {
  const char* name;
  void (*spoil)(StartAttempt&);
  const char* code;
  const char* cause;
};
class RefusalTest : public AgentTest, public ::testing::WithParamInterface<Refusal> {};

TEST_P(RefusalTest, IsAnEndEventAndTheEndOfTheAttempt) {
  Register();
  StartAttempt start = GemmAttempt(1, 1, 1);
  GetParam().spoil(start);
  agent_.OnMessage(start);
  agent_.Tick();
  EXPECT_EQ(OnlyFailure().code, GetParam().code);
  EXPECT_THAT(OnlyFailure().cause, HasSubstr(GetParam().cause));
  EXPECT_THAT(launcher_.requests, IsEmpty());
  EXPECT_THAT(uplink_.Sent<AttemptEnded>(), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusalTest,
    ::testing::Values(Refusal{"Launcher", [](StartAttempt& s) { s.launcher = "teleport"; },
                              "UNIMPLEMENTED", "no launcher \"teleport\""},
                      Refusal{"Benchmark", [](StartAttempt& s) { s.benchmark = "gem"; },
                              "NOT_FOUND", "gem"},
                      Refusal{"Version", [](StartAttempt& s) { s.benchmark_version = 99; },
                              "FAILED_PRECONDITION", "version"},
                      Refusal{"Backend", [](StartAttempt& s) { s.device_backend = "quantum"; },
                              "NOT_FOUND", "quantum is not installed"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(AgentTest, StoppingAbortsWhatRunsAndTakesNothingNew) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  Greet(0);
  agent_.Stop("agent stopping");
  EXPECT_EQ(OnlyFailure().cause, "agent stopping");
  EXPECT_FALSE(agent_.is_stopped());
  agent_.OnExit({key_, 0}, 3 << 8);
  agent_.Tick();
  EXPECT_FALSE(agent_.is_stopped());  // not yet acknowledged
  agent_.OnMessage(EventsAck{{{key_, 0, 100}}});
  agent_.Tick();
  EXPECT_TRUE(agent_.is_stopped());
}

TEST_F(AgentTest, StoppingDoesNotWaitForACoordinatorThatTakesNothing) {
  Register();
  RunWhole();
  agent_.Stop("agent stopping");
  EXPECT_FALSE(agent_.is_stopped());
  Advance(absl::Seconds(3));
  EXPECT_TRUE(agent_.is_stopped());
  EXPECT_TRUE(spool_.HasUnacked(key_));
}

TEST_F(AgentTest, AChangedInventoryIsSentOnce) {
  Register();
  Inventory inventory;
  inventory.hostname = "n1";
  agent_.SetInventory(inventory);
  agent_.SetInventory(inventory);
  EXPECT_THAT(uplink_.Sent<Inventory>(), SizeIs(1));
}

TEST_F(AgentTest, ACrashMakesTheDeviceSuspect) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  agent_.OnExit({key_, 0}, SIGSEGV);
  EXPECT_THAT(backends_.suspected, ElementsAre("fake"));
  agent_.Tick();
  EXPECT_THAT(observer_.outcomes, ElementsAre("failed"));
}

TEST_F(AgentTest, DaemonsAreRelayedBetweenLauncherAndCoordinator) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  agent_.OnDaemonWanted({key_, "pnode1", {"orted"}});
  ASSERT_THAT(uplink_.Sent<StartDaemon>(), SizeIs(1));
  EXPECT_EQ(uplink_.Sent<StartDaemon>()[0].host, "pnode1");
  agent_.OnMessage(StartDaemon{key_, "pnode0", {"orted"}});
  ASSERT_THAT(launcher_.daemons, SizeIs(1));
  agent_.OnDaemonEnded({key_, "pnode0", 1, "killed"});
  ASSERT_THAT(uplink_.Sent<DaemonEnded>(), SizeIs(1));
  agent_.OnMessage(DaemonEnded{key_, "pnode1", 0, ""});
  EXPECT_THAT(launcher_.ended_daemons, SizeIs(1));
}

TEST_F(AgentTest, ADaemonOfAnAttemptThatIsNotHereIsAnsweredAtOnce) {
  Register();
  agent_.OnMessage(StartDaemon{key_, "pnode0", {"orted"}});
  ASSERT_THAT(uplink_.Sent<DaemonEnded>(), SizeIs(1));
  EXPECT_EQ(uplink_.Sent<DaemonEnded>()[0].exit_code, 1);
  EXPECT_THAT(launcher_.daemons, IsEmpty());
}

TEST_F(AgentTest, DaemonsWithoutAnAnswerAreAskedForAgainOnEachConnection) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  agent_.OnDaemonWanted({key_, "pnode0", {"orted", "a"}});
  Close(absl::UnavailableError("socket closed"));
  agent_.OnDaemonWanted({key_, "pnode1", {"orted", "b"}});
  Advance(absl::Seconds(1));
  uplink_.sent.clear();
  Register();
  ASSERT_THAT(uplink_.Sent<StartDaemon>(), SizeIs(2));
  EXPECT_THAT(uplink_.Sent<StartDaemon>()[0].args, ElementsAre("orted", "a"));
  EXPECT_THAT(uplink_.Sent<StartDaemon>()[1].args, ElementsAre("orted", "b"));
  agent_.OnMessage(DaemonEnded{key_, "pnode0", 0, ""});
  Reconnect();
  ASSERT_THAT(uplink_.Sent<StartDaemon>(), SizeIs(1));
  EXPECT_EQ(uplink_.Sent<StartDaemon>()[0].host, "pnode1");
}

TEST_F(AgentTest, TheEndOfADaemonIsToldOnEachConnection) {
  Register();
  agent_.OnMessage(GemmAttempt(1, 1, 1));
  Close(absl::UnavailableError("socket closed"));
  agent_.OnDaemonEnded({key_, "pnode0", 137, "orted killed by SIGKILL"});
  Advance(absl::Seconds(1));
  uplink_.sent.clear();
  Register();
  ASSERT_THAT(uplink_.Sent<DaemonEnded>(), SizeIs(1));
  EXPECT_EQ(uplink_.Sent<DaemonEnded>()[0].exit_code, 137);
  Reconnect();
  EXPECT_THAT(uplink_.Sent<DaemonEnded>(), SizeIs(1));
  Reconnect({key_});  // the coordinator knows nothing of it
  EXPECT_THAT(uplink_.Sent<DaemonEnded>(), IsEmpty());
}

TEST_F(AgentTest, AnAttemptEndsWhenItsLauncherIsGoneToo) {
  Register();
  launcher_.is_gone = false;
  RunWhole();
  EXPECT_THAT(uplink_.Sent<AttemptEnded>(), IsEmpty());
  EXPECT_THAT(launcher_.released, IsEmpty());
  launcher_.is_gone = true;
  agent_.Tick();
  EXPECT_THAT(uplink_.Sent<AttemptEnded>(), SizeIs(1));
  EXPECT_THAT(launcher_.released, ElementsAre(key_));
}

}  // namespace
}  // namespace param::agent
