#include "server/core/node_table.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "absl/strings/ascii.h"
#include "proto/base/status.h"

namespace param {

std::map<std::string, std::string> NodeEntry::labels() const {
  std::map<std::string, std::string> all = record.labels;
  all.insert(registration.labels.begin(), registration.labels.end());
  return all;
}

void NodeTable::Restore(NodeRecord record) {
  NodeEntry& node = nodes_[record.node];
  node.lost = true;
  node.registration.node = record.node;
  node.record = std::move(record);
}

bool NodeTable::Alive(const NodeEntry& node) const {
  return node.session != nullptr && clock_.Monotonic() - node.last_heard < lease_;
}

absl::StatusOr<NodeEntry*> NodeTable::Register(std::shared_ptr<AgentSession> session,
                                               Registration registration) {
  if (registration.node.empty() || registration.node.size() > 253 ||
      !std::all_of(registration.node.begin(), registration.node.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ||
               c == '_';
      })) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node name \"", registration.node, "\": use 1 to 253 letters, digits, '-', '.' and '_'"));
  }
  NodeEntry& node = nodes_[registration.node];
  const bool same_process = node.registration.instance == registration.instance;
  // Within its lease a name also belongs to the machine whose connection broke.
  const bool elsewhere = node.registered && !node.lost &&
                         node.registration.inventory.boot_id != registration.inventory.boot_id &&
                         clock_.Monotonic() - node.last_heard < lease_;
  if ((Alive(node) || elsewhere) && !same_process) {
    return absl::AlreadyExistsError(absl::StrCat(
        "node name \"", registration.node, "\" is taken by a live agent at ",
        node.registration.address, "; give this one another --name or stop the other"));
  }
  if (node.session != nullptr) {
    node.session->Close(absl::AbortedError("the agent opened a new session"));
  }
  node.session = std::move(session);
  node.registration = std::move(registration);
  node.registered = true;
  node.lost = false;
  node.must_resend = false;
  node.record.node = node.registration.node;
  const std::int64_t now = absl::ToUnixNanos(clock_.Wall());
  if (node.record.first_seen_ns == 0) node.record.first_seen_ns = now;
  Heard(node);
  return &node;
}

NodeEntry* NodeTable::OfSession(const AgentSession* session) {
  for (auto& [name, node] : nodes_) {
    if (node.session.get() == session) return &node;
  }
  return nullptr;
}

NodeEntry* NodeTable::Find(const std::string& name) {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

void NodeTable::Heard(NodeEntry& node) {
  node.last_heard = clock_.Monotonic();
  node.record.last_seen_ns = absl::ToUnixNanos(clock_.Wall());
}

void NodeTable::Disconnected(NodeEntry& node) { node.session.reset(); }

void NodeTable::Expect(const std::string& name) {
  NodeEntry& node = nodes_[name];
  node.record.node = name;
  node.registration.node = name;
  node.lost = false;
  node.last_heard = clock_.Monotonic();
}

std::vector<NodeEntry*> NodeTable::ExpireLeases() {
  std::vector<NodeEntry*> expired;
  for (auto& [name, node] : nodes_) {
    if (node.lost || clock_.Monotonic() - node.last_heard < lease_) continue;
    node.lost = true;
    if (node.session != nullptr) {
      node.session->Close(absl::DeadlineExceededError("no heartbeat within the lease"));
      node.session.reset();
    }
    expired.push_back(&node);
  }
  return expired;
}

namespace {

// Shares of agents on one machine, in natural order of their names. Cores that the same agents may
// use are split between these.
std::map<NodeEntry*, CpuShare> Shares(const std::vector<NodeEntry*>& agents) {
  std::map<int, std::vector<NodeEntry*>> users;  // of each core
  for (NodeEntry* agent : agents) {
    for (const int cpu : agent->registration.inventory.cpus) users[cpu].push_back(agent);
  }
  std::map<std::vector<NodeEntry*>, std::vector<int>> groups;
  for (auto& [cpu, who] : users) groups[who].push_back(cpu);
  std::map<NodeEntry*, CpuShare> shares;
  for (NodeEntry* agent : agents) shares[agent];
  for (const auto& [who, cpus] : groups) {
    if (cpus.size() < who.size()) continue;
    for (std::size_t i = 0; i < who.size(); ++i) {
      std::vector<int>& mine = shares[who[i]].cpus;
      mine.insert(mine.end(),
                  cpus.begin() + static_cast<std::ptrdiff_t>(i * cpus.size() / who.size()),
                  cpus.begin() + static_cast<std::ptrdiff_t>((i + 1) * cpus.size() / who.size()));
    }
  }
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const std::vector<int>& allowed = agents[i]->registration.inventory.cpus;
    CpuShare& share = shares[agents[i]];
    if (share.cpus.empty() && !allowed.empty()) {
      share.cpus = {allowed[i % allowed.size()]};
      share.oversubscribed = true;
    }
    std::sort(share.cpus.begin(), share.cpus.end());
  }
  return shares;
}

}  // namespace

std::vector<NodeEntry*> NodeTable::SplitCores() {
  std::map<std::string, std::vector<NodeEntry*>> machines;
  for (auto& [name, node] : nodes_) {
    if (!node.registered || node.lost) continue;
    const std::string& boot_id = node.registration.inventory.boot_id;
    machines[boot_id.empty() ? absl::StrCat("node ", name) : boot_id].push_back(&node);
  }
  std::vector<NodeEntry*> changed;
  for (auto& [boot_id, agents] : machines) {
    std::sort(agents.begin(), agents.end(), [](const NodeEntry* a, const NodeEntry* b) {
      return NaturalLess(a->record.node, b->record.node);
    });
    for (auto& [agent, share] : Shares(agents)) {
      agent->co_located = static_cast<int>(agents.size());
      if (share == agent->share) continue;
      agent->share = std::move(share);
      changed.push_back(agent);
    }
  }
  return changed;
}

absl::string_view NodeState(const NodeEntry& node) {
  if (node.lost || !node.registered) return "lost";
  if (node.record.drained) return node.job_id.empty() ? "drained" : "draining";
  return node.job_id.empty() ? "ready" : "busy";
}

NodeView NodeTable::View(const NodeEntry& node) const {
  NodeView view;
  view.name = node.record.node;
  view.state = std::string(NodeState(node));
  if (node.record.drained) {
    view.reason = node.record.drain_reason;
  } else if (view.state == "lost") {
    view.reason = node.registered ? "no heartbeat within the lease" : "not seen since the start";
  } else if (node.session == nullptr) {
    view.reason = "connection lost; waiting for the agent to come back";
  }
  view.labels = node.labels();
  view.inventory = node.registration.inventory;
  view.job_id = node.job_id;
  view.last_seen_ns = node.record.last_seen_ns;
  view.agent_version = node.registration.version;
  view.address = node.registration.address;
  view.share = node.share;
  return view;
}

bool NaturalLess(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  const auto digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    std::size_t end_a = i, end_b = j;
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    end_a = i;
    end_b = j;
    while (end_a < a.size() && digit(a[end_a])) ++end_a;
    while (end_b < b.size() && digit(b[end_b])) ++end_b;
    if (end_a - i != end_b - j) return end_a - i < end_b - j;
    const int order = a.compare(i, end_a - i, b, j, end_b - j);
    if (order != 0) return order < 0;
    i = end_a;
    j = end_b;
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;  // n1 and n01: some order, always the same
}

}  // namespace param
