#pragma once
// The fleet: who is connected, who is drained, who shares cores with whom, whose lease ran out.
// Pure; lives on the coordinator's thread.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "server/core/agent_port.h"
#include "server/core/node.h"

namespace param {

struct NodeEntry {
  NodeRecord record;  // what outlives the connection
  Registration registration;
  std::shared_ptr<AgentSession> session;  // null while disconnected
  absl::Duration last_heard;              // monotonic
  bool registered = false;                // since this coordinator started
  bool lost = false;                      // lease ran out
  bool must_resend = false;               // its results could not be stored: until it comes back
  std::string job_id;                     // placed here and not yet gone
  CpuShare share;
  int co_located = 1;  // connected agents on its machine, itself included: they share the memory
  std::map<std::string, std::string> labels() const;  // the agent's, then the operators'
};

class NodeTable {
 public:
  NodeTable(const Clock& clock, absl::Duration lease) : clock_(clock), lease_(lease) {}

  void Restore(NodeRecord record);
  // ALREADY_EXISTS when a live agent of another process has the name. A known process takes its own
  // session over again.
  absl::StatusOr<NodeEntry*> Register(std::shared_ptr<AgentSession> session,
                                      Registration registration);
  // Null when the session is not (any more) the node's.
  NodeEntry* OfSession(const AgentSession* session);
  NodeEntry* Find(const std::string& name);
  void Heard(NodeEntry& node);
  void Disconnected(NodeEntry& node);
  // Nodes whose lease has just run out; each is reported once.
  std::vector<NodeEntry*> ExpireLeases();
  // For an attempt that was open when the coordinator last stopped: its nodes get one lease to come
  // back.
  void Expect(const std::string& name);

  // Splits the cores of co-located agents (same boot id) between them and returns whose share
  // changed. A core goes only to agents that may use it. One core at least; what cannot be split is
  // oversubscribed.
  std::vector<NodeEntry*> SplitCores();

  std::map<std::string, NodeEntry>& nodes() { return nodes_; }
  const std::map<std::string, NodeEntry>& nodes() const { return nodes_; }
  NodeView View(const NodeEntry& node) const;

 private:
  bool Alive(const NodeEntry& node) const;

  const Clock& clock_;
  const absl::Duration lease_;
  std::map<std::string, NodeEntry> nodes_;
};

// "ready", "busy", "draining", "drained", "lost".
absl::string_view NodeState(const NodeEntry& node);

// Names as people sort them: n2 before n10.
bool NaturalLess(const std::string& a, const std::string& b);

}  // namespace param
