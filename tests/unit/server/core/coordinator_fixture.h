#pragma once
// A coordinator with a store in memory, a clock that the test turns, and agents that the test
// plays.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/base/version.h"
#include "server/core/coordinator.h"
#include "server/store/memory_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_random.h"

namespace param {

class PlayedSession final : public AgentSession {
 public:
  void Send(ToAgent message) override { sent.push_back(std::move(message)); }
  void Close(absl::Status status) override { closed = std::move(status); }
  template <typename T>
  std::vector<T> Sent() const {
    std::vector<T> out;
    for (const ToAgent& message : sent) {
      if (const auto* match = std::get_if<T>(&message)) out.push_back(*match);
    }
    return out;
  }
  std::vector<ToAgent> sent;
  absl::Status closed;
};

class PlayedWatcher final : public JobWatcher {
 public:
  void Replay(std::vector<std::shared_ptr<const JobEvent>> replayed) override {
    for (auto& event : replayed) events.push_back(std::move(event));
  }
  bool Push(const std::shared_ptr<const JobEvent>& event, bool) override {
    events.push_back(event);
    return true;
  }
  void Close(absl::Status status) override {
    closed = true;
    final_status = std::move(status);
  }
  std::vector<Job> Jobs() const {
    std::vector<Job> out;
    for (const auto& event : events) {
      if (const auto* job = std::get_if<Job>(&event->kind)) out.push_back(*job);
    }
    return out;
  }
  int Cases() const {
    return static_cast<int>(std::count_if(events.begin(), events.end(), [](const auto& event) {
      return std::holds_alternative<std::shared_ptr<const CaseRecord>>(event->kind);
    }));
  }
  std::vector<std::shared_ptr<const JobEvent>> events;
  bool closed = false;
  absl::Status final_status;
};

class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() { Restart(); }

  // A new coordinator over the same store, as after kill -9.
  void Restart() {
    posted_.clear();
    coordinator_ = std::make_unique<Coordinator>(
        options_, clock_, random_, store_,
        [this](std::function<void()> closure) { posted_.push_back(std::move(closure)); }, observer_,
        log_);
    ASSERT_TRUE(coordinator_->Recover().ok());
    Drain();
  }

  void Drain() {
    while (!posted_.empty()) {
      const auto closure = std::move(posted_.front());
      posted_.pop_front();
      closure();
    }
  }

  static Inventory NodeInventory(const std::string& boot_id, std::vector<int> cpus) {
    Inventory inventory;
    inventory.boot_id = boot_id;
    inventory.cores = static_cast<int>(cpus.size());
    inventory.cpus = std::move(cpus);
    inventory.memory_bytes = std::int64_t{8} << 30;
    BackendStatus cpu;
    cpu.name = "cpu";
    cpu.installed = cpu.loadable = cpu.usable = true;
    cpu.devices = 1;
    cpu.tables = {"device"};
    cpu.benchmarks = {"*"};
    cpu.preference = 10;
    BackendStatus mpi = cpu;
    mpi.name = "mpi";
    mpi.tables = {"comm"};
    mpi.preference = 0;
    mpi.launcher = "mpirun";
    inventory.backends = {cpu, mpi};
    inventory.network_id = "net:[1]";
    inventory.addresses = {{"lo", "127.0.0.1", 8}, {"eth0", "10.0.0.1", 24}};
    return inventory;
  }

  absl::StatusOr<Welcome> Connect(const std::string& name, std::shared_ptr<PlayedSession> session,
                                  const std::string& instance = "first",
                                  std::vector<AttemptKey> running = {}) {
    Registration registration;
    registration.node = name;
    registration.protocol = kProtocolVersion;
    registration.version = "test";
    registration.instance = instance;
    registration.address = "10.0.0.1:1";
    registration.inventory = NodeInventory("boot-" + name, {0, 1});
    registration.running = std::move(running);
    auto welcome = coordinator_->Register(std::move(session), std::move(registration));
    Drain();
    return welcome;
  }

  std::shared_ptr<PlayedSession> Connected(const std::string& name,
                                           const std::string& instance = "first",
                                           std::vector<AttemptKey> running = {}) {
    auto session = std::make_shared<PlayedSession>();
    EXPECT_TRUE(Connect(name, session, instance, std::move(running)).ok());
    return session;
  }

  static JobSpec Gemm(int nodes) {
    JobSpec spec;
    spec.benchmark = "gemm";
    spec.params = {{"m", "64"}, {"n", "64"}, {"k", "64"}};
    spec.nodes = nodes;
    return spec;
  }

  absl::StatusOr<Job> Submit(JobSpec spec, std::string request_id = "") {
    if (request_id.empty()) request_id = "request-" + std::to_string(++requests_);
    absl::StatusOr<Job> out = absl::UnknownError("no reply");
    coordinator_->Submit("local", request_id, std::move(spec),
                         [&out](absl::StatusOr<Job> job) { out = std::move(job); });
    Drain();
    return out;
  }

  Job Stored(const std::string& job_id) {
    const auto job = store_.GetJob(job_id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : Job();
  }

  // One event of a rank, with the next number of that rank.
  void Say(const std::shared_ptr<PlayedSession>& session, const AttemptKey& key, int rank,
           const line::FromWorker& message) {
    RankEvent event{key, rank, ++seq_[{key, rank}], 0, line::Encode(message)};
    coordinator_->RankEvents(session.get(), {event});
    Drain();
  }

  void RunRank(const std::shared_ptr<PlayedSession>& session, const AttemptKey& key, int rank,
               line::CaseStatus status = line::CaseStatus::kPassed) {
    using line::Phase;
    Say(session, key, rank, line::PhaseBegin{Phase::kRendezvous, -1});
    Say(session, key, rank, line::PhaseEnd{Phase::kRendezvous, -1});
    Say(session, key, rank, line::PhaseBegin{Phase::kCommInit, -1});
    Say(session, key, rank, line::PhaseEnd{Phase::kCommInit, -1});
    Say(session, key, rank, line::CaseBegin{0});
    Say(session, key, rank, line::PhaseBegin{Phase::kWarmup, 0});
    Say(session, key, rank, line::PhaseBegin{Phase::kTimed, 0});
    if (status == line::CaseStatus::kPassed) {
      Say(session, key, rank, line::Samples{0, "time", "s", {}, {0.5, 1.0, 1.5}});
    }
    Say(session, key, rank,
        line::CaseEnd{0, status, status == line::CaseStatus::kPassed ? "" : "told so", {}, {}});
    Say(session, key, rank, line::Done{});
  }

  void End(const std::shared_ptr<PlayedSession>& session, const AttemptKey& key) {
    coordinator_->AttemptEnded(session.get(), key);
    Drain();
  }

  void Advance(absl::Duration step) {
    clock_.Advance(step);
    coordinator_->Tick();
    Drain();
  }

  CoordinatorOptions options_;
  FakeClock clock_;
  FakeRandom random_;
  MemoryStore store_;
  NullObserver observer_;
  Log log_{Level::kError, [](Level, absl::string_view) {}};
  std::deque<std::function<void()>> posted_;
  std::unique_ptr<Coordinator> coordinator_;
  std::map<std::pair<AttemptKey, int>, std::uint64_t> seq_;
  int requests_ = 0;
};

}  // namespace param
