#pragma once
// Nodes and their agents, as plain data.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/core/job.h"

namespace param {

// A backend on one node: installed, loadable, usable, with the reason of the first that is not so.
struct BackendStatus {
  std::string name;
  bool installed = false, loadable = false, usable = false;
  std::string reason;
  int devices = 0;
  std::vector<std::string> tables;      // device, comm, native
  std::vector<std::string> benchmarks;  // "*": all
  std::string version;
  std::string describe_json;
  std::vector<std::string> streams;      // kinds of device a comm table works with
  int preference = 0;                    // auto takes the highest usable; 0: only by name
  bool rank_per_device = false;          // one rank per device unless asked otherwise
  std::int64_t device_memory_bytes = 0;  // of the smallest device; 0: the host's memory
};

struct Nic {
  std::string name, driver, state;
  std::int64_t speed_bits_per_second = 0;
};

struct Inventory {
  std::string hostname, boot_id, kernel, cpu_model, governor;
  int cores = 0, sockets = 0, numa_nodes = 0;
  std::int64_t memory_bytes = 0;
  std::vector<int> cpus;  // the agent's affinity
  std::vector<Nic> nics;
  std::vector<BackendStatus> backends;
  std::map<std::string, std::string> libraries;
};

struct CpuShare {
  std::vector<int> cpus;
  bool oversubscribed = false;
  friend bool operator==(const CpuShare&, const CpuShare&) = default;
};

// What an agent says of itself when it connects.
struct Registration {
  std::string node;
  int protocol = 0;
  std::string version;
  std::string instance;  // token of the agent process
  std::string address;   // peer, as the transport sees it
  Inventory inventory;
  std::string inventory_json;  // the same for the record; opaque to core
  std::map<std::string, std::string> labels;
  std::vector<AttemptKey> running;  // alive there, or with events not yet taken over
};

// A node as users see it.
struct NodeView {
  std::string name;
  std::string state;  // ready, busy, draining, drained, lost
  std::string reason;
  std::map<std::string, std::string> labels;
  Inventory inventory;
  std::string job_id;
  std::int64_t last_seen_ns = 0;
  std::string agent_version, address;
  CpuShare share;
};

}  // namespace param
