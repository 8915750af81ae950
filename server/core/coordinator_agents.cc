#include <algorithm>
#include <utility>

#include "proto/base/status.h"
#include "proto/base/version.h"
#include "server/core/coordinator.h"
#include "server/core/open_job.h"

namespace param {

absl::StatusOr<Welcome> Coordinator::Register(std::shared_ptr<AgentSession> session,
                                              Registration registration) {
  if (registration.protocol != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "agent ", registration.node, " (version ", registration.version, ") speaks protocol ",
        registration.protocol, ", this coordinator (version ", Version(), ") speaks ",
        kProtocolVersion, "; install the same version on both"));
  }
  PARAM_ASSIGN_OR_RETURN(NodeEntry* const node,
                         nodes_.Register(std::move(session), std::move(registration)));
  node->record.inventory_json = node->registration.inventory_json;
  Welcome welcome;
  welcome.heartbeat_period_ns = absl::ToInt64Nanoseconds(options_.heartbeat);
  welcome.lease_ns = absl::ToInt64Nanoseconds(options_.lease);
  Reconcile(*node, welcome);
  log_.Info("agent connected",
            {F("node", node->record.node), F("address", node->registration.address),
             F("version", node->registration.version)});
  SaveNode(*node, nullptr);
  for (NodeEntry* changed : nodes_.SplitCores()) {
    if (changed != node && changed->session != nullptr) {
      changed->session->Send(ShareChanged{changed->share});
    }
  }
  welcome.share = node->share;
  ReportNode(*node);
  post_([this] { Schedule(); });
  return welcome;
}

// Compares what the agent still runs with what it should run.
void Coordinator::Reconcile(NodeEntry& node, Welcome& welcome) {
  const std::string& name = node.record.node;
  const auto& running = node.registration.running;
  for (const AttemptKey& key : running) {
    const OpenJob* open = FindOpen(key);
    const bool ours =
        open != nullptr && !open->finished &&
        std::find(open->job.nodes.begin(), open->job.nodes.end(), name) != open->job.nodes.end();
    if (!ours) welcome.unknown.push_back(key);
  }
  if (node.job_id.empty()) return;
  // Processes of it may still run there, ours or not: the agent says when they are gone.
  const bool still_there =
      std::any_of(running.begin(), running.end(),
                  [&node](const AttemptKey& key) { return key.job_id == node.job_id; });
  OpenJob* open = FindOpen(node.job_id);
  if (open != nullptr && open->state != nullptr && open->sent && !open->finished) {
    const bool is_new = !still_there && open->state->NothingFrom(name);
    if (still_there && open->stopping) {
      node.session->Send(StopAttempt{open->state->key(), false, open->job.reason});
    }
    // The word to start never arrived, or was lost with the agent before anything came of it.
    if (is_new && !open->stopping) open->start_due.insert(name);
    if (!open->stopping) {
      post_([this, key = open->state->key(), name, still_there] {
        NodeEntry* back = nodes_.Find(name);
        OpenJob* waiting = FindOpen(key);
        if (back == nullptr || waiting == nullptr || waiting->stopping) return;
        if (still_there) RepeatDaemons(*waiting, *back);
        SendStartsDue(*waiting);  // of other nodes, too, that waited for this one
      });
    }
    if (still_there || (is_new && !open->stopping)) return;
    LoseNode(*open, name, "the agent came back without the attempt: it was restarted");
  }
  if (!still_there) FreeNode(node);
}

// The attempt's processes on that node are gone, or out of reach for good.
void Coordinator::LoseNode(OpenJob& open, const std::string& node, const std::string& cause) {
  if (open.state == nullptr) return;
  if (!open.state->RanksEndedOn(node)) {
    if (!open.state->failed()) open.lost = true;
    int rank = -1;
    for (const RankPlace& place : open.attempt.ranks) {
      if (place.node == node && rank < 0) rank = place.rank;
    }
    open.state->FailUnfinished(
        Failure{"UNAVAILABLE", open.state->current_phase(), node, rank, cause, "", 0});
  }
  open.alive_on.erase(node);
  MaybeFinishAttempt(open);
}

void Coordinator::Disconnected(const AgentSession* session) {
  NodeEntry* node = nodes_.OfSession(session);
  if (node == nullptr) return;
  nodes_.Disconnected(*node);
  log_.Warn("agent disconnected; it has its lease to come back",
            {F("node", node->record.node), F("lease", absl::FormatDuration(options_.lease))});
  ReportNode(*node);
}

bool Coordinator::Heartbeat(const AgentSession* session) {
  NodeEntry* node = nodes_.OfSession(session);
  if (node == nullptr) return false;
  nodes_.Heard(*node);
  observer_.Heartbeat(node->record.node, node->record.last_seen_ns);
  return true;
}

