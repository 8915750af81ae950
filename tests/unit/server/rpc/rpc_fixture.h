#pragma once
// A coordinator behind a real port of this machine, with a store in memory, and what a test needs
// to play its agents and its users over the wire.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "param/v1/agent.grpc.pb.h"
#include "param/v1/job.grpc.pb.h"
#include "param/v1/node.grpc.pb.h"
#include "param/v1/result.grpc.pb.h"
#include "proto/base/sync.h"
#include "proto/base/version.h"
#include "proto/convert/status.h"
#include "server/core/coordinator.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/loop.h"
#include "server/store/memory_store.h"
#include "tests/fakes/fake_random.h"

namespace param {

// How long anything is awaited before a test fails.
inline constexpr std::chrono::seconds kPatience{60};

// A connection of its own: nothing is shared with another client of the same test. `window` bounds
// what the server may send ahead of a reader.
inline std::shared_ptr<grpc::Channel> Dial(const std::string& address, int window = 65536) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // the window stays what it is
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// One agent's stream, its messages said by the test. Not thread safe.
class PlayedAgent {
 public:
  explicit PlayedAgent(const std::string& address)
      : stub_(v1::AgentService::NewStub(Dial(address))) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->Session(&context_);
  }
  ~PlayedAgent() { context_.TryCancel(); }
  PlayedAgent(const PlayedAgent&) = delete;
  PlayedAgent& operator=(const PlayedAgent&) = delete;

  static v1::Register Registration(const std::string& node) {
    v1::Register out;
    out.set_node(node);
    out.set_protocol(kProtocolVersion);
    out.set_version("9.8.7");
    out.set_instance("process-of-" + node);
    v1::Inventory& inventory = *out.mutable_inventory();
    inventory.set_hostname("host-" + node);
    inventory.set_boot_id("boot-" + node);
    inventory.set_cores(2);
    inventory.mutable_cpus()->Add(0);
    inventory.mutable_cpus()->Add(1);
    inventory.set_memory_bytes(std::int64_t{8} << 30);
    v1::BackendStatus& cpu = *inventory.add_backends();
    cpu.set_name("cpu");
    cpu.set_installed(true);
    cpu.set_loadable(true);
    cpu.set_usable(true);
    cpu.set_devices(1);
    cpu.add_tables("device");
    cpu.add_benchmarks("*");
    cpu.set_preference(10);
    return out;
  }

  bool Send(const v1::FromAgent& message) { return stream_->Write(message); }
  void Register(const v1::Register& registration) {
    v1::FromAgent message;
    *message.mutable_register_() = registration;
    EXPECT_TRUE(Send(message));
  }

  // The next message of that kind; what else comes meanwhile waits for its own Await. A default
  // message when the call ended first.
  v1::ToAgent Await(v1::ToAgent::KindCase kind) {
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (it->kind_case() != kind) continue;
      v1::ToAgent found = std::move(*it);
      waiting_.erase(it);
      return found;
    }
    v1::ToAgent message;
    while (stream_->Read(&message)) {
      if (message.kind_case() == kind) return message;
      waiting_.push_back(std::move(message));
    }
    return v1::ToAgent();
  }
  v1::StartAttempt AwaitStart() { return Await(v1::ToAgent::kStart).start(); }

  // The next events of a rank, in one message.
  void Say(const v1::AttemptKey& key, int rank, const std::vector<line::FromWorker>& lines) {
    v1::FromAgent message;
    std::uint64_t& seq = seq_[{key.job_id(), rank}];
    for (const line::FromWorker& each : lines) {
      v1::RankEvent& event = *message.mutable_events()->add_events();
      *event.mutable_key() = key;
      event.set_rank(rank);
      event.set_seq(++seq);
      event.set_line(line::Encode(each));
    }
    EXPECT_TRUE(Send(message));
  }
  // All that the rank said so far is acknowledged. False: the call ended first.
  [[nodiscard]] bool AwaitAck(const v1::AttemptKey& key, int rank) {
    for (;;) {
      const v1::ToAgent message = Await(v1::ToAgent::kAck);
      if (!message.has_ack()) return false;
      for (const v1::AckEntry& entry : message.ack().entries()) {
        if (entry.key().job_id() == key.job_id() && entry.rank() == rank &&
            entry.seq() == seq_[{key.job_id(), rank}]) {
          return true;
        }
      }
    }
  }
  void EndAttempt(const v1::AttemptKey& key) {
    v1::FromAgent message;
    *message.mutable_attempt_ended()->mutable_key() = key;
    EXPECT_TRUE(Send(message));
  }
  // An answered heartbeat: everything said before was taken in.
  [[nodiscard]] bool Beat(std::int64_t time_ns) {
    v1::FromAgent message;
    message.mutable_heartbeat()->set_time_ns(time_ns);
    return Send(message) && Await(v1::ToAgent::kHeartbeat).heartbeat().time_ns() == time_ns;
  }
  // How the coordinator ended the call.
  absl::Status Finish() {
    v1::ToAgent message;
    while (stream_->Read(&message)) waiting_.push_back(message);
    return FromGrpc(stream_->Finish());
  }

 private:
  const std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::FromAgent, v1::ToAgent>> stream_;
  std::deque<v1::ToAgent> waiting_;
  std::map<std::pair<std::string, int>, std::uint64_t> seq_;  // by (job, rank)
};

