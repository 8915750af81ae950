// The real agent loop with the real worker and the fake backend, against a coordinator in process.

#include "agent/rpc/grpc_uplink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <filesystem>
#include <set>
#include <thread>

#include "agent/core/agent.h"
#include "agent/process/backend_list.h"
#include "agent/process/children.h"
#include "agent/process/direct_launcher.h"
#include "agent/process/disk_spool.h"
#include "agent/process/reactor.h"
#include "agent/process/run_file.h"
#include "agent/process/worker_env.h"
#include "proto/base/random.h"
#include "proto/catalog/cases.h"
#include "proto/convert/values.h"
#include "tests/unit/agent/core/agent_fakes.h"
#include "tests/unit/agent/rpc/fake_coordinator.h"

namespace param::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Seen = FakeCoordinator::Seen;

// A whole agent on a thread of its own.
class RunningAgent {
 public:
  RunningAgent(const std::string& server, const std::string& folder) : folder_(folder) {
    thread_ = std::thread([this, server] { Run(server); });
  }
  ~RunningAgent() {
    reactor_->Post([this] { agent_->Stop("agent stopping"); });
    thread_.join();
  }
  RunningAgent(const RunningAgent&) = delete;
  RunningAgent& operator=(const RunningAgent&) = delete;

 private:
  // On the thread that spawns: children die with it.
  void Run(const std::string& server) {
    const std::string bin = PARAM_BINARY_DIR "/bin/param-worker";
    const std::vector<std::string> env = WorkerEnvironment(OwnEnvironment());
    Children children(*reactor_, clock_, log_.log);
    RunFile run_file(folder_ + "/run.json", "boot");
    BackendProber prober({.worker_path = bin, .env = env}, *reactor_, children);
    BackendList backends({PARAM_BINARY_DIR "/lib/param/backends"}, *ParseBackendFilter("+fake"),
                         {.reactor = reactor_.get(), .prober = &prober, .log = &log_.log});
    const auto spool = *DiskSpool::Open({.folder = folder_ + "/spool"}, log_.log);
    DirectLauncher launcher(
        {.worker_path = bin, .worker_args = {}, .env = env, .socket_root = "/tmp"},
        {.reactor = reactor_.get(),
         .children = &children,
         .run_file = &run_file,
         .log = &log_.log});
    GrpcUplink uplink({.server = server},
                      {.log = &log_.log, .post = [this](std::function<void()> what) {
                         reactor_->Post(std::move(what));
                       }});
    AgentOptions options{.node = "n1",
                         .version = "test",
                         .instance = "instance-1",
                         .labels = {},
                         .session = {},
                         .limits = {}};
    options.session.rejected_backoff = absl::Milliseconds(50);
    agent_ = std::make_unique<Agent>(options, Inventory{},
                                     Agent::Parts{.clock = &clock_,
                                                  .log = &log_.log,
                                                  .random = &random_,
                                                  .uplink = &uplink,
                                                  .launchers = {{"direct", &launcher}},
                                                  .spool = spool.get(),
                                                  .backends = &backends,
                                                  .observer = &observer_});
    launcher.SetEvents(agent_.get());
    uplink.SetEvents(agent_.get());
    backends.ProbeAll([this, &backends] {
      Inventory inventory;
      inventory.backends = backends.statuses();
      agent_->SetInventory(inventory);
      agent_->Start();
    });
    reactor_->SetHook([this, &spool] {
      EXPECT_TRUE(spool->Flush().ok());
      agent_->Tick();
      if (agent_->is_stopped()) reactor_->Quit();
      return agent_->due();
    });
    reactor_->Run();
    EXPECT_EQ(children.size(), 0u);
    agent_.reset();
  }

  const std::string folder_;
  const SystemClock clock_;
  SystemRandom random_;
  LogLines log_;
  FakeObserver observer_;
  std::unique_ptr<Reactor> reactor_ = *Reactor::Make(clock_);
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
};

