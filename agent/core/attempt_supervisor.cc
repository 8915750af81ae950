#include "agent/core/attempt_supervisor.h"

#include <csignal>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/core/cpu_split.h"
#include "agent/core/worker_exit.h"
#include "proto/base/status.h"
#include "proto/base/version.h"

namespace param::agent {
namespace {

std::vector<int> RanksOf(const StartAttempt& start) {
  std::vector<int> ranks;
  for (const RankPlace& place : start.places) ranks.push_back(place.rank);
  return ranks;
}

}  // namespace

AttemptSupervisor::AttemptSupervisor(StartAttempt start, const BenchmarkSpec& bench,
                                     Resources resources, SupervisionLimits limits, Parts parts)
    : start_(std::move(start)),
      bench_(&bench),
      resources_(std::move(resources)),
      limits_(limits),
      parts_(std::move(parts)),
      deadlines_(start_.phase_deadlines_ns),
      cpus_(SplitCpus(resources_.cpus, static_cast<int>(start_.places.size()))),
      exchange_(start_.key, RanksOf(start_), start_.ranks) {
  const std::int64_t cases = static_cast<std::int64_t>(start_.cases.size());
  ranks_.reserve(start_.places.size());
  for (const RankPlace& place : start_.places) {
    ranks_.emplace_back(place, MakeToken(*parts_.random), bench, cases, limits_.log);
  }
}

void AttemptSupervisor::Launch() {
  LaunchRequest request{
      .key = start_.key, .ranks = {}, .fake_script = start_.fake_script, .plan = start_.plan};
  for (const Rank& rank : ranks_) request.ranks.push_back({rank.place.rank, rank.token});
  const absl::StatusOr<Launched> launched = parts_.launcher->Start(request);
  if (!launched.ok()) {
    for (Rank& rank : ranks_) EndRank(rank, launched.status());
    return;
  }
  script_path_ = launched->fake_script_path;
  for (Rank& rank : ranks_) {
    const auto pid = launched->pids.find(rank.place.rank);
    if (pid == launched->pids.end()) continue;
    rank.running = true;
    rank.pid = pid->second;
    rank.heard = parts_.clock->Monotonic();
  }
  for (const auto& [number, why] : launched->failed) {
    if (Rank* const rank = Find(number)) EndRank(*rank, why);
  }
}

void AttemptSupervisor::Stop(const StopAttempt& stop) {
  // A rank without a process holds all of them before their first case: nothing to finish.
  const bool is_starting = std::any_of(
      ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running && rank.pid == 0; });
  if (!stop.graceful || is_starting) {
    Fail(absl::StatusCode::kCancelled, stop.reason);
    return;
  }
  if (cancel_until_ != absl::InfiniteDuration() || abort_reason_.has_value()) return;
  cancel_until_ = parts_.clock->Monotonic() + limits_.cancel_grace;
  cancel_reason_ = stop.reason;
  for (Rank& rank : ranks_) {
    rank.protocol.Cancelled();
    parts_.launcher->Send(KeyOf(rank), line::Encode(line::FromAgent(line::Cancel{stop.reason})));
  }
}

void AttemptSupervisor::Fail(absl::StatusCode code, absl::string_view cause) {
  parts_.launcher->Abort(start_.key);
  if (!abort_reason_.has_value()) abort_reason_ = std::string(cause);
  const std::string abort = line::Encode(line::FromAgent(line::Abort{std::string(cause)}));
  for (Rank& rank : ranks_) {
    if (!rank.ended && !rank.protocol.is_done()) EndRank(rank, absl::Status(code, cause));
    if (!rank.running) continue;
    parts_.launcher->Send(KeyOf(rank), abort);
    BeginKill(rank, limits_.abort_grace);
  }
}

absl::StatusOr<int> AttemptSupervisor::OnGreeting(pid_t peer, absl::string_view line) {
  const absl::StatusOr<line::FromWorker> message = line::DecodeFromWorker(line);
  const auto* const hello = message.ok() ? std::get_if<line::Hello>(&*message) : nullptr;
  std::string wrong;
  for (Rank& rank : ranks_) {
    if (hello == nullptr || rank.token != hello->token) continue;
    if (rank.greeted || rank.ended || !rank.running) {
      return absl::FailedPreconditionError(
          absl::StrCat("a second hello for rank ", rank.place.rank));
    }
    if (hello->protocol != kProtocolVersion) {
      Blame(rank, absl::StrCat("hello with protocol ", hello->protocol, "; the agent speaks ",
                               kProtocolVersion));
      return absl::FailedPreconditionError("another protocol");
    }
    rank.greeted = true;
    rank.lines = 1;
    rank.heard = parts_.clock->Monotonic();
    line::Hello kept = *hello;
    kept.token.clear();  // not needed any more, and not for the store
    Append(rank, kept, Spool::Importance::kEvent);
    return rank.place.rank;
  }
  const std::string what =
      !message.ok()      ? absl::StrCat("garbage: line 1: ", message.status().message())
      : hello == nullptr ? absl::StrCat(MessageName(*message), " before hello: line 1")
                         : "hello with a wrong token: line 1";
  for (Rank& rank : ranks_) {
    if (rank.running && rank.pid == peer) Blame(rank, what);
  }
  return absl::PermissionDeniedError(absl::StrCat("process ", peer, " sent ", what));
}

