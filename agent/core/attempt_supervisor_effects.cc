// What a supervisor sends: assignments, events, logs, signals; and its deadlines.

#include <csignal>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/core/attempt_supervisor.h"
#include "proto/base/status.h"

namespace param::agent {

line::Assignment AttemptSupervisor::MakeAssignment(const Rank& rank) const {
  const std::vector<int>& cpus = cpus_[static_cast<std::size_t>(&rank - ranks_.data())];
  line::Assignment assignment;
  assignment.job_id = start_.key.job_id;
  assignment.attempt = start_.key.attempt;
  assignment.benchmark = start_.benchmark;
  assignment.benchmark_version = start_.benchmark_version;
  assignment.rank = rank.place.rank;
  assignment.ranks = start_.ranks;
  assignment.local_rank = rank.place.local_rank;
  assignment.local_ranks = static_cast<int>(ranks_.size());
  assignment.rank_nodes = start_.rank_nodes;
  assignment.device_backend = start_.device_backend;
  assignment.device_backend_path = resources_.device_path;
  assignment.comm_backend_paths = resources_.comm_paths;
  assignment.device_index = rank.place.local_rank % std::max(resources_.devices, 1);
  assignment.cpus = cpus;
  assignment.threads = std::max(static_cast<int>(cpus.size()), 1);
  assignment.fake_script = script_path_;
  assignment.cases = start_.cases;
  return assignment;
}

void AttemptSupervisor::SendAssignment(Rank& rank) {
  std::string line = line::Encode(line::FromAgent(MakeAssignment(rank)));
  if (line.size() > line::kMaxAgentLineBytes) {
    EndRank(rank,
            absl::ResourceExhaustedError(absl::StrCat(
                start_.cases.size(), " cases make an assignment of ", line.size(),
                " B, over the limit of ", line::kMaxAgentLineBytes, "; submit fewer at once")));
    return;
  }
  parts_.launcher->Send(KeyOf(rank), std::move(line));
}

void AttemptSupervisor::Append(Rank& rank, const line::FromWorker& message,
                               Spool::Importance importance) {
  AppendLine(rank, line::Encode(message), importance);
}

void AttemptSupervisor::AppendLine(Rank& rank, std::string line, Spool::Importance importance) {
  while (!line.empty() && line.back() == '\n') line.pop_back();
  const absl::Status kept =
      parts_.spool->Append({.key = start_.key,
                            .rank = rank.place.rank,
                            .seq = rank.seq + 1,
                            .time_ns = absl::ToUnixNanos(parts_.clock->Wall()),
                            .line = std::move(line)},
                           importance);
  if (kept.ok()) {
    ++rank.seq;
  } else if (importance == Spool::Importance::kEvent && !rank.ended) {
    EndRank(rank, Annotate(kept, "keeping results"));
    BeginKill(rank, absl::ZeroDuration());
  } else if (importance == Spool::Importance::kEnd) {
    parts_.log->Error("the end of a rank cannot be kept",
                      {F("attempt", ToString(start_.key)), F("rank", rank.place.rank),
                       F("reason", kept.message())});
  }
}

void AttemptSupervisor::AppendLog(Rank& rank, absl::string_view level, absl::string_view text) {
  const std::string cut(text.substr(0, rank.budget.limits().max_line_bytes));
  if (!rank.budget.Take(parts_.clock->Monotonic(), cut.size())) {
    rank.unsent_output.Push(cut);
    return;
  }
  FlushDropped(rank);
  Append(rank, line::LogLine{std::string(level), cut}, Spool::Importance::kEvent);
}

void AttemptSupervisor::FlushDropped(Rank& rank) {
  const std::int64_t dropped = rank.budget.TakeDropped();
  if (dropped == 0) return;
  rank.unsent_output.Clear();
  Append(rank, line::LogLine{"warn", absl::StrCat(dropped, " lines dropped")},
         Spool::Importance::kEvent);
}

// The last words of a rank that died are worth more than the budget.
void AttemptSupervisor::SpillOutput(Rank& rank) {
  const std::deque<std::string> last = rank.unsent_output.lines();
  if (last.empty()) return;
  const std::int64_t dropped =
      std::max<std::int64_t>(rank.budget.TakeDropped() - static_cast<std::int64_t>(last.size()), 0);
  if (dropped > 0) {
    Append(rank, line::LogLine{"warn", absl::StrCat(dropped, " lines dropped")},
           Spool::Importance::kEvent);
  }
  for (const std::string& line : last) {
    Append(rank, line::LogLine{"info", line}, Spool::Importance::kEvent);
  }
  rank.unsent_output.Clear();
}

void AttemptSupervisor::BeginKill(Rank& rank, absl::Duration delay) {
  if (!rank.running || rank.kill_at != absl::InfiniteDuration()) return;
  rank.term_at = std::min(rank.term_at, parts_.clock->Monotonic() + delay);
}

void AttemptSupervisor::Escalate(Rank& rank, absl::Duration now) {
  if (now >= rank.term_at) {
    rank.term_at = absl::InfiniteDuration();
    rank.kill_at = now + limits_.term_grace;
    parts_.launcher->Signal(KeyOf(rank), SIGTERM);
  } else if (now >= rank.kill_at) {
    rank.kill_at = now + limits_.term_grace;  // again until it is gone
    parts_.launcher->Signal(KeyOf(rank), SIGKILL);
  }
}

// A rank that waits for the others' parts of an exchange is not the one to blame: whoever keeps
// them waiting runs into its own deadline first. Only when nobody does it is this one's turn.
absl::Duration AttemptSupervisor::DeadlineOf(const Rank& rank) const {
  if (rank.ended || !rank.running) return absl::InfiniteDuration();
  const absl::Duration phase = deadlines_.Of(rank.protocol.phase());
  const absl::Duration extra =
      exchange_.IsWaiting(rank.place.rank) ? deadlines_.Longest() : absl::ZeroDuration();
  return rank.heard + phase + extra;
}

void AttemptSupervisor::CheckDeadline(Rank& rank, absl::Duration now) {
  if (now < DeadlineOf(rank)) return;
  const absl::string_view phase = line::PhaseName(rank.protocol.phase());
  std::string cause = absl::StrCat("no progress for ", DurationText(DeadlineOf(rank) - rank.heard),
                                   " in phase ", phase);
  if (rank.protocol.case_index() >= 0) {
    absl::StrAppend(&cause, ", case ", rank.protocol.case_index());
  }
  if (exchange_.IsWaiting(rank.place.rank)) {
    absl::StrAppend(&cause, ", waiting for other ranks");
  } else if (!rank.greeted) {
    absl::StrAppend(&cause, ": the worker did not connect");
  }
  EndRank(rank, absl::DeadlineExceededError(cause));
  BeginKill(rank, absl::ZeroDuration());
}

void AttemptSupervisor::Tick() {
  const absl::Duration now = parts_.clock->Monotonic();
  if (now >= cancel_until_) {
    cancel_until_ = absl::InfiniteDuration();
    Fail(absl::StatusCode::kCancelled, cancel_reason_);
  }
  // The longest silent first: it is the one that keeps the others waiting.
  std::vector<Rank*> by_silence;
  for (Rank& rank : ranks_) by_silence.push_back(&rank);
  std::stable_sort(by_silence.begin(), by_silence.end(),
                   [](const Rank* a, const Rank* b) { return a->heard < b->heard; });
  for (Rank* const rank : by_silence) CheckDeadline(*rank, now);
  for (Rank& rank : ranks_) {
    if (rank.running) Escalate(rank, now);
  }
}

absl::Duration AttemptSupervisor::due() const {
  absl::Duration due = has_ended() ? absl::InfiniteDuration() : cancel_until_;
  for (const Rank& rank : ranks_) {
    if (!rank.running) continue;
    due = std::min({due, DeadlineOf(rank), rank.term_at, rank.kill_at});
  }
  return due;
}

}  // namespace param::agent