class GrpcUplinkTest : public ::testing::Test {
 protected:
  GrpcUplinkTest() {
    std::string pattern = "/tmp/param-test-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~GrpcUplinkTest() override { std::filesystem::remove_all(folder_); }

  static v1::ToAgent Start(const std::string& job, int ranks, const std::string& script = "") {
    v1::ToAgent message;
    v1::StartAttempt* const start = message.mutable_start();
    start->mutable_key()->set_job_id(job);
    start->mutable_key()->set_attempt(1);
    start->set_benchmark("gemm");
    const BenchmarkSpec& gemm = **FindBenchmark("gemm");
    start->set_benchmark_version(gemm.version);
    start->set_ranks(ranks);
    for (int r = 0; r < ranks; ++r) {
      v1::RankPlace* const place = start->add_places();
      place->set_rank(r);
      place->set_local_rank(r);
      start->add_rank_nodes("n1");
    }
    start->set_device_backend("fake");
    start->set_launcher("direct");
    start->set_fake_script(script);
    const std::vector<Case> cases =
        *ExpandCases(gemm, {{"m", "16,32"}, {"n", "16"}, {"k", "16"}, {"iters", "5"}});
    for (std::size_t i = 0; i < cases.size(); ++i) {
      v1::AssignedCase* const each = start->add_cases();
      each->set_index(static_cast<int>(i));
      each->set_case_id(cases[i].id);
      ParamsToProto(cases[i].params, each->mutable_params());
    }
    return message;
  }
  template <typename Message>
  static std::vector<Message> Lines(const Seen& seen, int rank) {
    std::vector<Message> all;
    for (const v1::RankEvent& event : seen.events) {
      const auto message = line::DecodeFromWorker(event.line());
      EXPECT_TRUE(message.ok()) << message.status();
      if (event.rank() != rank || !message.ok()) continue;
      if (const auto* const one = std::get_if<Message>(&*message)) all.push_back(*one);
    }
    return all;
  }

  std::string folder_;
  FakeCoordinator coordinator_;
};

TEST_F(GrpcUplinkTest, RegistersWithTheProbedFakeBackendAndBeats) {
  RunningAgent agent(coordinator_.address(), folder_);
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return seen.heartbeats >= 2; }));
  const v1::Register hello = coordinator_.seen().registers.at(0);
  EXPECT_EQ(hello.node(), "n1");
  EXPECT_EQ(hello.instance(), "instance-1");
  bool found = false;
  for (const v1::BackendStatus& backend : hello.inventory().backends()) {
    if (backend.name() != "fake") continue;
    found = true;
    EXPECT_TRUE(backend.usable()) << backend.reason();
    EXPECT_GT(backend.devices(), 0);
  }
  EXPECT_TRUE(found);
}

TEST_F(GrpcUplinkTest, RunsAnAttemptWithRealWorkers) {
  RunningAgent agent(coordinator_.address(), folder_);
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return seen.registers.size() == 1; }));
  coordinator_.Send(Start("j-run", 2));
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return !seen.ended.empty(); }));
  const Seen seen = coordinator_.seen();
  for (int rank = 0; rank < 2; ++rank) {
    for (const line::Failure& failure : Lines<line::Failure>(seen, rank)) {
      ADD_FAILURE() << failure.code << " " << failure.cause;
    }
    EXPECT_THAT(Lines<line::Hello>(seen, rank), SizeIs(1));
    EXPECT_THAT(Lines<line::CaseEnd>(seen, rank), SizeIs(2));
    EXPECT_FALSE(Lines<line::Samples>(seen, rank).empty());
    EXPECT_THAT(Lines<line::Done>(seen, rank), SizeIs(1));
  }
}

TEST_F(GrpcUplinkTest, ARestartedCoordinatorGetsWhatTheOldOneDidNotAcknowledge) {
  coordinator_.SetAcking(false);
  RunningAgent agent(coordinator_.address(), folder_);
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return seen.registers.size() == 1; }));
  coordinator_.Send(Start("j-again", 1));
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return !seen.ended.empty(); }));
  const std::size_t events = coordinator_.seen().events.size();
  coordinator_.Forget();
  coordinator_.Restart();
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return !seen.ended.empty(); }));
  const Seen seen = coordinator_.seen();
  ASSERT_THAT(seen.registers, SizeIs(1));
  ASSERT_EQ(seen.registers[0].running_size(), 1);
  EXPECT_EQ(seen.registers[0].running(0).job_id(), "j-again");
  ASSERT_EQ(seen.events.size(), events);
  for (std::size_t i = 0; i < events; ++i) EXPECT_EQ(seen.events[i].seq(), i + 1);
  coordinator_.AckAll();
  coordinator_.AckAll();
  const int beats = coordinator_.seen().heartbeats;
  ASSERT_TRUE(coordinator_.WaitFor([beats](const Seen& s) { return s.heartbeats > beats + 1; }));
  coordinator_.Forget();
  coordinator_.Drop();
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& s) { return s.registers.size() == 1; }));
  EXPECT_EQ(coordinator_.seen().registers[0].running_size(), 0);
  EXPECT_THAT(coordinator_.seen().events, SizeIs(0));
}

