#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "server/core/coordinator.h"
#include "server/core/open_job.h"

namespace param {
namespace {

constexpr int kMaxNodes = 100'000;
constexpr int kMaxRanksPerNode = 4096;
constexpr int kMaxRetries = 100;
constexpr std::size_t kMaxScriptBytes = 64 << 10;

// `world` 0: not known yet; then the ranks themselves refuse it. The element is theirs to check.
absl::Status CheckInjection(const std::vector<CaseRecord>& cases, std::int64_t world) {
  const MeasureOptions options = MeasureOptionsOf(cases.front().planned.params);
  PARAM_ASSIGN_OR_RETURN(const Injection injection, ParseInjection(options.inject));
  if (!injection.armed || world == 0 || injection.rank < world) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--inject: rank ", injection.rank, " is not one of the job's ", world,
                   world == 1 ? " rank (0)" : absl::StrCat(" ranks (0 to ", world - 1, ")")));
}

std::string NoWaitReason(absl::string_view reason) {
  return absl::StrCat("cannot start now, and --no-wait was given: ", reason);
}

absl::Status InRange(absl::string_view what, std::int64_t value, std::int64_t low,
                     std::int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", value, " is outside ", low, "..", high));
}

absl::Status CheckNodeNames(const JobSpec& spec) {
  std::set<std::string> seen;
  for (const std::string& name : spec.node_names) {
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("node \"", name, "\" is named twice"));
    }
  }
  if (!spec.node_names.empty() && spec.node_names.size() < static_cast<std::size_t>(spec.nodes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes: ", spec.nodes, " wanted, only ", spec.node_names.size(), " named"));
  }
  return absl::OkStatus();
}

}  // namespace

Coordinator::OpenJob* Coordinator::FindOpen(const std::string& job_id) {
  const auto it = jobs_.find(job_id);
  return it == jobs_.end() ? nullptr : it->second.get();
}

Coordinator::OpenJob* Coordinator::FindOpen(const AttemptKey& key) {
  OpenJob* open = FindOpen(key.job_id);
  if (open == nullptr || open->state == nullptr || open->job.attempt != key.attempt) return nullptr;
  return open;
}

absl::Status Coordinator::Validate(const JobSpec& spec, Job& job, std::vector<CaseRecord>& cases,
                                   Footprint& footprint) const {
  const auto found = FindBenchmark(spec.benchmark);
  if (!found.ok()) return absl::InvalidArgumentError(found.status().message());  // a rejection
  const BenchmarkSpec* const bench = *found;
  PARAM_RETURN_IF_ERROR(InRange("nodes", spec.nodes, 1, kMaxNodes));
  PARAM_RETURN_IF_ERROR(InRange("ranks_per_node", spec.ranks_per_node, 0, kMaxRanksPerNode));
  PARAM_RETURN_IF_ERROR(InRange("retries", spec.retries, 0, kMaxRetries));
  PARAM_RETURN_IF_ERROR(InRange("priority", spec.priority, -1'000'000, 1'000'000));
  PARAM_RETURN_IF_ERROR(InRange("timeout", spec.timeout_ns, 0, INT64_MAX / 2));
  PARAM_RETURN_IF_ERROR(
      InRange("name: length", static_cast<std::int64_t>(spec.name.size()), 0, 200));
  PARAM_RETURN_IF_ERROR(InRange("fake_script: bytes",
                                static_cast<std::int64_t>(spec.fake_script.size()), 0,
                                static_cast<std::int64_t>(kMaxScriptBytes)));
  for (const auto& [phase, deadline] : spec.phase_deadlines_ns) {
    PARAM_RETURN_IF_ERROR(line::PhaseFromName(phase).status(), "deadline");
    PARAM_RETURN_IF_ERROR(InRange(absl::StrCat("deadline of ", phase), deadline, 1, INT64_MAX / 2));
  }
  PARAM_RETURN_IF_ERROR(CheckNodeNames(spec));
  PARAM_RETURN_IF_ERROR(CheckInterface(spec.interface));
  PARAM_ASSIGN_OR_RETURN(std::vector<Case> planned, ExpandCases(*bench, spec.params));
  for (Case& each : planned) {
    CaseRecord record;
    record.index = static_cast<int>(cases.size());
    record.planned = std::move(each);
    cases.push_back(std::move(record));
  }
  job.spec = spec;
  job.benchmark_version = bench->version;
  job.cases_total = static_cast<int>(cases.size());
  PARAM_ASSIGN_OR_RETURN(footprint, LargestFootprint(*bench, cases, spec));
  PARAM_RETURN_IF_ERROR(CheckSatisfiable(job, cases, nodes_.nodes()));
  const std::int64_t world = LargestWorld({&job, footprint}, nodes_.nodes());
  if (bench->needs_comm && world == 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        bench->id, " needs two ranks that communicate, this job has one: give --nodes 2",
        " or --ranks-per-node 2"));
  }
  return CheckInjection(cases, world);
}