// One watcher of a job. Not thread safe.
class PlayedWatcher {
 public:
  PlayedWatcher(const std::string& address, const std::string& job_id, std::uint64_t after_seq = 0)
      : stub_(v1::JobService::NewStub(Dial(address))) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::WatchRequest request;
    request.set_job_id(job_id);
    request.set_after_seq(after_seq);
    stream_ = stub_->Watch(&context_, request);
  }
  ~PlayedWatcher() { context_.TryCancel(); }
  PlayedWatcher(const PlayedWatcher&) = delete;
  PlayedWatcher& operator=(const PlayedWatcher&) = delete;

  // Reads one event; false: the stream ended.
  bool Next(v1::JobEvent* event) { return stream_->Read(event); }
  // Reads until `count` more cases came; false: the stream ended first.
  [[nodiscard]] bool AwaitCases(int count) {
    v1::JobEvent event;
    while (count > 0 && Next(&event)) count -= event.has_case_done() ? 1 : 0;
    return count == 0;
  }
  std::vector<v1::JobEvent> ReadToEnd() {
    std::vector<v1::JobEvent> events;
    v1::JobEvent event;
    while (Next(&event)) events.push_back(event);
    return events;
  }
  void Cancel() { context_.TryCancel(); }
  absl::Status Finish() { return FromGrpc(stream_->Finish()); }  // after the last event

 private:
  const std::unique_ptr<v1::JobService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::JobEvent>> stream_;
};

// The machine's clock, which a test may put forward. Thread safe.
class ShiftedClock final : public Clock {
 public:
  absl::Time Wall() const override { return real_.Wall(); }
  absl::Duration Monotonic() const override {
    return real_.Monotonic() + absl::Nanoseconds(shift_ns_.load());
  }
  void Advance(absl::Duration step) { shift_ns_ += absl::ToInt64Nanoseconds(step); }

 private:
  const SystemClock real_;
  std::atomic<std::int64_t> shift_ns_ = 0;
};

class RpcTest : public testing::Test {
 protected:
  static constexpr int kReaders = 2;

  RpcTest()
      : loop_(absl::Milliseconds(20), [this] { coordinator_.Tick(); }),
        readers_(kReaders, 64),
        coordinator_(
            Options(), clock_, random_, store_,
            [this](std::function<void()> closure) { loop_.Post(std::move(closure)); }, observer_,
            log_),
        context_{coordinator_,
                 store_,
                 loop_,
                 readers_,
                 clock_,
                 log_,
                 [this](absl::string_view method, absl::string_view code, double seconds) {
                   EXPECT_GE(seconds, 0);
                   MutexLock lock(mu_);
                   ++calls_[absl::StrCat(method, " ", code)];
                   called_.NotifyAll();
                 }} {
    loop_.Start();
    auto server = GrpcServer::Start(context_, "127.0.0.1:0", facts_);
    EXPECT_TRUE(server.ok()) << server.status();
    if (!server.ok()) return;
    server_ = *std::move(server);
    channel_ = Dial(address());
    jobs_ = v1::JobService::NewStub(channel_);
    nodes_ = v1::NodeService::NewStub(channel_);
    fleet_ = v1::FleetService::NewStub(channel_);
    results_ = v1::ResultService::NewStub(channel_);
  }
  ~RpcTest() override {
    if (server_ != nullptr) server_->Shutdown(absl::ZeroDuration());
    readers_.Stop();
    loop_.Stop();
  }
  RpcTest(const RpcTest&) = delete;
  RpcTest& operator=(const RpcTest&) = delete;

  const std::string& address() const { return facts_.listen; }

