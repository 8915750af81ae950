#include "agent/core/agent.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/base/version.h"
#include "proto/catalog/spec.h"

namespace param::agent {
namespace {

constexpr std::size_t kPastAttempts = 1024;
constexpr absl::Duration kStopPatience = absl::Seconds(3);  // for handing over what is left

}  // namespace

Agent::Agent(AgentOptions options, Inventory inventory, Parts parts)
    : options_(std::move(options)),
      inventory_(std::move(inventory)),
      parts_(std::move(parts)),
      session_(options_.session, MakeSessionParts()),
      pump_(*parts_.spool, *parts_.uplink, *parts_.log) {
  // What an earlier process of this agent left: its ranks are gone, but their results may be ones
  // that the coordinator still waits for. They end as every attempt does, behind their events.
  for (const AttemptKey& key : parts_.spool->Attempts()) {
    Attempt& left = attempts_[key];
    left.gone = true;
    left.last = parts_.spool->end();
  }
}

Session::Parts Agent::MakeSessionParts() {
  return {.clock = parts_.clock,
          .log = parts_.log,
          .random = parts_.random,
          .uplink = parts_.uplink,
          .hello = [this] { return Hello(); },
          .heartbeat =
              [this] {
                return Heartbeat{absl::ToUnixNanos(parts_.clock->Wall()), parts_.spool->bytes()};
              },
          .connected = [this](const Registered& registered) { Connected(registered); },
          .disconnected = [this] { Disconnected(); },
          .connecting = [this](absl::string_view reason) { parts_.observer->Connecting(reason); },
          .fence = [this](const std::string& why) { Fence(why); }};
}

Register Agent::Hello() const {
  Register hello{.node = options_.node,
                 .protocol = kProtocolVersion,
                 .version = options_.version,
                 .instance = options_.instance,
                 .inventory = inventory_,
                 .labels = options_.labels,
                 .running = {}};
  for (const auto& [key, attempt] : attempts_) {
    if (!attempt.forgotten) hello.running.push_back(key);
  }
  return hello;
}

void Agent::Connected(const Registered& registered) {
  share_ = registered.share;
  for (const AttemptKey& key : registered.unknown) {
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) continue;
    found->second.forgotten = true;
    if (!found->second.gone) {  // what was refused here never had a supervisor
      found->second.supervisor->Fail(absl::StatusCode::kCancelled,
                                     "the coordinator does not know this attempt any more");
    }
    parts_.spool->Drop(key);
  }
  for (auto& [key, attempt] : attempts_) {
    attempt.announced = false;
    if (!attempt.forgotten) RepeatDaemons(attempt);
    if (attempt.gone || attempt.forgotten) continue;
    for (const ExchangePart& part : attempt.supervisor->exchange().Resend()) {
      parts_.uplink->Send(part);
    }
  }
  pump_.Restart();
}

// A coordinator that was restarted knows of none, and what was under way when the connection broke
// may be lost. Saying it twice changes nothing.
void Agent::RepeatDaemons(const Attempt& attempt) {
  if (!attempt.gone) {
    for (const auto& [host, wanted] : attempt.wanted) parts_.uplink->Send(wanted);
  }
  for (const auto& [host, ended] : attempt.ended) parts_.uplink->Send(ended);
}

void Agent::Disconnected() { pump_.Stop(); }

void Agent::Fence(const std::string& why) {
  for (auto& [key, attempt] : attempts_) {
    if (attempt.gone) continue;
    parts_.log->Error("attempt given up", {F("attempt", ToString(key)), F("reason", why)});
    attempt.supervisor->Fail(absl::StatusCode::kUnavailable, why);
  }
}

void Agent::OnMessage(DownMessage message) {
  session_.OnHeard();
  std::visit([this](auto& each) { Handle(std::move(each)); }, message);
}

void Agent::Handle(const StartAttempt& start) {
  if (attempts_.contains(start.key)) return;  // said again after a reconnect
  if (std::find(past_.begin(), past_.end(), start.key) != past_.end()) {
    parts_.uplink->Send(AttemptEnded{start.key});
    return;
  }
  const absl::Status launched = Launch(start);
  if (!launched.ok()) Refuse(start, launched);
}

