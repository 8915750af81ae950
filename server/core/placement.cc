#include "server/core/placement.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "server/core/backend_choice.h"

namespace param {
namespace {

bool Selected(const Job& job, const NodeEntry& node) {
  const JobSpec& spec = job.spec;
  if (!spec.node_names.empty() && std::find(spec.node_names.begin(), spec.node_names.end(),
                                            node.record.node) == spec.node_names.end()) {
    return false;
  }
  const auto labels = node.labels();
  return std::all_of(spec.selector.begin(), spec.selector.end(), [&labels](const auto& want) {
    const auto it = labels.find(want.first);
    return it != labels.end() && it->second == want.second;
  });
}

// Connected, or within its lease to come back: a broken connection must not let smaller jobs pass.
bool Counts(const NodeEntry& node) { return node.registered && !node.lost; }

int RanksOn(const Job& job, const NodeEntry& node, const std::string& device) {
  if (job.spec.ranks_per_node > 0) return job.spec.ranks_per_node;
  return DefaultRanksPerNode(node.registration.inventory, device);
}

// Why a job that communicates cannot do without a comm backend ("" = it does not communicate).
std::string WhyNoComm(const Job& job, const std::string& device) {
  const auto bench = FindBenchmark(job.spec.benchmark);
  if (!bench.ok() || !(*bench)->needs_comm) return "";
  return absl::StrCat(job.spec.benchmark,
                      " needs a communication backend, and none that works with ", device,
                      " is usable; paramctl node show NODE lists them");
}

// "" when the node could run the job if it were free.
std::string WhyNot(const Job& job, const NodeEntry& node, const std::string& device,
                   const std::vector<std::string>& comm, const Footprint& footprint) {
  const Inventory& inventory = node.registration.inventory;
  std::string why = WhyNotUsable(inventory, device, "device", job.spec.benchmark);
  for (const std::string& name : comm) {
    if (why.empty()) why = WhyNotUsable(inventory, name, "comm", job.spec.benchmark);
    if (why.empty()) why = WhyNotTogether(inventory, name, device);
  }
  if (why.empty() && comm.empty()) why = WhyNoComm(job, device);
  if (!why.empty()) return why;
  const std::int64_t ranks = std::max(1, RanksOn(job, node, device));
  const auto too_large = [ranks](absl::string_view where, std::int64_t need, std::int64_t share,
                                 std::int64_t has) {
    if (has <= 0 || need <= share) return std::string();
    return absl::StrCat("a rank needs ", FormatBytes(need), " of ", where, " memory (", ranks,
                        ranks == 1 ? " rank" : " ranks", " a node), the node has ",
                        FormatBytes(has));
  };
  const std::int64_t device_memory = DeviceMemory(inventory, device);
  if (device_memory > 0) {
    why = too_large("device", footprint.device_bytes, device_memory, device_memory);
    if (!why.empty()) return why;
  }
  // Devices without memory of their own hold the buffers in the host's.
  const std::int64_t host = footprint.host_bytes + (device_memory > 0 ? 0 : footprint.device_bytes);
  return too_large("host", host, inventory.memory_bytes / ranks, inventory.memory_bytes);
}

std::vector<const Inventory*> Inventories(const std::vector<const NodeEntry*>& nodes) {
  std::vector<const Inventory*> all;
  all.reserve(nodes.size());
  for (const NodeEntry* node : nodes) all.push_back(&node->registration.inventory);
  return all;
}

std::vector<const NodeEntry*> SelectedNodes(const Job& job,
                                            const std::map<std::string, NodeEntry>& fleet) {
  std::vector<const NodeEntry*> nodes;
  for (const auto& [name, node] : fleet) {
    if (node.registered && Selected(job, node)) nodes.push_back(&node);
  }
  std::sort(nodes.begin(), nodes.end(), [](const NodeEntry* a, const NodeEntry* b) {
    return NaturalLess(a->record.node, b->record.node);
  });
  return nodes;
}

// What the job may run on, in the order to try.
absl::StatusOr<std::vector<BackendPair>> Backends(const Job& job,
                                                  const std::vector<const NodeEntry*>& nodes) {
  PARAM_ASSIGN_OR_RETURN(const BenchmarkSpec* const bench, FindBenchmark(job.spec.benchmark));
  return BackendPairs(job.spec.backend, bench->needs_comm, Inventories(nodes));
}

struct Candidates {
  std::vector<const NodeEntry*> could;  // run it if free
  std::vector<const NodeEntry*> free;
  std::string device;
  std::vector<std::string> comm;
  std::string why_not;  // of the last node that could not
};

// What the choice of nodes itself is short of: names that nobody has, labels that nobody wears.
std::string WhyNotSelected(const Job& job, const std::map<std::string, NodeEntry>& fleet,
                           const std::vector<const NodeEntry*>& selected) {
  std::vector<std::string> names;
  for (const auto& [name, node] : fleet) {
    if (node.registered) names.push_back(name);
  }
  for (const std::string& wanted : job.spec.node_names) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      return absl::StrCat("no node \"", wanted, "\" has connected", DidYouMean(wanted, names));
    }
  }
  if (selected.empty() && !job.spec.selector.empty()) {
    const auto& [key, value] = *job.spec.selector.begin();
    return absl::StrCat("no such node has the labels wanted, ", key, "=", value, " first");
  }
  return "";
}