void AttemptSupervisor::OnConnected(int number) {
  Rank* const rank = Find(number);
  if (rank == nullptr || rank->ended) return;
  SendAssignment(*rank);
  if (cancel_until_ != absl::InfiniteDuration()) {  // cancelled before it could hear of it
    const line::FromAgent cancel = line::Cancel{cancel_reason_};
    parts_.launcher->Send(KeyOf(*rank), line::Encode(cancel));
  }
}

void AttemptSupervisor::OnLines(int number, const std::vector<std::string>& lines) {
  Rank* const rank = Find(number);
  if (rank == nullptr) return;
  for (const std::string& line : lines) {
    ++rank->lines;
    if (!OnLine(*rank, line)) return;
  }
  parts_.launcher->Send(KeyOf(*rank), line::Encode(line::FromAgent(line::Ack{rank->lines})));
}

bool AttemptSupervisor::OnLine(Rank& rank, const std::string& line) {
  absl::StatusOr<line::FromWorker> message = line::DecodeFromWorker(line);
  if (!message.ok()) {
    Blame(rank, absl::StrCat("garbage: line ", rank.lines, ": ", message.status().message()));
    return false;
  }
  if (const auto* const log = std::get_if<line::LogLine>(&*message)) {
    AppendLog(rank, log->level, log->text);
    return true;
  }
  if (rank.ended || rank.protocol.has_ended()) return true;  // nothing counts any more
  rank.heard = parts_.clock->Monotonic();
  if (const absl::Status possible = rank.protocol.Check(*message); !possible.ok()) {
    Blame(rank, absl::StrCat(possible.message(), ": line ", rank.lines));
    return false;
  }
  if (auto* const exchange = std::get_if<line::Exchange>(&*message)) {
    return OnExchange(rank, std::move(*exchange));
  }
  if (const auto* const failure = std::get_if<line::Failure>(&*message)) {
    EndRank(rank, *failure);
    return true;
  }
  if (std::holds_alternative<line::Done>(*message)) return true;  // passed on when it has exited
  AppendLine(rank, line, Spool::Importance::kEvent);
  return !rank.ended;
}

bool AttemptSupervisor::OnExchange(Rank& rank, line::Exchange exchange) {
  const absl::StatusOr<std::optional<ExchangePart>> part =
      exchange_.Add(rank.place.rank, exchange.round, std::move(exchange.data));
  if (!part.ok()) {
    Blame(rank, absl::StrCat(part.status().message(), ": line ", rank.lines));
    return false;
  }
  if (part->has_value()) parts_.send_exchange(**part);
  return true;
}

void AttemptSupervisor::OnBadStream(int number, const absl::Status& why) {
  if (Rank* const rank = Find(number)) {
    Blame(*rank, absl::StrCat("too much: line ", rank->lines + 1, ": ", why.message()));
  }
}

void AttemptSupervisor::OnOutput(int number, absl::string_view line) {
  if (Rank* const rank = Find(number)) AppendLog(*rank, "info", line);
}

void AttemptSupervisor::OnExit(int number, int wait_status) {
  if (Rank* const rank = Find(number)) {
    ProcessGone(*rank, WorkerExit(wait_status, rank->protocol.is_done()));
  }
}

void AttemptSupervisor::OnLost(int number, const absl::Status& why) {
  if (Rank* const rank = Find(number)) ProcessGone(*rank, why);
}

void AttemptSupervisor::ProcessGone(Rank& rank, const absl::Status& exit) {
  if (!rank.running) return;
  rank.running = false;
  rank.term_at = rank.kill_at = absl::InfiniteDuration();
  if (rank.ended) {
    FlushDropped(rank);
    return;
  }
  if (!exit.ok()) SpillOutput(rank);
  FlushDropped(rank);
  if (exit.ok()) {
    Append(rank, line::Done{}, Spool::Importance::kEnd);
    rank.ended = true;
  } else if (abort_reason_.has_value()) {
    EndRank(rank, absl::CancelledError(absl::StrCat("aborted: ", *abort_reason_)));
  } else {
    EndRank(rank, exit);
  }
}

