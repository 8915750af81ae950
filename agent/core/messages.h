#pragma once
// What an agent and its coordinator tell each other, as plain data: the core knows no protobuf.
// agent/rpc translates to and from param/v1/agent.proto, field by field.

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "proto/line/messages.h"

namespace param::agent {

struct AttemptKey {
  std::string job_id;
  int attempt = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the rewritten "< 0" for a pointer
  friend auto operator<=>(const AttemptKey&, const AttemptKey&) = default;
};
// "j-abc/1", for logs and messages.
std::string ToString(const AttemptKey& key);

struct RankKey {
  AttemptKey key;
  int rank = 0;
  friend auto operator<=>(const RankKey&, const RankKey&) = default;
};

// ---- inventory ---------------------------------------------------------------------------------

struct BackendStatus {
  std::string name;
  bool installed = false, loadable = false, usable = false;
  std::string reason;  // of the first thing that is not so
  int devices = 0;
  std::vector<std::string> tables;      // device, comm, native
  std::vector<std::string> benchmarks;  // "*": all
  std::string version;
  std::string describe_json;
  std::vector<std::string> streams;  // of the manifest: kinds of device a comm table works with
  int preference = 0;            // of the manifest: auto takes the highest usable; 0: only by name
  bool rank_per_device = false;  // of the manifest: one rank per device unless asked otherwise
  std::string launcher;          // of the manifest: what starts ranks that use it
  std::int64_t device_memory_bytes = 0;  // of the smallest device; 0: devices use the host's
  friend bool operator==(const BackendStatus&, const BackendStatus&) = default;
};

struct Nic {
  std::string name, driver;
  std::int64_t speed_bits_per_second = 0;  // 0: unknown
  std::string state;
  friend bool operator==(const Nic&, const Nic&) = default;
};

// An address that this node has on one of its interfaces.
struct NetAddress {
  std::string interface;
  std::string address;  // "10.0.0.7", "fe80::1"
  int prefix = 0;       // bits of the network's part
  friend bool operator==(const NetAddress&, const NetAddress&) = default;
};

struct Inventory {
  std::string hostname, boot_id, kernel, cpu_model;
  int cores = 0, sockets = 0, numa_nodes = 0;
  std::int64_t memory_bytes = 0;
  std::string governor;
  std::vector<Nic> nics;
  std::vector<BackendStatus> backends;
  std::map<std::string, std::string> libraries;
  std::vector<int> cpus;  // affinity of the agent
  std::vector<NetAddress> addresses;
  std::string network_id;  // of the network namespace: the same loopback, with the boot id
  friend bool operator==(const Inventory&, const Inventory&) = default;
};

// ---- up ----------------------------------------------------------------------------------------

struct Register {
  std::string node;
  int protocol = 0;
  std::string version;
  std::string instance;  // token of this process: tells a reconnect from a second agent
  Inventory inventory;
  std::map<std::string, std::string> labels;
  std::vector<AttemptKey> running;  // still alive here, or with results not yet taken over
};
struct Heartbeat {
  std::int64_t time_ns = 0;
  std::int64_t spool_bytes = 0;
};
struct RankEvent {
  AttemptKey key;
  int rank = 0;
  std::uint64_t seq = 0;  // 1, 2, ... per rank
  std::int64_t time_ns = 0;
  std::string line;
  friend bool operator==(const RankEvent&, const RankEvent&) = default;
};
struct RankEvents {
  std::vector<RankEvent> events;
};
struct ExchangePart {
  AttemptKey key;
  std::uint64_t round = 0;
  std::vector<int> ranks;
  std::vector<std::string> data;  // of the rank at the same index
  friend bool operator==(const ExchangePart&, const ExchangePart&) = default;
};
struct AttemptEnded {
  AttemptKey key;
};
// Up: the head's launcher wants its daemon on a host of the attempt. Down: start it here.
struct StartDaemon {
  AttemptKey key;
  std::string host;               // as LaunchPlan names it
  std::vector<std::string> args;  // as the launcher gave them, checked where the daemon starts
};
// Up: the daemon on this node has ended or was never started. Down, to the head: the same.
struct DaemonEnded {
  AttemptKey key;
  std::string host;
  int exit_code = 0;  // 128 + N for signal N; 0: it ended well
  std::string cause;  // of all but 0: a refusal, or its last words
};

using UpMessage = std::variant<Heartbeat, RankEvents, ExchangePart, AttemptEnded, Inventory,
                               StartDaemon, DaemonEnded>;

// ---- down --------------------------------------------------------------------------------------

// Co-located agents split the cores; what cannot be split is oversubscribed.
struct CpuShare {
  std::vector<int> cpus;
  bool oversubscribed = false;
};
struct Registered {
  absl::Duration heartbeat_period, lease;
  CpuShare share;
  std::vector<AttemptKey> unknown;  // not the coordinator's any more: kill them
};
struct RankPlace {
  int rank = 0;
  int local_rank = 0;
};
// How a launcher that needs a head node is to start the attempt. Empty hosts: none is needed, and
// only the interface that was asked for is there.
struct LaunchHost {
  std::string host;  // a name of the attempt's own: agents of one machine differ in it
  std::string node;
  int slots = 0;  // ranks on it; hosts are in rank order
};
struct LaunchPlan {
  std::vector<LaunchHost> hosts;            // the first is the head
  std::vector<std::string> head_addresses;  // where the head's launcher may be reached
  std::string interface;                    // what the ranks' traffic goes over: name or network
  bool yield_when_idle = false;             // more ranks than cores
};
struct StartAttempt {
  AttemptKey key;
  std::string benchmark;
  int benchmark_version = 0;
  int ranks = 0;  // of the whole attempt
  std::vector<RankPlace> places;
  std::vector<std::string> rank_nodes;
  std::string device_backend;
  std::vector<std::string> comm_backends;
  std::string launcher;
  std::vector<line::AssignedCase> cases;
  std::map<std::string, std::int64_t> phase_deadlines_ns;  // what is missing has its default
  std::string fake_script;                                 // text
  std::vector<int> cpus;
  LaunchPlan plan;
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
struct AckEntry {
  AttemptKey key;
  int rank = 0;
  std::uint64_t seq = 0;  // highest that is stored
};
struct EventsAck {
  std::vector<AckEntry> entries;
};
struct HeartbeatReply {
  std::int64_t time_ns = 0;
};

using DownMessage = std::variant<Registered, StartAttempt, StopAttempt, ExchangeAll, EventsAck,
                                 HeartbeatReply, CpuShare, StartDaemon, DaemonEnded>;

}  // namespace param::agent