// The first backend with which enough nodes could run the job; else the one with the most.
Candidates FindCandidates(const Waiting& waiting, const std::map<std::string, NodeEntry>& fleet,
                          const std::set<std::string>& taken) {
  const Job& job = *waiting.job;
  const auto nodes = SelectedNodes(job, fleet);
  Candidates best;
  if (const std::string why = WhyNotSelected(job, fleet, nodes); !why.empty()) best.why_not = why;
  const auto backends = Backends(job, nodes);
  if (!backends.ok()) {
    best.why_not = std::string(backends.status().message());
    return best;
  }
  for (const BackendPair& pair : *backends) {
    Candidates found;
    found.device = pair.device;
    found.comm = pair.comm;
    for (const NodeEntry* node : nodes) {
      if (!Counts(*node)) {
        found.why_not = absl::StrCat(node->record.node, " is lost");
        continue;
      }
      if (node->record.drained) {
        found.why_not = absl::StrCat(node->record.node, " is drained");
        continue;
      }
      const std::string why = WhyNot(job, *node, pair.device, pair.comm, waiting.footprint);
      if (!why.empty()) {
        found.why_not = absl::StrCat(node->record.node, ": ", why);
        continue;
      }
      found.could.push_back(node);
      if (node->session != nullptr && node->job_id.empty() && !taken.contains(node->record.node)) {
        found.free.push_back(node);
      }
    }
    if (found.why_not.empty()) found.why_not = best.why_not;
    const bool better = best.device.empty() || found.could.size() > best.could.size();
    if (better) best = std::move(found);
    if (best.could.size() >= static_cast<std::size_t>(job.spec.nodes)) break;
  }
  return best;
}

Placement Place(const Job& job, const Candidates& candidates) {
  Placement placement;
  placement.job_id = job.job_id;
  placement.device_backend = candidates.device;
  placement.comm_backends = candidates.comm;
  int rank = 0;
  for (int i = 0; i < job.spec.nodes; ++i) {
    const NodeEntry& node = *candidates.free[static_cast<std::size_t>(i)];
    const int ranks = RanksOn(job, node, candidates.device);
    for (int local = 0; local < ranks; ++local) {
      placement.ranks.push_back(RankPlace{rank++, node.record.node, local});
    }
    placement.oversubscribed |= node.share.oversubscribed;
    placement.oversubscribed |=
        !node.share.cpus.empty() && static_cast<std::size_t>(ranks) > node.share.cpus.size();
  }
  return placement;
}

std::string TooFew(const Job& job, const Candidates& candidates) {
  std::vector<std::string> names;
  for (const NodeEntry* node : candidates.could) {
    if (names.size() < 8) names.push_back(node->record.node);
  }
  return absl::StrCat("needs ", job.spec.nodes, " nodes; ", candidates.could.size(),
                      " that could run it are connected",
                      names.empty() ? "" : absl::StrCat(" (", absl::StrJoin(names, ", "), ")"),
                      candidates.why_not.empty() ? "" : absl::StrCat("; ", candidates.why_not));
}

std::string TooBusy(const Job& job, const Candidates& candidates) {
  std::vector<std::string> why, kept;
  for (const NodeEntry* node : candidates.could) {
    const std::string& name = node->record.node;
    if (!node->job_id.empty()) {
      if (why.size() < 4) why.push_back(absl::StrCat(name, " runs ", node->job_id));
    } else if (node->session == nullptr) {
      if (why.size() < 4) why.push_back(absl::StrCat(name, " is disconnected"));
    } else if (std::find(candidates.free.begin(), candidates.free.end(), node) ==
               candidates.free.end()) {
      if (kept.size() < 4) kept.push_back(name);
    }
  }
  if (!kept.empty()) {
    why.push_back(absl::StrCat("an earlier job gets ", absl::StrJoin(kept, " and ")));
  }
  return absl::StrCat("waits for ", job.spec.nodes,
                      job.spec.nodes == 1 ? " free node, " : " free nodes, ",
                      candidates.free.size(), " free now; ", absl::StrJoin(why, ", "));
}

}  // namespace