absl::Status Coordinator::CheckNoWait(const Job& job, const Footprint& footprint) const {
  std::vector<Waiting> waiting = {{&job, footprint}};
  for (const auto& [id, open] : jobs_) {
    if (open->job.state == JobState::kQueued) waiting.push_back({&open->job, open->footprint});
  }
  for (const auto& [id, open] : submitting_) {
    if (open->job.request_id == job.request_id) continue;  // this very job, asked for twice
    waiting.push_back({&open->job, open->footprint});
  }
  const PlacementPlan plan = PlanPlacements(std::move(waiting), nodes_.nodes());
  const auto reason = plan.reasons.find(job.job_id);
  if (reason == plan.reasons.end()) return absl::OkStatus();
  observer_.PlacementFailed("no_wait");
  return absl::FailedPreconditionError(NoWaitReason(reason->second));
}

// The fleet changed while the job was being stored.
absl::StatusOr<Job> Coordinator::RejectNoWait(OpenJob& open) {
  observer_.PlacementFailed("no_wait");
  const std::string reason = NoWaitReason(open.job.reason);
  EndQueued(open, JobState::kFailed, reason);
  return absl::FailedPreconditionError(reason);
}

// A request that is asked again gets the answer that it got.
absl::StatusOr<Job> Coordinator::AnswerOfRequest(const std::string& request_id) {
  PARAM_ASSIGN_OR_RETURN(Job job, store_.FindByRequest(request_id));
  const bool rejected =
      job.spec.no_wait && job.state == JobState::kFailed && job.attempt == 0 && job.failure.empty();
  if (rejected) return absl::FailedPreconditionError(job.reason);
  return job;
}

void Coordinator::Submit(const std::string& principal, const std::string& request_id, JobSpec spec,
                         Reply<Job> reply) {
  if (request_id.empty()) {
    reply(absl::InvalidArgumentError("request_id is empty: it makes a repeated submit harmless"));
    return;
  }
  for (const auto& [id, open] : jobs_) {
    if (open->job.request_id == request_id) {
      reply(open->job);
      return;
    }
  }
  auto open = std::make_unique<OpenJob>();
  open->job.job_id = MakeId(random_, "j-");
  open->job.request_id = request_id;
  open->job.owner = principal.empty() ? "local" : principal;
  open->job.timeline.submitted = Now();
  absl::Status status = Validate(spec, open->job, open->cases, open->footprint);
  if (status.ok() && spec.no_wait) status = CheckNoWait(open->job, open->footprint);
  if (!status.ok()) {
    // Asked again after the job ended: the fleet may have changed, the answer has not.
    absl::StatusOr<Job> before = AnswerOfRequest(request_id);
    reply(absl::IsNotFound(before.status()) ? status : std::move(before));
    return;
  }
  open->bench = *FindBenchmark(spec.benchmark);
  std::vector<Write> writes = {PutJob{open->job}, PutCases{open->job.job_id, open->cases}};
  const bool asked_twice =
      std::any_of(submitting_.begin(), submitting_.end(),
                  [&](const auto& each) { return each.second->job.request_id == request_id; });
  if (!asked_twice) submitting_[open->job.job_id] = open.get();  // the store refuses the second
  const auto shared = std::make_shared<std::unique_ptr<OpenJob>>(std::move(open));
  store_.Submit(std::move(writes), [this, shared, request_id, reply](absl::Status stored) {
    post_([this, shared, request_id, reply, stored] {
      submitting_.erase((*shared)->job.job_id);
      if (absl::IsAlreadyExists(stored)) {  // the same request, asked twice
        reply(AnswerOfRequest(request_id));
        return;
      }
      if (!stored.ok()) {
        reply(Annotate(stored, "storing the job"));
        return;
      }
      Submitted(std::move(*shared), reply);
    });
  });
}

