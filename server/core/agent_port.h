#pragma once
// What the coordinator says to agents. Owned by core, implemented by server/rpc.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/core/job.h"
#include "server/core/launch_plan.h"
#include "server/core/node.h"

namespace param {

struct StartAttempt {
  AttemptKey key;
  std::string benchmark;
  int benchmark_version = 0;
  int ranks = 0;                  // of the whole attempt
  std::vector<RankPlace> places;  // on this node
  std::vector<std::string> rank_nodes;
  std::string device_backend;
  std::vector<std::string> comm_backends;
  std::string launcher;
  std::vector<CaseRecord> cases;
  std::map<std::string, std::int64_t> phase_deadlines_ns;
  std::string fake_script;
  std::vector<int> cpus;
  LaunchPlan plan;  // for launchers that need one
};
// The head's launcher wants its daemon on this node.
struct StartDaemon {
  AttemptKey key;
  std::string host;
  std::vector<std::string> args;
};
// To the head: what became of a daemon that it wanted.
struct DaemonEnded {
  AttemptKey key;
  std::string host;
  int exit_code = 0;
  std::string cause;
};
struct StopAttempt {
  AttemptKey key;
  bool graceful = false;
  std::string reason;
};
struct ExchangeAll {
  AttemptKey key;
  std::uint64_t round = 0;
  std::vector<std::string> data;  // by rank
};
struct EventsAck {
  AttemptKey key;
  int rank = 0;
  std::uint64_t seq = 0;  // stored up to and with this
};
struct ShareChanged {
  CpuShare share;
};
using ToAgent = std::variant<StartAttempt, StopAttempt, ExchangeAll, EventsAck, ShareChanged,
                             StartDaemon, DaemonEnded>;

// One connected agent. Send never blocks and never calls back inline; messages arrive in order or
// the session ends. Close ends the session with a status that the agent shows.
class AgentSession {
 public:
  virtual ~AgentSession() = default;
  virtual void Send(ToAgent message) = 0;
  virtual void Close(absl::Status status) = 0;
};

// What an agent is told when it was accepted.
struct Welcome {
  std::int64_t heartbeat_period_ns = 0;
  std::int64_t lease_ns = 0;
  CpuShare share;
  std::vector<AttemptKey> unknown;  // not ours: kill them
};

}  // namespace param