TEST_F(GrpcUplinkTest, ARefusedAgentComesBack) {
  coordinator_.Refuse(grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "n1 is taken"));
  RunningAgent agent(coordinator_.address(), folder_);
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return seen.sessions >= 2; }));
  coordinator_.Refuse(grpc::Status::OK);
  EXPECT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return !seen.registers.empty(); }));
}

// A coordinator that takes connections and never a byte.
class DeafListener {
 public:
  DeafListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_.get(), raw, size), 0);
    EXPECT_EQ(::listen(fd_.get(), 16), 0);
    EXPECT_EQ(::getsockname(fd_.get(), raw, &size), 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  const std::string& address() const { return address_; }

 private:
  Fd fd_;
  std::string address_;
};

class ClosedOnce final : public UplinkEvents {
 public:
  void OnMessage(DownMessage) override {}
  void OnDrained() override {}
  void OnClosed(const absl::Status& status) override { closed.push_back(status); }
  std::vector<absl::Status> closed;
};

TEST_F(GrpcUplinkTest, ADeafCoordinatorIsWaitedForAndWhatWaitsIsBoundedByItsBytes) {
  const DeafListener deaf;
  const SystemClock clock;
  const std::unique_ptr<Reactor> reactor = *Reactor::Make(clock);
  LogLines log;
  ClosedOnce events;
  GrpcUplink uplink({.server = deaf.address(), .max_queued_bytes = 1 << 20},
                    {.log = &log.log, .post = [&reactor](std::function<void()> what) {
                       reactor->Post(std::move(what));
                     }});
  uplink.SetEvents(&events);
  uplink.Open(Register{});
  const ExchangePart part{
      .key = {"j-x", 1}, .round = 0, .ranks = {0}, .data = {std::string(400 << 10, 'x')}};
  const auto run = [&](absl::Duration patience) {
    const absl::Duration end = clock.Monotonic() + patience;
    reactor->SetHook([&] {
      if (!events.closed.empty() || clock.Monotonic() >= end) reactor->Quit();
      return end;
    });
    reactor->Run();
  };
  uplink.Send(part);
  uplink.Send(part);
  EXPECT_FALSE(uplink.IsIdle());
  run(absl::Milliseconds(500));
  // Within the bound, and slow to shake hands is not gone.
  EXPECT_THAT(events.closed, SizeIs(0));
  uplink.Send(part);
  run(absl::Seconds(30));
  ASSERT_THAT(events.closed, SizeIs(1));
  EXPECT_EQ(events.closed[0].code(), absl::StatusCode::kCancelled);
}

TEST_F(GrpcUplinkTest, AStoppedAttemptEndsAsCancelled) {
  RunningAgent agent(coordinator_.address(), folder_);
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return seen.registers.size() == 1; }));
  coordinator_.Send(
      Start("j-stop", 2, R"({"faults": [{"at": "timed", "kind": "hang", "rank": 0}]})"));
  ASSERT_TRUE(coordinator_.WaitFor(
      [](const Seen& seen) { return !Lines<line::CaseBegin>(seen, 0).empty(); }));
  v1::ToAgent stop;
  stop.mutable_stop()->mutable_key()->set_job_id("j-stop");
  stop.mutable_stop()->mutable_key()->set_attempt(1);
  stop.mutable_stop()->set_reason("cancelled by local");
  coordinator_.Send(stop);
  ASSERT_TRUE(coordinator_.WaitFor([](const Seen& seen) { return !seen.ended.empty(); }));
  const Seen seen = coordinator_.seen();
  ASSERT_THAT(Lines<line::Failure>(seen, 0), SizeIs(1));
  EXPECT_EQ(Lines<line::Failure>(seen, 0)[0].code, "CANCELLED");
}

}  // namespace
}  // namespace param::agent
