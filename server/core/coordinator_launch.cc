// Launchers with a head node: the plan of an attempt, and what its agents ask of each other.

#include <utility>

#include "proto/base/status.h"
#include "server/core/coordinator.h"
#include "server/core/open_job.h"

namespace param {

absl::Status Coordinator::PlanLaunchOf(OpenJob& open) {
  std::map<std::string, const Registration*> nodes;
  open.launcher = "direct";
  for (const std::string& name : open.job.nodes) {
    const NodeEntry* const node = nodes_.Find(name);
    if (node == nullptr) continue;
    nodes[name] = &node->registration;
    const std::string launcher = LauncherFor(node->registration.inventory, open.comm_backends);
    if (launcher != "direct") open.launcher = launcher;
  }
  if (open.launcher == "direct") {
    open.plan.interface = open.job.spec.interface;
    if (open.plan.interface.empty() || !open.comm_backends.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("--interface ", open.plan.interface,
                                                      ": ranks on backend ", open.device_backend,
                                                      " alone send each other nothing"));
  }
  PARAM_ASSIGN_OR_RETURN(open.plan, PlanLaunch(open.attempt.ranks, nodes, open.job.oversubscribed,
                                               open.job.spec.interface));
  log_.Info("launch planned",
            {F("job", open.job.job_id), F("launcher", open.launcher),
             F("head", open.plan.hosts.front().node), F("interface", open.plan.interface)});
  return absl::OkStatus();
}

void Coordinator::StartDaemon(const AgentSession* session, const AttemptKey& key,
                              const std::string& host, std::vector<std::string> args) {
  NodeEntry* const head = nodes_.OfSession(session);
  if (head == nullptr) return;
  nodes_.Heard(*head);
  OpenJob* const open = FindOpen(key);
  absl::StatusOr<std::string> target = absl::NotFoundError("no such attempt runs");
  if (open != nullptr && !open->finished && !open->stopping && open->relay != nullptr) {
    target = open->relay->Want(head->record.node, host, args);
  }
  NodeEntry* const node = target.ok() ? nodes_.Find(*target) : nullptr;
  if (node != nullptr && node->session != nullptr) {
    node->session->Send(param::StartDaemon{key, host, std::move(args)});
    return;
  }
  const std::string cause = target.ok() ? absl::StrCat("node ", *target, " is not connected")
                                        : std::string(target.status().message());
  log_.Warn("no daemon started", {F("job", key.job_id), F("from", head->record.node),
                                  F("host", host), F("reason", cause)});
  head->session->Send(param::DaemonEnded{key, host, 1, cause});
}

void Coordinator::DaemonEnded(const AgentSession* session, const AttemptKey& key,
                              const std::string& host, int exit_code, const std::string& cause) {
  NodeEntry* const node = nodes_.OfSession(session);
  OpenJob* const open = FindOpen(key);
  if (node == nullptr) return;
  nodes_.Heard(*node);
  if (open == nullptr || open->relay == nullptr) return;  // over: the head is told to stop anyway
  const absl::StatusOr<std::string> target = open->relay->Ended(node->record.node, host);
  if (!target.ok()) {
    log_.Warn("the end of a daemon is not believed",
              {F("job", key.job_id), F("reason", target.status().message())});
    return;
  }
  NodeEntry* const head = nodes_.Find(*target);
  if (head != nullptr && head->session != nullptr) {
    head->session->Send(param::DaemonEnded{key, host, exit_code, cause});
  }
}

// When an agent dies, the launcher takes the ranks of the other nodes away at once, long before the
// lease is over: what they report is not the cause.
void Coordinator::BlameLostNode(OpenJob& open) {
  if (open.relay == nullptr || open.stopping || !open.state->failed()) return;
  const Failure first = open.state->failure();
  if (first.code != "UNAVAILABLE" && first.code != "ABORTED") return;
  for (const RankPlace& place : open.attempt.ranks) {
    const NodeEntry* const node = nodes_.Find(place.node);
    if (node == nullptr || node->session != nullptr || !open.alive_on.contains(place.node))
      continue;
    open.lost = true;
    open.state->AdoptFailure(
        Failure{"UNAVAILABLE", first.phase, place.node, place.rank,
                absl::StrCat("agent lost: it disconnected; then rank ", first.rank, " on ",
                             first.node, ": ", first.cause),
                "", 0});
    return;
  }
}

}  // namespace param