void AttemptSupervisor::OnSpawned(int number, pid_t pid) {
  Rank* const rank = Find(number);
  if (rank == nullptr || !rank->running) return;
  rank->pid = pid;
  rank->heard = parts_.clock->Monotonic();
}

void AttemptSupervisor::OnLauncherFailed(const absl::Status& why) {
  if (abort_reason_.has_value()) return;  // it ends since the attempt does
  for (Rank& rank : ranks_) {
    if (rank.ended || rank.protocol.is_done()) continue;
    EndRank(rank, why);  // the others are aborted with it
    return;
  }
}

void AttemptSupervisor::OnExchangeAll(const ExchangeAll& all) {
  const absl::StatusOr<bool> fresh = exchange_.Answer(all);
  if (!fresh.ok()) {
    Fail(absl::StatusCode::kInternal, absl::StrCat("coordinator: ", fresh.status().message()));
    return;
  }
  if (!*fresh) return;
  const std::string reply = line::Encode(line::FromAgent(line::ExchangeReply{all.round, all.data}));
  if (reply.size() > line::kMaxAgentLineBytes) {
    Fail(absl::StatusCode::kResourceExhausted,
         absl::StrCat("the answer of exchange round ", all.round, " is a line of ", reply.size(),
                      " B, over ", line::kMaxAgentLineBytes));
    return;
  }
  for (Rank& rank : ranks_) {
    rank.heard = parts_.clock->Monotonic();
    parts_.launcher->Send(KeyOf(rank), reply);
  }
}

void AttemptSupervisor::EndRank(Rank& rank, const absl::Status& why) {
  EndRank(rank, line::Failure{.code = std::string(CodeName(why.code())),
                              .phase = rank.protocol.phase(),
                              .cause = std::string(why.message()),
                              .address = "",
                              .error_number = 0,
                              .case_index = rank.protocol.case_index()});
}

void AttemptSupervisor::EndRank(Rank& rank, line::Failure failure) {
  if (rank.ended) return;
  rank.ended = true;  // first: what follows may come back here
  const bool secondary = abort_reason_.has_value();
  if (first_failure_.empty()) {
    first_failure_ = absl::StrCat("rank ", rank.place.rank, ": ", failure.cause);
    first_code_ = failure.code;
  }
  parts_.log->Write(
      secondary ? Level::kInfo : Level::kWarn, "rank failed",
      {F("attempt", ToString(start_.key)), F("rank", rank.place.rank), F("code", failure.code),
       F("phase", line::PhaseName(failure.phase)), F("cause", failure.cause)});
  Append(rank, failure, Spool::Importance::kEnd);
  BeginKill(rank, limits_.term_grace);
  if (secondary) return;
  parts_.launcher->Abort(start_.key);
  AbortOthers(rank, failure.cause);
  if (failure.phase == line::Phase::kCommInit || failure.code == "INTERNAL" ||
      failure.code == "ABORTED") {
    parts_.suspect_device(failure);
  }
}

void AttemptSupervisor::Blame(Rank& rank, absl::string_view what) {
  EndRank(rank, absl::InvalidArgumentError(absl::StrCat("worker sent ", what)));
  BeginKill(rank, absl::ZeroDuration());
}

void AttemptSupervisor::AbortOthers(const Rank& failed, absl::string_view cause) {
  abort_reason_ = absl::StrCat("rank ", failed.place.rank, " failed: ", cause);
  const std::string abort = line::Encode(line::FromAgent(line::Abort{*abort_reason_}));
  for (Rank& rank : ranks_) {
    if (&rank == &failed || !rank.running) continue;
    parts_.launcher->Send(KeyOf(rank), abort);
    BeginKill(rank, limits_.abort_grace);
  }
}

bool AttemptSupervisor::has_ended() const {
  return std::none_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; });
}

absl::string_view AttemptSupervisor::outcome() const {
  if (first_code_.empty()) return "succeeded";
  return first_code_ == "CANCELLED" ? "cancelled" : "failed";
}

int AttemptSupervisor::running_ranks() const {
  return static_cast<int>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; }));
}

AttemptSupervisor::Rank* AttemptSupervisor::Find(int number) {
  for (Rank& rank : ranks_) {
    if (rank.place.rank == number) return &rank;
  }
  return nullptr;
}

}  // namespace param::agent