  // A unary call: Call(*jobs_, &v1::JobService::Stub::Get, request).
  template <typename Stub, typename Request, typename Response>
  static absl::StatusOr<Response> Call(Stub& stub,
                                       grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                                       const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    Response response;
    const absl::Status status = FromGrpc((stub.*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  std::unique_ptr<PlayedAgent> Connected(const v1::Register& registration) {
    auto agent = std::make_unique<PlayedAgent>(address());
    agent->Register(registration);
    EXPECT_TRUE(agent->Await(v1::ToAgent::kRegistered).has_registered());
    return agent;
  }
  std::unique_ptr<PlayedAgent> Connected(const std::string& node) {
    return Connected(PlayedAgent::Registration(node));
  }

  static v1::JobSpec Gemm(int nodes, const std::string& m = "64") {
    v1::JobSpec spec;
    spec.set_benchmark("gemm");
    (*spec.mutable_params())["m"] = m;
    (*spec.mutable_params())["n"] = "64";
    (*spec.mutable_params())["k"] = "64";
    spec.set_nodes(nodes);
    return spec;
  }
  absl::StatusOr<v1::Job> Submit(const v1::JobSpec& spec, const std::string& request_id = "") {
    v1::SubmitRequest request;
    request.mutable_principal()->set_name("local");
    request.set_request_id(request_id.empty() ? absl::StrCat("request-", ++requests_) : request_id);
    *request.mutable_spec() = spec;
    auto response = Call(*jobs_, &v1::JobService::Stub::Submit, request);
    if (!response.ok()) return response.status();
    return response->job();
  }
  absl::StatusOr<v1::GetJobResponse> Get(const std::string& job_id) {
    v1::GetJobRequest request;
    request.set_job_id(job_id);
    request.set_with_cases(true);
    request.set_with_environment(true);
    return Call(*jobs_, &v1::JobService::Stub::Get, request);
  }

  // What a rank says of a case that passes with three samples.
  static std::vector<line::FromWorker> PassedCase(std::int64_t index) {
    return {line::CaseBegin{index}, line::PhaseBegin{line::Phase::kTimed, index},
            line::Samples{index, "time", "s", {}, {0.5, 1.0, 1.5}},
            line::CaseEnd{index, line::CaseStatus::kPassed, "", {}, {{"library", "played"}}}};
  }
  static std::vector<line::FromWorker> Bringup() {
    using line::Phase;
    return {line::PhaseBegin{Phase::kRendezvous, -1}, line::PhaseEnd{Phase::kRendezvous, -1},
            line::PhaseBegin{Phase::kCommInit, -1}, line::PhaseEnd{Phase::kCommInit, -1}};
  }
  // Plays the one rank of a one-case job from its start to its end.
  void RunToEnd(PlayedAgent& agent, const v1::AttemptKey& key) {
    agent.Say(key, 0, Bringup());
    agent.Say(key, 0, {line::Environment{{{"threads", "2"}}}, line::LogLine{"warn", "it is warm"}});
    agent.Say(key, 0, PassedCase(0));
    agent.Say(key, 0, {line::Done{}});
    EXPECT_TRUE(agent.AwaitAck(key, 0));
    agent.EndAttempt(key);
  }
  // The events of a job that has ended or is about to; the stream must end well.
  std::vector<v1::JobEvent> WatchToEnd(const std::string& job_id, std::uint64_t after_seq = 0) {
    PlayedWatcher watcher(address(), job_id, after_seq);
    auto events = watcher.ReadToEnd();
    const absl::Status status = watcher.Finish();
    EXPECT_TRUE(status.ok()) << status;
    return events;
  }
  // The id of a one-case job that ran on `agent` and ended.
  std::string FinishedJob(PlayedAgent& agent) {
    const auto job = Submit(Gemm(1));
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return "";
    RunToEnd(agent, agent.AwaitStart().key());
    WatchToEnd(job->job_id());
    return job->job_id();
  }

  // Whether a call ended so ("JobService.Watch CANCELLED") before patience ran out.
  [[nodiscard]] bool AwaitCall(const std::string& method_and_code) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    MutexLock lock(mu_);
    while (calls_[method_and_code] == 0) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= std::chrono::steady_clock::duration::zero()) return false;
      called_.WaitFor(mu_, left);
    }
    return true;
  }

  Mutex mu_;
  CondVar called_;
  std::map<std::string, int> calls_ PARAM_GUARDED_BY(mu_);  // by "METHOD CODE"
  std::vector<std::string> lines_ PARAM_GUARDED_BY(mu_);    // of the log
  ShiftedClock clock_;
  FakeRandom random_;
  MemoryStore store_;
  NullObserver observer_;
  Log log_{Level::kInfo, [this](Level, absl::string_view line) {
             MutexLock lock(mu_);
             lines_.emplace_back(line);
           }};
  std::vector<std::string> Logged(absl::string_view beginning) {
    MutexLock lock(mu_);
    std::vector<std::string> found;
    for (const std::string& line : lines_) {
      if (absl::StartsWith(line, beginning)) found.push_back(line);
    }
    return found;
  }
  Loop loop_;
  ReaderPool readers_;
  Coordinator coordinator_;
  const RpcContext context_;
  FleetFacts facts_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::NodeService::Stub> nodes_;
  std::unique_ptr<v1::FleetService::Stub> fleet_;
  std::unique_ptr<v1::ResultService::Stub> results_;

 private:
  static CoordinatorOptions Options() {
    CoordinatorOptions options;
    options.lease = absl::Hours(1);  // a busy machine loses no agent
    return options;
  }
  int requests_ = 0;
};

}  // namespace param
