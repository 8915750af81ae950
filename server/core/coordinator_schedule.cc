#include <algorithm>
#include <utility>

#include "proto/base/status.h"
#include "server/core/coordinator.h"
#include "server/core/open_job.h"

namespace param {

void Coordinator::Schedule() {
  std::vector<Waiting> waiting;
  for (const auto& [id, open] : jobs_) {
    if (open->job.state == JobState::kQueued && !open->finished) {
      waiting.push_back({&open->job, open->footprint});
    }
  }
  if (!waiting.empty()) {
    for (const auto& [id, open] : submitting_) waiting.push_back({&open->job, open->footprint});
    const PlacementPlan plan = PlanPlacements(std::move(waiting), nodes_.nodes());
    for (const auto& [id, reason] : plan.reasons) {
      if (!submitting_.contains(id)) SetReason(*FindOpen(id), reason);
    }
    for (const Placement& placement : plan.placed) {
      if (!submitting_.contains(placement.job_id)) StartPlaced(placement);
    }
  }
  ReportQueue();
}

void Coordinator::SetReason(OpenJob& open, const std::string& reason) {
  if (open.job.reason == reason) return;
  open.job.reason = reason;
  if (!reason.empty()) observer_.PlacementFailed("no_nodes");
  const std::string job_id = open.job.job_id;
  store_.Submit({PutJob{open.job}}, [this, job_id](absl::Status status) {
    post_([this, job_id, status] {
      OpenJob* waiting = FindOpen(job_id);
      if (status.ok() && waiting != nullptr && waiting->job.state == JobState::kQueued) {
        PublishJob(*waiting);
      }
    });
  });
}

void Coordinator::StartPlaced(const Placement& placement) {
  OpenJob& open = *FindOpen(placement.job_id);
  Job& job = open.job;
  ++job.attempt;
  job.state = JobState::kStarting;
  job.reason.clear();
  job.failure = Failure{};
  job.nodes.clear();
  job.ranks = static_cast<int>(placement.ranks.size());
  job.backend = placement.device_backend;
  for (const std::string& comm : placement.comm_backends) absl::StrAppend(&job.backend, "+", comm);
  job.oversubscribed = placement.oversubscribed;
  job.timeline.placed = Now();
  std::vector<std::string> rank_nodes;
  for (const RankPlace& place : placement.ranks) {
    rank_nodes.push_back(place.node);
    if (job.nodes.empty() || job.nodes.back() != place.node) job.nodes.push_back(place.node);
  }
  for (const std::string& name : job.nodes) {
    NodeEntry& node = *nodes_.Find(name);
    node.job_id = job.job_id;
    ReportNode(node);
  }
  open.device_backend = placement.device_backend;
  open.comm_backends = placement.comm_backends;
  open.attempt = Attempt{job.job_id, job.attempt, "OPEN", placement.ranks, {}, Now(), 0};
  open.state = std::make_unique<AttemptState>(*open.bench, AttemptKey{job.job_id, job.attempt},
                                              std::move(rank_nodes), open.cases);
  open.exchange = std::make_unique<ExchangeTable>(job.ranks);
  if (const absl::Status planned = PlanLaunchOf(open); !planned.ok()) {
    open.state->FailUnfinished(Failure{std::string(CodeName(planned.code())), "place", "", -1,
                                       std::string(planned.message()), "", 0});
    open.stopping = true;
  }
  open.accepted.assign(static_cast<std::size_t>(job.ranks), 0);
  if (job.attempt == 1) observer_.JobPlaced(job);
  log_.Info("job placed", {F("job", job.job_id), F("attempt", job.attempt),
                           F("backend", job.backend), F("ranks", job.ranks)});
  // Stored before any agent hears of it: a restarted coordinator must know what runs.
  const AttemptKey key = open.state->key();
  store_.Submit({PutAttempt{open.attempt}, PutJob{job}}, [this, key](absl::Status status) {
    post_([this, key, status] {
      OpenJob* placed = FindOpen(key);
      if (placed == nullptr) return;
      if (!status.ok()) {
        placed->state->FailUnfinished(
            Failure{std::string(CodeName(status.code())), "place", "", -1,
                    absl::StrCat("storing the attempt: ", status.message()), "", 0});
        placed->stopping = true;
      }
      SendStart(*placed);
    });
  });
}

void Coordinator::SendStart(OpenJob& open) {
  if (open.stopping) {  // cancelled meanwhile: nobody was told to start
    for (const std::string& name : open.job.nodes) {
      if (NodeEntry* node = nodes_.Find(name)) FreeNode(*node);
    }
    FinishAttempt(open);
    return;
  }
  open.sent = true;
  open.alive_on.insert(open.job.nodes.begin(), open.job.nodes.end());
  PublishJob(open);
  for (const std::string& name : open.job.nodes) {
    NodeEntry* node = nodes_.Find(name);
    // A node that is away now is told when it comes back.
    if (node != nullptr && node->session != nullptr) SendStartTo(open, *node);
  }
}

void Coordinator::SendStartsDue(OpenJob& open) {
  if (open.start_due.empty() || open.stopping || open.finished) return;
  const auto& all = nodes_.nodes();
  const bool heard_of_all =
      std::all_of(open.job.nodes.begin(), open.job.nodes.end(), [&all](const std::string& name) {
        const auto node = all.find(name);
        return node != all.end() && (node->second.registered || node->second.lost);
      });
  if (open.launcher.empty() && LauncherOf(open) != "direct" && !heard_of_all) return;
  const std::set<std::string> due = std::exchange(open.start_due, {});
  for (const std::string& name : due) {
    NodeEntry* const node = nodes_.Find(name);
    if (node == nullptr || node->session == nullptr) continue;  // told when it is back
    SendStartTo(open, *node);
    if (open.stopping || open.state == nullptr) return;
    RepeatDaemons(open, *node);
  }
}

void Coordinator::SendStartTo(OpenJob& open, NodeEntry& node) {
  if (open.launcher.empty()) {  // the attempt of a coordinator before this one
    if (const absl::Status planned = PlanLaunchOf(open); !planned.ok()) {
      LoseNode(open, node.record.node, absl::StrCat("start again: ", planned.message()));
      return;
    }
  }
  StartAttempt start;
  start.key = open.state->key();
  start.benchmark = open.job.spec.benchmark;
  start.benchmark_version = open.job.benchmark_version;
  start.ranks = open.job.ranks;
  for (const RankPlace& place : open.attempt.ranks) {
    if (place.node == node.record.node) start.places.push_back(place);
  }
  start.rank_nodes = open.state->nodes();
  start.device_backend = open.device_backend;
  start.comm_backends = open.comm_backends;
  start.launcher = open.launcher;
  start.plan = open.plan;
  start.cases = open.cases;
  start.phase_deadlines_ns = open.job.spec.phase_deadlines_ns;
  start.fake_script = open.job.spec.fake_script;
  start.cpus = node.share.cpus;
  node.session->Send(std::move(start));
}

void Coordinator::ReportQueue() {
  int queued = 0, starting = 0, running = 0;
  std::int64_t oldest = 0;
  for (const auto& [id, open] : jobs_) {
    switch (open->job.state) {
      case JobState::kQueued:
        ++queued;
        if (oldest == 0 || open->job.timeline.submitted < oldest) {
          oldest = open->job.timeline.submitted;
        }
        break;
      case JobState::kStarting:
        ++starting;
        break;
      case JobState::kRunning:
        ++running;
        break;
      case JobState::kSucceeded:
      case JobState::kFailed:
      case JobState::kCancelled:
      case JobState::kTimedOut:
        break;
    }
  }
  observer_.QueueState(queued, starting, running, oldest);
}

Coordinator::Counts Coordinator::counts() const {
  Counts counts;
  for (const auto& [name, node] : nodes_.nodes()) {
    ++counts.nodes_total;
    const absl::string_view state = NodeState(node);
    if (node.session != nullptr && (state == "ready" || state == "busy")) ++counts.nodes_ready;
  }
  for (const auto& [id, open] : jobs_) {
    if (open->job.state == JobState::kQueued) ++counts.jobs_queued;
    if (open->state != nullptr) ++counts.jobs_running;
  }
  return counts;
}

void Coordinator::Tick() {
  for (NodeEntry* node : nodes_.ExpireLeases()) {
    log_.Warn("node lost: no heartbeat within the lease",
              {F("node", node->record.node), F("lease", absl::FormatDuration(options_.lease))});
    const std::string name = node->record.node;
    ReportNode(*node);
    if (OpenJob* open = node->job_id.empty() ? nullptr : FindOpen(node->job_id)) {
      LoseNode(*open, name,
               absl::StrCat("agent lost: no heartbeat for ", absl::FormatDuration(options_.lease)));
    }
    FreeNode(*node);
  }
  ShareCores();
  const absl::Duration now = clock_.Monotonic();
  const std::int64_t wall = Now();
  std::vector<std::string> ids;
  for (const auto& [id, open] : jobs_) ids.push_back(id);
  for (const std::string& id : ids) {
    OpenJob* open = FindOpen(id);
    if (open == nullptr) continue;
    if (open->finished) {
      if (now >= open->end_retry_at) StoreEnd(*open);
      continue;
    }
    const std::int64_t timeout = open->job.spec.timeout_ns;
    if (timeout > 0 && wall - open->job.timeline.submitted >= timeout && !open->ending &&
        !open->stopping) {
      const std::string reason = absl::StrCat("did not end within --timeout ",
                                              absl::FormatDuration(absl::Nanoseconds(timeout)));
      if (open->job.state == JobState::kQueued) {
        EndQueued(*open, JobState::kTimedOut,
                  absl::StrCat(reason, "; it waited: ", open->job.reason));
      } else {
        StopAttemptOf(*open, JobState::kTimedOut, reason, false);
      }
    } else if (now >= open->abort_at && open->ending && open->state != nullptr) {
      StopAttemptOf(*open, *open->ending, open->ending_reason, false);
      open->abort_at = absl::InfiniteDuration();
    } else if (now >= open->finish_at) {
      MaybeFinishAttempt(*open);
    }
  }
  Schedule();
}

}  // namespace param