void Coordinator::RankEvents(const AgentSession* session, std::vector<RankEvent> events) {
  NodeEntry* node = nodes_.OfSession(session);
  if (node == nullptr) return;
  nodes_.Heard(*node);
  std::map<AttemptKey, std::vector<RankEvent>> accepted;
  for (RankEvent& event : events) {
    OpenJob* open = FindOpen(event.key);
    const auto rank = static_cast<std::size_t>(event.rank);
    if (open == nullptr || open->finished) {  // over: nobody waits for it any more
      node->session->Send(EventsAck{event.key, event.rank, event.seq});
      continue;
    }
    if (event.rank < 0 || rank >= open->accepted.size() ||
        open->state->nodes()[rank] != node->record.node) {
      log_.Warn("an agent reported for a rank that is not its own",
                {F("node", node->record.node), F("job", event.key.job_id), F("rank", event.rank)});
      node->session->Send(EventsAck{event.key, event.rank, event.seq});
      continue;
    }
    if (event.seq < open->state->NextSeq(event.rank)) {
      node->session->Send(EventsAck{event.key, event.rank, open->state->NextSeq(event.rank) - 1});
      continue;
    }
    if (event.seq != open->accepted[rank] + 1)
      continue;  // on its way, or behind one that is missing
    open->accepted[rank] = event.seq;
    event.received_ns = Now();
    accepted[event.key].push_back(std::move(event));
  }
  for (auto& [key, batch] : accepted) {
    std::vector<Write> writes = {AppendRankEvents{batch}};
    store_.Submit(std::move(writes), [this, key = key, batch = batch](absl::Status status) {
      post_([this, key, batch, status] { EventsStored(key, batch, status); });
    });
  }
}

void Coordinator::EventsStored(const AttemptKey& key, const std::vector<RankEvent>& events,
                               const absl::Status& status) {
  OpenJob* open = FindOpen(key);
  if (open == nullptr || open->finished) return;
  AttemptState& state = *open->state;
  if (!status.ok()) {
    // Not acknowledged: the agents keep them and send them again after they reconnect.
    log_.Error("cannot store results", {F("job", key.job_id), F("error", status.message())});
    for (std::size_t rank = 0; rank < open->accepted.size(); ++rank) {
      open->accepted[rank] = state.NextSeq(static_cast<int>(rank)) - 1;
    }
    for (const std::string& name : open->alive_on) {
      NodeEntry* node = nodes_.Find(name);
      if (node == nullptr || node->session == nullptr) continue;
      node->must_resend = true;
      node->session->Close(status);
    }
    return;
  }
  std::vector<Write> writes;
  std::vector<int> concluded;
  std::set<int> ranks;
  bool job_changed = false, progress = false;
  for (const RankEvent& event : events) {
    ranks.insert(event.rank);
    const auto effects = state.Apply(event);
    if (!effects.ok()) {
      state.FailUnfinished(RefusedEvent(*open, event, effects.status()));
      continue;
    }
    Applied(*open, *effects, writes);
    concluded.insert(concluded.end(), effects->concluded.begin(), effects->concluded.end());
    job_changed |= effects->timeline_changed;
    progress |= effects->progress;
  }
  BlameLostNode(*open);
  AckApplied(*open, ranks);
  if (job_changed) writes.push_back(PutJob{open->job});
  StoreConcluded(*open, concluded, std::move(writes));
  if (job_changed) PublishJob(*open);
  if (progress) {
    Publish(*open,
            Progress{state.current_phase(), state.current_case(), state.samples_of_current_case()},
            CaseSeq(*open, open->published));
  }
  MaybeFinishAttempt(*open);
}

// A rank said what it may not say.
Failure Coordinator::RefusedEvent(const OpenJob& open, const RankEvent& event,
                                  const absl::Status& status) {
  const AttemptState& state = *open.state;
  return Failure{std::string(CodeName(status.code())),
                 state.current_phase(),
                 state.nodes()[static_cast<std::size_t>(event.rank)],
                 event.rank,
                 std::string(status.message()),
                 "",
                 0};
}

// Copies what an event changed into the job and what must be written.
void Coordinator::Applied(OpenJob& open, const AttemptState::Effects& effects,
                          std::vector<Write>& writes) {
  if (effects.duplicate) return;
  const AttemptKey& key = open.state->key();
  if (effects.timeline_changed) {
    const Timeline& reached = open.state->timeline();
    Timeline& timeline = open.job.timeline;
    timeline.spawned = reached.spawned;
    timeline.rendezvous = reached.rendezvous;
    timeline.comm_init = reached.comm_init;
    timeline.warmup = reached.warmup;
    timeline.first_timed = reached.first_timed;
    if (open.job.state == JobState::kStarting && reached.comm_init != 0) {
      open.job.state = JobState::kRunning;
      ReportQueue();
    }
  }
  if (effects.environment) writes.push_back(PutEnvironment{key, *effects.environment});
  if (effects.log) writes.push_back(AppendLogs{key.job_id, {*effects.log}});
}