void Coordinator::Submitted(std::unique_ptr<OpenJob> open, const Reply<Job>& reply) {
  const Job job = open->job;
  Enqueue(std::move(open));
  if (!job.spec.no_wait) {
    reply(job);
    Schedule();
    return;
  }
  Schedule();
  OpenJob& submitted = *FindOpen(job.job_id);
  reply(submitted.job.state == JobState::kQueued ? RejectNoWait(submitted) : submitted.job);
}

void Coordinator::Enqueue(std::unique_ptr<OpenJob> open) {
  observer_.JobSubmitted(open->job.spec.benchmark, open->job.spec.source);
  log_.Info("job submitted", {F("job", open->job.job_id), F("benchmark", open->job.spec.benchmark),
                              F("nodes", open->job.spec.nodes), F("cases", open->job.cases_total)});
  const std::string id = open->job.job_id;
  jobs_[id] = std::move(open);
}

void Coordinator::Cancel(const std::string& job_id, Reply<Job> reply) {
  OpenJob* open = FindOpen(job_id);
  if (open == nullptr) {
    reply(store_.GetJob(job_id));  // ended, or NOT_FOUND
    return;
  }
  if (open->finished) {
    reply(open->job);
    return;
  }
  if (open->job.state == JobState::kQueued) {
    EndQueued(*open, JobState::kCancelled, "cancelled before it started");
  } else if (!open->ending && !open->stopping) {
    StopAttemptOf(*open, JobState::kCancelled, "cancelled", true);
  }
  // What this changed, written with the answer: what was answered survives a kill.
  const Job answer = open->job;
  std::vector<Write> writes = {PutJob{answer}};
  if (open->job.attempt > 0) writes.push_back(PutAttempt{open->attempt});
  store_.Submit(std::move(writes), [this, answer, reply](absl::Status stored) {
    post_([answer, reply, stored] {
      if (stored.ok()) {
        reply(answer);
      } else {
        reply(Annotate(stored, "job ", answer.job_id, " is being ended, but that is not stored"));
      }
    });
  });
}

// A restarted coordinator goes on ending the attempt as this one would have.
void Coordinator::SaveIntent(OpenJob& open, const std::string& state) {
  open.attempt.state = state;
  open.attempt.failure = open.state->failure();
  const std::string job_id = open.job.job_id;
  store_.Submit({PutAttempt{open.attempt}, PutJob{open.job}}, [this, job_id](absl::Status status) {
    if (!status.ok()) {
      log_.Error("cannot store that an attempt is being stopped",
                 {F("job", job_id), F("error", status.message())});
    }
  });
}

void Coordinator::EndQueued(OpenJob& open, JobState state, const std::string& reason) {
  open.job.reason = reason;
  FinishJob(open, state, {});
}

void Coordinator::StopAttemptOf(OpenJob& open, JobState ending, const std::string& reason,
                                bool graceful) {
  open.ending = ending;
  open.ending_reason = reason;
  open.job.reason = reason;
  const absl::Duration now = clock_.Monotonic();
  open.abort_at = graceful ? now + options_.cancel_grace : now;
  open.finish_at = open.abort_at + options_.stop_grace;
  open.stopping = true;
  SaveIntent(open, std::string(JobStateName(ending)));
  SendStop(open, graceful, reason);
  MaybeFinishAttempt(open);
}

void Coordinator::SendStop(const OpenJob& open, bool graceful, const std::string& reason) {
  for (const std::string& name : open.alive_on) {
    NodeEntry* node = nodes_.Find(name);
    if (node != nullptr && node->session != nullptr) {
      node->session->Send(StopAttempt{open.state->key(), graceful, reason});
    }
  }
}

void Coordinator::MaybeFinishAttempt(OpenJob& open) {
  if (open.finished || open.state == nullptr) return;
  AttemptState& state = *open.state;
  if (state.failed() && !open.stopping) {
    open.stopping = true;
    open.finish_at = clock_.Monotonic() + options_.stop_grace;
    SaveIntent(open, "FAILED");
    SendStop(open, false,
             absl::StrCat("rank ", state.failure().rank, " on ", state.failure().node, ": ",
                          state.failure().cause));
  }
  const bool gone = open.alive_on.empty();
  const bool overdue = clock_.Monotonic() >= open.finish_at;
  if (open.sent && (gone || overdue)) FinishAttempt(open);  // before that, SendStart decides
}

