#pragma once
// An attempt's supervisor with played workers and a clock that the test turns.

#include "agent/core/attempt_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <memory>

#include "agent/core/memory_spool.h"
#include "proto/base/version.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_random.h"
#include "tests/unit/agent/core/agent_fakes.h"

namespace param::agent {

inline int ExitedWith(int code) { return code << 8; }

class AttemptSupervisorTest : public ::testing::Test {
 protected:
  void Begin(StartAttempt start) {
    key_ = start.key;
    supervisor_ = std::make_unique<AttemptSupervisor>(
        std::move(start), **FindBenchmark("gemm"),
        Resources{.device_path = "/backends/fake.so",
                  .comm_paths = {},
                  .devices = 2,
                  .cpus = {0, 1, 2, 3}},
        SupervisionLimits{},
        AttemptSupervisor::Parts{
            .clock = &clock_,
            .log = &log_.log,
            .random = &random_,
            .launcher = &launcher_,
            .spool = &spool_,
            .send_exchange = [this](const ExchangePart& part) { parts_.push_back(part); },
            .suspect_device = [this](const line::Failure& f) { suspects_.push_back(f.cause); }});
    supervisor_->Launch();
  }
  void Greet(int rank) {
    const absl::StatusOr<int> greeted = supervisor_->OnGreeting(
        1000 + rank,
        WorkerLine(line::Hello{launcher_.tokens[rank], 1000 + rank, kProtocolVersion, "0"}));
    ASSERT_TRUE(greeted.ok()) << greeted.status();
    ASSERT_EQ(*greeted, rank);
    supervisor_->OnConnected(rank);
  }
  void Say(int rank, const line::FromWorker& message) {
    supervisor_->OnLines(rank, {WorkerLine(message)});
  }
  void SayRaw(int rank, const std::string& line) { supervisor_->OnLines(rank, {line}); }
  void Advance(absl::Duration step) {
    clock_.Advance(step);
    supervisor_->Tick();
  }
  void RunCase(int rank, int index) {
    Say(rank, line::CaseBegin{index});
    Say(rank, line::PhaseBegin{line::Phase::kTimed, index});
    Say(rank, line::Samples{index, "time", "s", {}, {0.001, 0.002}});
    Say(rank, line::CaseEnd{index, line::CaseStatus::kPassed, "", {}, {}});
  }
  // Events of a rank, decoded.
  template <typename Message>
  std::vector<Message> Events(int rank) {
    std::vector<Message> all;
    for (const RankEvent& event : AllEvents()) {
      const absl::StatusOr<line::FromWorker> message = line::DecodeFromWorker(event.line);
      EXPECT_TRUE(message.ok()) << message.status();
      if (event.rank != rank || !message.ok()) continue;
      if (const auto* const one = std::get_if<Message>(&*message)) all.push_back(*one);
    }
    return all;
  }
  std::vector<RankEvent> AllEvents() { return spool_.Read(0, 100'000, 1 << 30)->events; }
  line::Failure OnlyFailure(int rank) {
    const std::vector<line::Failure> failures = Events<line::Failure>(rank);
    EXPECT_THAT(failures, ::testing::SizeIs(1));
    return failures.empty() ? line::Failure{} : failures[0];
  }

  FakeClock clock_;
  FakeRandom random_;
  LogLines log_;
  FakeLauncher launcher_;
  MemorySpool spool_{1 << 20};
  AttemptKey key_;
  std::vector<ExchangePart> parts_;
  std::vector<std::string> suspects_;
  std::unique_ptr<AttemptSupervisor> supervisor_;
};

}  // namespace param::agent
