#pragma once
// Recording stand-ins for what the agent's core talks to.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/core/agent.h"
#include "agent/core/launcher.h"
#include "agent/core/uplink.h"
#include "proto/base/log.h"
#include "proto/line/messages.h"

namespace param::agent {

// Starts nothing; remembers everything. Process numbers are 1000 + rank.
class FakeLauncher final : public Launcher {
 public:
  absl::StatusOr<Launched> Start(const LaunchRequest& request) override {
    requests.push_back(request);
    if (!start_status.ok()) return start_status;
    Launched launched;
    for (const RankLaunch& rank : request.ranks) {
      tokens[rank.rank] = rank.token;
      const auto fails = spawn_failures.find(rank.rank);
      if (fails != spawn_failures.end()) {
        launched.failed[rank.rank] = fails->second;
      } else {
        launched.pids[rank.rank] = spawns_later ? 0 : 1000 + rank.rank;
      }
    }
    return launched;
  }
  void Send(const RankKey& rank, std::string line) override {
    absl::StatusOr<line::FromAgent> message = line::DecodeFromAgent(line);
    if (message.ok()) sent[rank.rank].push_back(*std::move(message));
  }
  void Signal(const RankKey& rank, int signal) override { signals[rank.rank].push_back(signal); }
  void Abort(const AttemptKey& key) override { aborted.push_back(key); }
  bool IsGone(const AttemptKey&) const override { return is_gone; }
  void Release(const AttemptKey& key) override { released.push_back(key); }
  void Start(const StartDaemon& wanted) override { daemons.push_back(wanted); }
  void Ended(const DaemonEnded& ended) override { ended_daemons.push_back(ended); }

  template <typename Message>
  std::vector<Message> SentTo(int rank) {
    std::vector<Message> all;
    for (const line::FromAgent& message : sent[rank]) {
      if (const auto* const one = std::get_if<Message>(&message)) all.push_back(*one);
    }
    return all;
  }

  absl::Status start_status;
  std::map<int, absl::Status> spawn_failures;
  std::vector<LaunchRequest> requests;
  std::map<int, std::string> tokens;
  std::map<int, std::vector<line::FromAgent>> sent;
  std::map<int, std::vector<int>> signals;
  std::vector<AttemptKey> aborted, released;
  std::vector<StartDaemon> daemons;
  std::vector<DaemonEnded> ended_daemons;
  bool is_gone = true;
  bool spawns_later = false;
};

class FakeUplink final : public Uplink {
 public:
  void Open(const Register& hello) override {
    hellos.push_back(hello);
    is_open = true;
  }
  void Send(UpMessage message) override {
    if (is_open) sent.push_back(std::move(message));
  }
  bool IsIdle() const override { return is_open && is_idle; }
  void Close() override { ++closes; }

  template <typename Message>
  std::vector<Message> Sent() const {
    std::vector<Message> all;
    for (const UpMessage& message : sent) {
      if (const auto* const one = std::get_if<Message>(&message)) all.push_back(*one);
    }
    return all;
  }
  std::vector<RankEvent> Events() const {
    std::vector<RankEvent> all;
    for (const RankEvents& batch : Sent<RankEvents>()) {
      all.insert(all.end(), batch.events.begin(), batch.events.end());
    }
    return all;
  }

  std::vector<Register> hellos;
  std::vector<UpMessage> sent;
  bool is_open = false, is_idle = true;
  int closes = 0;
};

class FakeBackends final : public BackendPaths {
 public:
  absl::StatusOr<std::string> Path(const std::string& name) const override {
    if (name == "fake") return std::string("/backends/fake.so");
    return absl::NotFoundError(absl::StrCat("backend ", name, " is not installed on this node"));
  }
  int Devices(const std::string&) const override { return 2; }
  void Suspect(const std::string& name) override { suspected.push_back(name); }
  std::vector<std::string> suspected;
};

class FakeObserver final : public AgentObserver {
 public:
  void AttemptEnded(absl::string_view, absl::string_view outcome, absl::Duration) override {
    outcomes.emplace_back(outcome);
  }
  void Connecting(absl::string_view reason) override { reasons.emplace_back(reason); }
  std::vector<std::string> outcomes, reasons;
};

struct LogLines {
  std::vector<std::string> lines;
  Log log{Level::kDebug, [this](Level, absl::string_view line) { lines.emplace_back(line); }};
  bool Has(absl::string_view text) const {
    for (const std::string& line : lines) {
      if (line.find(std::string(text)) != std::string::npos) return true;
    }
    return false;
  }
};

// An attempt of `cases` gemm cases on `local` ranks here, out of `ranks`.
inline StartAttempt GemmAttempt(int local, int ranks, int cases) {
  StartAttempt start;
  start.key = {"j-test", 1};
  start.benchmark = "gemm";
  start.benchmark_version = (*FindBenchmark("gemm"))->version;
  start.ranks = ranks;
  for (int r = 0; r < local; ++r) start.places.push_back({r, r});
  for (int r = 0; r < ranks; ++r) start.rank_nodes.push_back(r < local ? "n1" : "n2");
  start.device_backend = "fake";
  start.launcher = "direct";
  for (int c = 0; c < cases; ++c) {
    start.cases.push_back({.index = c, .id = absl::StrCat("gemm:v1:m=", c + 1), .params = {}});
  }
  start.cpus = {0, 1, 2, 3};
  return start;
}

// A line as a worker sends it, without its newline.
inline std::string WorkerLine(const line::FromWorker& message) {
  std::string line = line::Encode(message);
  line.pop_back();
  return line;
}

}  // namespace param::agent