absl::Status Agent::Launch(const StartAttempt& start) {
  if (stopping_) return absl::UnavailableError("agent stopping");
  if (start.places.empty()) return absl::InvalidArgumentError("no rank of it is on this node");
  const auto launcher = parts_.launchers.find(start.launcher);
  if (launcher == parts_.launchers.end()) {
    return absl::UnimplementedError(
        absl::StrCat("this agent has no launcher \"", start.launcher, "\""));
  }
  PARAM_ASSIGN_OR_RETURN(const BenchmarkSpec* const bench, FindBenchmark(start.benchmark));
  if (bench->version != start.benchmark_version) {
    return absl::FailedPreconditionError(absl::StrCat("this agent has version ", bench->version,
                                                      " of ", start.benchmark, ", the coordinator ",
                                                      start.benchmark_version));
  }
  Resources resources;
  PARAM_ASSIGN_OR_RETURN(resources.device_path, parts_.backends->Path(start.device_backend));
  for (const std::string& name : start.comm_backends) {
    PARAM_ASSIGN_OR_RETURN(resources.comm_paths.emplace_back(), parts_.backends->Path(name));
  }
  resources.devices = parts_.backends->Devices(start.device_backend);
  resources.cpus = !start.cpus.empty()    ? start.cpus
                   : !share_.cpus.empty() ? share_.cpus
                                          : inventory_.cpus;
  const std::string device = start.device_backend;
  Attempt attempt;
  attempt.benchmark = start.benchmark;
  attempt.launcher = launcher->second;
  attempt.started = parts_.clock->Monotonic();
  attempt.supervisor = std::make_unique<AttemptSupervisor>(
      start, *bench, std::move(resources), options_.limits,
      AttemptSupervisor::Parts{
          .clock = parts_.clock,
          .log = parts_.log,
          .random = parts_.random,
          .launcher = launcher->second,
          .spool = parts_.spool,
          .send_exchange =
              [this](const ExchangePart& part) {
                if (session_.is_connected()) parts_.uplink->Send(part);
              },
          .suspect_device = [this,
                             device](const line::Failure&) { parts_.backends->Suspect(device); }});
  AttemptSupervisor& supervisor = *attempt.supervisor;
  attempts_.emplace(start.key, std::move(attempt));
  parts_.log->Info("attempt starts",
                   {F("attempt", ToString(start.key)), F("benchmark", start.benchmark),
                    F("ranks", start.places.size())});
  supervisor.Launch();
  return absl::OkStatus();
}

void Agent::Refuse(const StartAttempt& start, const absl::Status& why) {
  parts_.log->Warn("attempt refused",
                   {F("attempt", ToString(start.key)), F("reason", why.message())});
  for (const RankPlace& place : start.places) {
    const line::FromWorker failure = line::Failure{.code = std::string(CodeName(why.code())),
                                                   .phase = line::Phase::kSpawn,
                                                   .cause = std::string(why.message()),
                                                   .address = "",
                                                   .error_number = 0,
                                                   .case_index = -1};
    std::string line = line::Encode(failure);
    line.pop_back();
    const absl::Status kept =
        parts_.spool->Append({.key = start.key,
                              .rank = place.rank,
                              .seq = 1,
                              .time_ns = absl::ToUnixNanos(parts_.clock->Wall()),
                              .line = std::move(line)},
                             Spool::Importance::kEnd);
    if (!kept.ok()) parts_.log->Error("event lost", {F("reason", kept.message())});
  }
  Attempt attempt;
  attempt.benchmark = start.benchmark;
  attempt.gone = true;
  attempt.last = parts_.spool->end();
  attempts_.emplace(start.key, std::move(attempt));
  pump_.Pump();
}

void Agent::Handle(const StopAttempt& stop) {
  if (AttemptSupervisor* const supervisor = Find(stop.key)) {
    supervisor->Stop(stop);
  } else if (!attempts_.contains(stop.key)) {
    parts_.uplink->Send(AttemptEnded{stop.key});  // nothing of it is here
  }
}

void Agent::Handle(const ExchangeAll& all) {
  if (AttemptSupervisor* const supervisor = Find(all.key)) supervisor->OnExchangeAll(all);
}

void Agent::Handle(const EventsAck& ack) {
  for (const AckEntry& entry : ack.entries) parts_.spool->Ack(entry);
}

void Agent::Handle(const StartDaemon& wanted) {
  const auto found = attempts_.find(wanted.key);
  if (found != attempts_.end() && !found->second.gone) {
    found->second.launcher->Start(wanted);
  } else {
    parts_.uplink->Send(DaemonEnded{wanted.key, wanted.host, 1, "the attempt does not run here"});
  }
}

void Agent::Handle(const DaemonEnded& ended) {
  const auto found = attempts_.find(ended.key);
  if (found == attempts_.end() || found->second.gone) return;
  found->second.wanted.erase(ended.host);
  found->second.launcher->Ended(ended);
}

AttemptSupervisor* Agent::Find(const AttemptKey& key) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end() || found->second.gone) return nullptr;
  return found->second.supervisor.get();
}

absl::StatusOr<int> Agent::OnGreeting(const AttemptKey& key, pid_t peer, absl::string_view line) {
  AttemptSupervisor* const supervisor = Find(key);
  if (supervisor == nullptr) return absl::NotFoundError("no such attempt");
  return supervisor->OnGreeting(peer, line);
}

void Agent::OnConnected(const RankKey& rank) {
  if (AttemptSupervisor* const supervisor = Find(rank.key)) supervisor->OnConnected(rank.rank);
}

void Agent::OnLines(const RankKey& rank, const std::vector<std::string>& lines) {
  if (AttemptSupervisor* const supervisor = Find(rank.key)) supervisor->OnLines(rank.rank, lines);
}