void Coordinator::FinishAttempt(OpenJob& open) {
  AttemptState& state = *open.state;
  const std::string why = open.ending      ? open.ending_reason
                          : state.failed() ? state.failure().cause
                                           : "the rank did not report it";
  open.job.failure = state.failure();
  open.attempt.failure = state.failure();
  open.attempt.finished_ns = Now();
  if (!open.ending && open.lost && open.retries_used < open.job.spec.retries) {
    open.attempt.state = "LOST";
    Requeue(open, {PutAttempt{open.attempt}, PurgeRankEvents{state.key()}});
    return;
  }
  std::vector<Write> writes = std::move(open.unstored);
  for (const int index : state.ConcludeRest(why)) {
    const CaseRecord& record = state.cases()[static_cast<std::size_t>(index)];
    const auto shared = std::make_shared<const CaseRecord>(record);
    open.done.push_back(shared);
    writes.push_back(PutCaseResult{state.key(), record, state.TakeSamples(index)});
  }
  JobState final_state = JobState::kSucceeded;
  std::string reason;
  if (open.ending) {
    final_state = *open.ending;
    reason = open.ending_reason;
  } else if (state.failed()) {
    final_state = JobState::kFailed;
    reason = absl::StrCat(state.failure().phase, ": ", state.failure().cause);
  } else {
    JudgeCases(open, final_state, reason);
  }
  open.job.reason = reason;
  open.job.cases_done = open.job.cases_total;
  open.attempt.state = open.lost && final_state == JobState::kFailed
                           ? "LOST"
                           : std::string(JobStateName(final_state));
  writes.push_back(PutAttempt{open.attempt});
  writes.push_back(PurgeRankEvents{state.key()});
  FinishJob(open, final_state, std::move(writes));
}

void Coordinator::JudgeCases(const OpenJob& open, JobState& state, std::string& reason) const {
  int passed = 0, bad = 0;
  const CaseRecord* first_bad = nullptr;
  const CaseRecord* first_skipped = nullptr;
  for (const CaseRecord& record : open.state->cases()) {
    if (record.status == line::CaseStatus::kPassed) {
      ++passed;
    } else if (record.status == line::CaseStatus::kSkipped) {
      if (first_skipped == nullptr) first_skipped = &record;
    } else {
      ++bad;
      if (first_bad == nullptr) first_bad = &record;
    }
  }
  if (first_bad != nullptr) {
    state = JobState::kFailed;
    reason = absl::StrCat(bad, " of ", open.state->cases().size(), " cases ",
                          line::CaseStatusName(first_bad->status), "; ", first_bad->planned.id,
                          ": ", first_bad->reason);
  } else if (passed == 0) {
    state = JobState::kFailed;
    reason =
        absl::StrCat("no case passed; all were skipped",
                     first_skipped == nullptr ? "" : absl::StrCat(": ", first_skipped->reason));
  } else {
    state = JobState::kSucceeded;
  }
}

void Coordinator::FinishJob(OpenJob& open, JobState state, std::vector<Write> writes) {
  open.finished = true;
  open.job.state = state;
  open.job.timeline.finished = Now();
  writes.push_back(PutJob{open.job});
  log_.Info("job ended", {F("job", open.job.job_id), F("state", JobStateName(state)),
                          F("reason", open.job.reason)});
  open.end_writes = std::move(writes);
  StoreEnd(open);
  Schedule();
}

void Coordinator::StoreEnd(OpenJob& open) {
  open.end_retry_at = absl::InfiniteDuration();
  const std::string job_id = open.job.job_id;
  store_.Submit(open.end_writes, [this, job_id](absl::Status status) {
    post_([this, job_id, status] {
      OpenJob* ended = FindOpen(job_id);
      if (ended == nullptr) return;
      if (!status.ok()) {  // a full disk, say: the job stays open until its end is on disk
        log_.Error("cannot store the end of a job; trying again",
                   {F("job", job_id), F("error", status.message())});
        ended->end_retry_at = clock_.Monotonic() + options_.store_retry;
        return;
      }
      PublishCases(*ended, ended->done.size());
      PublishJob(*ended);
      observer_.JobFinished(ended->job);
      bus_.CloseAll(job_id, absl::OkStatus());
      jobs_.erase(job_id);
      ReportQueue();
    });
  });
}