PlacementPlan PlanPlacements(std::vector<Waiting> waiting,
                             const std::map<std::string, NodeEntry>& fleet) {
  std::stable_sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) {
    if (a.job->spec.priority != b.job->spec.priority) {
      return a.job->spec.priority > b.job->spec.priority;
    }
    if (a.job->timeline.submitted != b.job->timeline.submitted) {
      return a.job->timeline.submitted < b.job->timeline.submitted;
    }
    return a.job->job_id < b.job->job_id;
  });
  PlacementPlan plan;
  std::set<std::string> taken;  // placed now, or held back for an earlier job
  for (const Waiting& each : waiting) {
    const Job& job = *each.job;
    const Candidates candidates = FindCandidates(each, fleet, taken);
    const auto wanted = static_cast<std::size_t>(job.spec.nodes);
    if (candidates.could.size() < wanted) {
      plan.reasons[job.job_id] = TooFew(job, candidates);
      continue;
    }
    if (candidates.free.size() < wanted) {
      plan.reasons[job.job_id] = TooBusy(job, candidates);
      for (const NodeEntry* node : candidates.free) taken.insert(node->record.node);
      continue;
    }
    plan.placed.push_back(Place(job, candidates));
    for (const RankPlace& place : plan.placed.back().ranks) taken.insert(place.node);
  }
  return plan;
}

std::int64_t LargestWorld(const Waiting& waiting, const std::map<std::string, NodeEntry>& fleet) {
  const Job& job = *waiting.job;
  const auto wanted = static_cast<std::size_t>(job.spec.nodes);
  if (job.spec.ranks_per_node > 0) return std::int64_t{job.spec.nodes} * job.spec.ranks_per_node;
  const Candidates candidates = FindCandidates(waiting, fleet, {});
  if (candidates.could.size() < wanted) return 0;
  std::vector<std::int64_t> ranks;
  for (const NodeEntry* node : candidates.could) {
    ranks.push_back(RanksOn(job, *node, candidates.device));
  }
  std::sort(ranks.begin(), ranks.end(), std::greater<>());
  return std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(wanted),
                         std::int64_t{0});
}

absl::StatusOr<Footprint> LargestFootprint(const BenchmarkSpec& bench,
                                           const std::vector<CaseRecord>& cases,
                                           const JobSpec& spec) {
  const int ranks = spec.nodes * std::max(1, spec.ranks_per_node);
  Footprint largest;
  for (const CaseRecord& record : cases) {
    PARAM_ASSIGN_OR_RETURN(const Footprint footprint, bench.footprint(record.planned.params, ranks),
                           record.planned.id);
    largest.host_bytes = std::max(largest.host_bytes, footprint.host_bytes);
    largest.device_bytes = std::max(largest.device_bytes, footprint.device_bytes);
  }
  return largest;
}

absl::Status CheckSatisfiable(const Job& job, const std::vector<CaseRecord>& cases,
                              const std::map<std::string, NodeEntry>& fleet) {
  PARAM_ASSIGN_OR_RETURN(const BenchmarkSpec* bench, FindBenchmark(job.spec.benchmark));
  PARAM_ASSIGN_OR_RETURN(const Footprint footprint, LargestFootprint(*bench, cases, job.spec));
  const auto nodes = SelectedNodes(job, fleet);
  if (nodes.empty()) return absl::OkStatus();  // nobody to ask yet: it waits, and says so
  PARAM_ASSIGN_OR_RETURN(const auto backends, Backends(job, nodes));
  std::string why = "no node has a usable backend";
  for (const BackendPair& pair : backends) {
    for (const NodeEntry* node : nodes) {
      const std::string reason = WhyNot(job, *node, pair.device, pair.comm, footprint);
      if (reason.empty()) return absl::OkStatus();
      why = absl::StrCat(node->record.node, ": ", reason);
    }
  }
  return absl::FailedPreconditionError(absl::StrCat("no node can run this job; for example ", why));
}

}  // namespace param