void Agent::OnBadStream(const RankKey& rank, const absl::Status& why) {
  if (AttemptSupervisor* const supervisor = Find(rank.key)) supervisor->OnBadStream(rank.rank, why);
}

void Agent::OnOutput(const RankKey& rank, absl::string_view line) {
  if (AttemptSupervisor* const supervisor = Find(rank.key)) supervisor->OnOutput(rank.rank, line);
}

void Agent::OnExit(const RankKey& rank, int wait_status) {
  if (AttemptSupervisor* const supervisor = Find(rank.key)) {
    supervisor->OnExit(rank.rank, wait_status);
  }
}

void Agent::OnSpawned(const RankKey& rank, pid_t pid) {
  if (AttemptSupervisor* const supervisor = Find(rank.key)) supervisor->OnSpawned(rank.rank, pid);
}

void Agent::OnLost(const RankKey& rank, const absl::Status& why) {
  if (AttemptSupervisor* const supervisor = Find(rank.key)) supervisor->OnLost(rank.rank, why);
}

void Agent::OnLauncherFailed(const AttemptKey& key, const absl::Status& why) {
  if (AttemptSupervisor* const supervisor = Find(key)) supervisor->OnLauncherFailed(why);
}

void Agent::OnDaemonWanted(const StartDaemon& wanted) {
  const auto found = attempts_.find(wanted.key);
  if (found == attempts_.end()) return;
  found->second.wanted.insert_or_assign(wanted.host, wanted);
  if (session_.is_connected()) parts_.uplink->Send(wanted);
}

void Agent::OnDaemonEnded(const DaemonEnded& ended) {
  const auto found = attempts_.find(ended.key);
  if (found != attempts_.end()) found->second.ended.insert_or_assign(ended.host, ended);
  if (session_.is_connected()) parts_.uplink->Send(ended);
}

void Agent::Tick() {
  session_.Tick();
  for (auto& [key, attempt] : attempts_) {
    if (!attempt.gone) attempt.supervisor->Tick();
  }
  Settle();
}

absl::Duration Agent::due() const {
  absl::Duration due = session_.due();
  if (parts_.clock->Monotonic() < stop_until_) due = std::min(due, stop_until_);
  for (const auto& [key, attempt] : attempts_) {
    if (!attempt.gone) due = std::min(due, attempt.supervisor->due());
  }
  return due;
}

void Agent::SettleAttempt(const AttemptKey& key, Attempt& attempt) {
  if (!attempt.gone && attempt.supervisor->has_ended() && attempt.launcher->IsGone(key)) {
    attempt.gone = true;
    attempt.last = parts_.spool->end();
    attempt.launcher->Release(key);
    const AttemptSupervisor& supervisor = *attempt.supervisor;
    parts_.log->Info("attempt ended",
                     {F("attempt", ToString(key)), F("outcome", supervisor.outcome()),
                      F("failure", supervisor.first_failure())});
    parts_.observer->AttemptEnded(attempt.benchmark, supervisor.outcome(),
                                  parts_.clock->Monotonic() - attempt.started);
    if (attempt.forgotten) parts_.spool->Drop(key);
  }
  if (attempt.gone && !attempt.announced && session_.is_connected() &&
      pump_.HasSent(attempt.last)) {
    attempt.announced = true;
    parts_.uplink->Send(AttemptEnded{key});
  }
}

void Agent::Settle() {
  pump_.Pump();
  for (auto it = attempts_.begin(); it != attempts_.end();) {
    SettleAttempt(it->first, it->second);
    if (it->second.announced && !parts_.spool->HasUnacked(it->first)) {
      past_.push_back(it->first);
      if (past_.size() > kPastAttempts) past_.pop_front();
      it = attempts_.erase(it);
    } else {
      ++it;
    }
  }
}

void Agent::Stop(absl::string_view reason) {
  if (stopping_) return;
  stopping_ = true;
  stop_until_ = parts_.clock->Monotonic() + kStopPatience;
  for (auto& [key, attempt] : attempts_) {
    if (!attempt.gone) attempt.supervisor->Fail(absl::StatusCode::kUnavailable, reason);
  }
}

bool Agent::is_stopped() const {
  if (!stopping_ || running_ranks() > 0) return false;
  const bool handed_over = attempts_.empty() || !session_.is_connected();
  return handed_over || parts_.clock->Monotonic() >= stop_until_;
}

void Agent::SetInventory(Inventory inventory) {
  if (inventory == inventory_) return;
  inventory_ = std::move(inventory);
  if (session_.is_connected()) parts_.uplink->Send(inventory_);
}

int Agent::running_ranks() const {
  int ranks = 0;
  for (const auto& [key, attempt] : attempts_) {
    if (!attempt.gone) ranks += attempt.supervisor->running_ranks();
  }
  return ranks;
}

int Agent::running_attempts() const {
  int running = 0;
  for (const auto& [key, attempt] : attempts_) running += attempt.gone ? 0 : 1;
  return running;
}

}  // namespace param::agent
