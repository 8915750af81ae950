// Launchers with a head node: the plan of an attempt, and what its agents ask of each other.

#include <utility>

#include "proto/base/status.h"
#include "server/core/coordinator.h"
#include "server/core/open_job.h"

namespace param {

std::string Coordinator::LauncherOf(const OpenJob& open) const {
  if (!open.launcher.empty()) return open.launcher;
  for (const std::string& name : open.job.nodes) {
    const auto node = nodes_.nodes().find(name);
    if (node == nodes_.nodes().end() || !node->second.registered) continue;
    std::string launcher = LauncherFor(node->second.registration.inventory, open.comm_backends);
    if (launcher != "direct") return launcher;
  }
  return "direct";
}

absl::Status Coordinator::PlanLaunchOf(OpenJob& open) {
  std::map<std::string, const Registration*> nodes;
  for (const std::string& name : open.job.nodes) {
    const NodeEntry* const node = nodes_.Find(name);
    // What a coordinator before this one knew of a node is not known here.
    if (node != nullptr && node->registered) nodes[name] = &node->registration;
  }
  open.launcher = LauncherOf(open);
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
  LaunchRelay* const relay =
      open != nullptr && !open->finished && !open->stopping ? RelayOf(*open) : nullptr;
  if (relay != nullptr) target = relay->Want(head->record.node, host, args);
  std::string cause;
  if (!target.ok()) {
    cause = std::string(target.status().message());
  } else if (const DaemonEnd* const end = relay->EndOf(host)) {  // asked again
    head->session->Send(param::DaemonEnded{key, host, end->exit_code, end->cause});
    return;
  } else if (!open->alive_on.contains(*target)) {
    cause = absl::StrCat("node ", *target, " has left the attempt");
  } else {
    const NodeEntry* const node = nodes_.Find(*target);
    const bool is_told = !open->start_due.contains(*target);
    // A node that is away, or that has yet to be told of the attempt, hears of it then.
    if (node != nullptr && node->session != nullptr && is_told) {
      node->session->Send(param::StartDaemon{key, host, std::move(args)});
    }
    return;
  }
  log_.Warn("no daemon started",
            {F("job", key.job_id), F("from", head->record.node), F("reason", cause)});
  head->session->Send(param::DaemonEnded{key, host, 1, cause});
}

void Coordinator::DaemonEnded(const AgentSession* session, const AttemptKey& key,
                              const std::string& host, int exit_code, const std::string& cause) {
  NodeEntry* const node = nodes_.OfSession(session);
  OpenJob* const open = FindOpen(key);
  if (node == nullptr) return;
  nodes_.Heard(*node);
  LaunchRelay* const relay = open == nullptr ? nullptr : RelayOf(*open);
  if (relay == nullptr) return;  // over: the head is told to stop anyway
  const absl::StatusOr<std::string> target =
      relay->Ended(node->record.node, host, DaemonEnd{exit_code, cause});
  if (!target.ok()) {
    log_.Warn("the end of a daemon is not believed",
              {F("job", key.job_id), F("reason", target.status().message())});
    return;
  }
  const NodeEntry* const head = nodes_.Find(*target);
  if (head == nullptr || head->session == nullptr) return;  // it hears of it when it is back
  const DaemonEnd& end = *relay->EndOf(host);
  head->session->Send(param::DaemonEnded{key, host, end.exit_code, end.cause});
}

LaunchRelay* Coordinator::RelayOf(OpenJob& open) {
  if (open.relay == nullptr && open.state != nullptr && LauncherOf(open) != "direct") {
    open.relay = std::make_unique<LaunchRelay>(HostsOf(open.attempt.ranks));
  }
  return open.relay.get();
}

void Coordinator::RepeatDaemons(OpenJob& open, const NodeEntry& node) {
  LaunchRelay* const relay = RelayOf(open);
  if (relay == nullptr || node.session == nullptr) return;
  const AttemptKey key = open.state->key();
  for (const auto& [host, args] : relay->WantedOn(node.record.node)) {
    node.session->Send(param::StartDaemon{key, host, args});
  }
  for (const auto& [host, end] : relay->EndsFor(node.record.node)) {
    node.session->Send(param::DaemonEnded{key, host, end.exit_code, end.cause});
  }
}

// When an agent dies, the launcher takes the ranks of the other nodes away at once, long before the
// lease is over: what they report is not the cause.
void Coordinator::BlameLostNode(OpenJob& open) {
  if (open.stopping || !open.state->failed() || RelayOf(open) == nullptr) return;
  const Failure first = open.state->failure();
  if (first.code != "UNAVAILABLE" && first.code != "ABORTED") return;
  for (const RankPlace& place : open.attempt.ranks) {
    const NodeEntry* const node = nodes_.Find(place.node);
    if (node == nullptr || node->session != nullptr || !open.alive_on.contains(place.node)) {
      continue;
    }
    // One that has not come back since this coordinator started may well run.
    if (!node->registered && !node->lost) continue;
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