void Coordinator::Requeue(OpenJob& open, std::vector<Write> writes) {
  ++open.retries_used;
  log_.Warn("attempt lost; the job waits for another",
            {F("job", open.job.job_id), F("attempt", open.job.attempt),
             F("cause", open.job.failure.cause)});
  const std::int64_t submitted = open.job.timeline.submitted;
  open.job.timeline = Timeline{};
  open.job.timeline.submitted = submitted;
  open.job.state = JobState::kQueued;
  open.job.reason =
      absl::StrCat("attempt ", open.job.attempt, " was lost: ", open.job.failure.cause);
  open.job.cases_done = 0;
  open.job.failure = Failure{};
  open.job.nodes.clear();
  open.unstored.clear();
  open.state.reset();
  open.exchange.reset();
  open.relay.reset();
  open.start_due.clear();
  open.launcher.clear();
  open.plan = LaunchPlan{};
  open.accepted.clear();
  open.done.clear();
  open.published = 0;
  open.alive_on.clear();
  open.sent = open.lost = open.stopping = false;
  open.abort_at = open.finish_at = absl::InfiniteDuration();
  writes.push_back(PutJob{open.job});
  const std::string job_id = open.job.job_id;
  store_.Submit(std::move(writes), [this, job_id](absl::Status status) {
    post_([this, job_id, status] {
      if (!status.ok()) {
        log_.Error("cannot store a lost attempt", {F("job", job_id), F("error", status.message())});
      }
      if (OpenJob* waiting = FindOpen(job_id)) PublishJob(*waiting);
      Schedule();
    });
  });
}

// Monotonic over attempts and restarts: the attempt, then the case within it.
std::uint64_t Coordinator::CaseSeq(const OpenJob& open, std::size_t cases) {
  return (static_cast<std::uint64_t>(open.job.attempt) << 20) | cases;
}

void Coordinator::Publish(const OpenJob& open,
                          std::variant<Job, std::shared_ptr<const CaseRecord>, Progress> kind,
                          std::uint64_t seq) {
  auto event = std::make_shared<JobEvent>();
  event->seq = seq;
  event->job_id = open.job.job_id;
  event->time_ns = Now();
  event->kind = std::move(kind);
  if (const int missed = bus_.Publish(event); missed > 0) observer_.EventsDropped("watch", missed);
}

void Coordinator::PublishJob(const OpenJob& open) {
  Publish(open, open.job, CaseSeq(open, open.published));
}

void Coordinator::PublishCases(OpenJob& open, std::size_t upto) {
  while (open.published < std::min(upto, open.done.size())) {
    const auto record = open.done[open.published++];
    observer_.CaseStored(open.job, *record);
    Publish(open, record, CaseSeq(open, open.published));
  }
}

absl::Status Coordinator::Watch(const std::string& job_id, std::uint64_t after_seq,
                                std::shared_ptr<JobWatcher> watcher) {
  const OpenJob* open = FindOpen(job_id);
  if (open == nullptr) return absl::NotFoundError(absl::StrCat("job ", job_id, " is not open"));
  std::vector<std::shared_ptr<const JobEvent>> replay;
  const auto add = [&](auto kind, std::uint64_t seq) {
    auto event = std::make_shared<JobEvent>();
    event->seq = seq;
    event->job_id = job_id;
    event->time_ns = Now();
    event->kind = std::move(kind);
    replay.push_back(std::move(event));
  };
  add(open->job, std::max(after_seq, CaseSeq(*open, 0)));
  for (std::size_t i = 0; i < open->published; ++i) {
    const std::uint64_t seq = CaseSeq(*open, i + 1);
    if (seq > after_seq) add(open->done[i], seq);
  }
  watcher->Replay(std::move(replay));
  bus_.Subscribe(job_id, std::move(watcher));
  return absl::OkStatus();
}

void Coordinator::Unwatch(const std::string& job_id, const JobWatcher* watcher) {
  bus_.Unsubscribe(job_id, watcher);
}

}  // namespace param