void Coordinator::AckApplied(OpenJob& open, const std::set<int>& ranks) {
  for (const int rank : ranks) {
    NodeEntry* node = nodes_.Find(open.state->nodes()[static_cast<std::size_t>(rank)]);
    if (node == nullptr || node->session == nullptr) continue;
    node->session->Send(EventsAck{open.state->key(), rank, open.state->NextSeq(rank) - 1});
  }
}

void Coordinator::StoreConcluded(OpenJob& open, const std::vector<int>& concluded,
                                 std::vector<Write> writes) {
  AttemptState& state = *open.state;
  for (const int index : concluded) {
    const CaseRecord& record = state.cases()[static_cast<std::size_t>(index)];
    open.done.push_back(std::make_shared<const CaseRecord>(record));
    writes.push_back(PutCaseResult{state.key(), record, state.TakeSamples(index)});
  }
  if (!concluded.empty()) {
    open.job.cases_done = state.cases_done();
    writes.push_back(PutJob{open.job});
  }
  if (writes.empty()) return;
  const AttemptKey key = state.key();
  const std::size_t upto = open.done.size();
  const auto batch = std::make_shared<const std::vector<Write>>(std::move(writes));
  store_.Submit(*batch, [this, key, upto, batch](absl::Status status) {
    post_([this, key, upto, batch, status] {
      OpenJob* stored = FindOpen(key);
      if (stored == nullptr) return;
      if (!status.ok()) {
        // Their events are acknowledged: they go to disk with the end of the job.
        stored->unstored.insert(stored->unstored.end(), batch->begin(), batch->end());
        stored->state->FailUnfinished(Failure{
            std::string(CodeName(status.code())), stored->state->current_phase(), "", -1,
            absl::StrCat("the coordinator cannot store results: ", status.message()), "", 0});
        MaybeFinishAttempt(*stored);
        return;
      }
      PublishCases(*stored, upto);
    });
  });
}

void Coordinator::ExchangePart(const AgentSession* session, const AttemptKey& key,
                               std::uint64_t round, const std::vector<int>& ranks,
                               std::vector<std::string> data) {
  NodeEntry* node = nodes_.OfSession(session);
  OpenJob* open = FindOpen(key);
  if (node == nullptr || open == nullptr || open->finished || open->exchange == nullptr) return;
  nodes_.Heard(*node);
  const auto answer = open->exchange->Add(round, ranks, std::move(data));
  if (!answer.ok()) {
    open->state->FailUnfinished(Failure{"INVALID_ARGUMENT", "rendezvous", node->record.node,
                                        ranks.empty() ? -1 : ranks.front(),
                                        std::string(answer.status().message()), "", 0});
    MaybeFinishAttempt(*open);
    return;
  }
  switch (*answer) {
    case ExchangeTable::Answer::kWait:
      return;
    case ExchangeTable::Answer::kToAsker:
      node->session->Send(ExchangeAll{key, round, open->exchange->Round(round)});
      return;
    case ExchangeTable::Answer::kToAll:
      for (const std::string& name : open->job.nodes) {
        NodeEntry* each = nodes_.Find(name);
        if (each != nullptr && each->session != nullptr) {
          each->session->Send(ExchangeAll{key, round, open->exchange->Round(round)});
        }
      }
      return;
  }
}

void Coordinator::AttemptEnded(const AgentSession* session, const AttemptKey& key) {
  NodeEntry* node = nodes_.OfSession(session);
  if (node == nullptr) return;
  nodes_.Heard(*node);
  if (OpenJob* open = FindOpen(key);
      open != nullptr && open->alive_on.contains(node->record.node)) {
    // Events before it are stored in order; this waits behind them.
    const std::string name = node->record.node;
    store_.Submit({}, [this, key, name](absl::Status) {
      post_([this, key, name] {
        NodeEntry* gone = nodes_.Find(name);
        // Its results could not be stored: it comes back with them, and then says this again.
        if (gone != nullptr && gone->must_resend) return;
        OpenJob* ended = FindOpen(key);
        if (gone != nullptr && gone->job_id == key.job_id) FreeNode(*gone);
        if (ended != nullptr)
          LoseNode(*ended, name, "the agent ended the attempt without its results");
        Schedule();
      });
    });
    return;
  }
  if (node->job_id == key.job_id) {
    FreeNode(*node);
    Schedule();
  }
}

void Coordinator::InventoryChanged(const AgentSession* session, Inventory inventory,
                                   std::string json) {
  NodeEntry* node = nodes_.OfSession(session);
  if (node == nullptr) return;
  nodes_.Heard(*node);
  node->registration.inventory = std::move(inventory);
  node->record.inventory_json = std::move(json);
  SaveNode(*node, nullptr);
  ShareCores();
  Schedule();
}

}  // namespace param
