#pragma once
// How a launcher with a head node (mpirun) is to start an attempt, and what its nodes may ask of
// each other through the coordinator. Pure.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/job.h"
#include "server/core/node.h"

namespace param {

struct LaunchHost {
  std::string host;  // a name of the attempt's own: agents of one machine differ in it
  std::string node;
  int slots = 0;  // ranks on it
  friend bool operator==(const LaunchHost&, const LaunchHost&) = default;
};
struct LaunchPlan {
  std::vector<LaunchHost> hosts;            // in rank order; the first is the head
  std::vector<std::string> head_addresses;  // where the head's launcher may be reached
  std::string interface;                    // what the ranks' traffic goes over: name or networks
  bool yield_when_idle = false;             // more ranks than cores
};

// INVALID_ARGUMENT when `name` is neither empty nor a list of interfaces or networks.
absl::Status CheckInterface(const std::string& name);

// What starts ranks that use these comm backends on `node`: "direct" or what a manifest asks for.
std::string LauncherFor(const Inventory& node, const std::vector<std::string>& comm_backends);

// The hosts of an attempt. REQUIRES: ranks of one node follow each other.
std::vector<LaunchHost> HostsOf(const std::vector<RankPlace>& ranks);

// `nodes` has what each node of `ranks` said of itself. With no `wanted` interface: loopback when
// all agents share a machine and its network, else the network by which each node reaches the
// coordinator, else one that all nodes are in. FAILED_PRECONDITION when there is none,
// INVALID_ARGUMENT when `wanted` is no name or network.
absl::StatusOr<LaunchPlan> PlanLaunch(const std::vector<RankPlace>& ranks,
                                      const std::map<std::string, const Registration*>& nodes,
                                      bool oversubscribed, const std::string& wanted);

// How a daemon ended.
struct DaemonEnd {
  int exit_code = 0;
  std::string cause;  // of all but 0
  friend bool operator==(const DaemonEnd&, const DaemonEnd&) = default;
};

// Of one attempt: the head may have one daemon started per host, the node of a host may say once
// how that ended. Both may say again what they said, after a reconnect or a coordinator's restart:
// nothing changes by it.
class LaunchRelay {
 public:
  explicit LaunchRelay(std::vector<LaunchHost> hosts) : hosts_(std::move(hosts)) {}

  // The node where the daemon is to start. PERMISSION_DENIED says what is wrong.
  absl::StatusOr<std::string> Want(const std::string& from_node, const std::string& host,
                                   const std::vector<std::string>& args);
  // The head, who is to hear of it. The first end counts. PERMISSION_DENIED says what is wrong.
  absl::StatusOr<std::string> Ended(const std::string& from_node, const std::string& host,
                                    DaemonEnd end);

  // Null when it has not ended.
  const DaemonEnd* EndOf(const std::string& host) const;
  // What is to be said again to a node that was away: daemons that it is to run, by host with their
  // command lines; and, to the head, the ends of all that have ended.
  std::map<std::string, std::vector<std::string>> WantedOn(const std::string& node) const;
  std::map<std::string, DaemonEnd> EndsFor(const std::string& node) const;

 private:
  struct Daemon {
    std::optional<std::vector<std::string>> args;  // none: not asked for, as far as is known here
    std::optional<DaemonEnd> end;
  };
  const LaunchHost* Find(const std::string& host) const;

  const std::vector<LaunchHost> hosts_;
  std::map<std::string, Daemon> daemons_;  // by host
};

}  // namespace param
