#include <utility>

#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "server/core/coordinator.h"
#include "server/core/open_job.h"

namespace param {

Coordinator::Coordinator(CoordinatorOptions options, const Clock& clock, Random& random,
                         Store& store, Post post, CoordinatorObserver& observer, const Log& log)
    : options_(options),
      clock_(clock),
      random_(random),
      store_(store),
      post_(std::move(post)),
      observer_(observer),
      log_(log),
      nodes_(clock, options.lease) {}

Coordinator::~Coordinator() = default;

absl::Status Coordinator::Recover() {
  PARAM_ASSIGN_OR_RETURN(std::vector<NodeRecord> nodes, store_.ListNodes(), "loading nodes");
  for (NodeRecord& node : nodes) nodes_.Restore(std::move(node));
  JobFilter filter;
  filter.states = {JobState::kQueued, JobState::kStarting, JobState::kRunning};
  filter.limit = 1'000'000;
  PARAM_ASSIGN_OR_RETURN(std::vector<Job> jobs, store_.ListJobs(filter), "loading open jobs");
  for (Job& job : jobs) {
    const std::string id = job.job_id;
    if (const absl::Status status = RecoverJob(std::move(job)); !status.ok()) {
      RefuseRecovered(id, status);  // one bad job does not keep the service down
    }
  }
  ReportQueue();
  if (!jobs_.empty()) log_.Info("open jobs recovered", {F("jobs", jobs_.size())});
  return absl::OkStatus();
}

absl::Status Coordinator::RecoverJob(Job job) {
  auto made = std::make_unique<OpenJob>();
  made->job = std::move(job);
  OpenJob& recovered = *made;
  jobs_[recovered.job.job_id] = std::move(made);
  PARAM_ASSIGN_OR_RETURN(recovered.bench, FindBenchmark(recovered.job.spec.benchmark));
  PARAM_ASSIGN_OR_RETURN(recovered.cases, store_.GetCases(recovered.job.job_id));
  PARAM_ASSIGN_OR_RETURN(recovered.footprint,
                         LargestFootprint(*recovered.bench, recovered.cases, recovered.job.spec));
  if (recovered.job.attempt == 0) return absl::OkStatus();
  return RecoverAttempt(recovered);
}

void Coordinator::RefuseRecovered(const std::string& job_id, const absl::Status& status) {
  log_.Error("an open job cannot be taken up again",
             {F("job", job_id), F("error", status.message())});
  OpenJob& open = *jobs_[job_id];
  open.state.reset();
  open.job.reason = absl::StrCat("the restarted coordinator cannot take it up: ", status.message());
  open.job.failure = Failure{std::string(CodeName(status.code())), "place", "", -1,
                             std::string(status.message()),        "",      0};
  FinishJob(open, JobState::kFailed, {});
}

absl::Status Coordinator::RecoverAttempt(OpenJob& open) {
  const std::string& job_id = open.job.job_id;
  PARAM_ASSIGN_OR_RETURN(const std::vector<Attempt> attempts, store_.GetAttempts(job_id));
  for (const Attempt& attempt : attempts) {
    if (attempt.state == "LOST") ++open.retries_used;
    if (attempt.attempt == open.job.attempt) open.attempt = attempt;
  }
  if (open.job.state == JobState::kQueued) return absl::OkStatus();
  std::vector<std::string> rank_nodes;
  for (const RankPlace& place : open.attempt.ranks) rank_nodes.push_back(place.node);
  const AttemptKey key{job_id, open.job.attempt};
  // The stored name is DEVICE or DEVICE+COMM+...
  const std::vector<std::string> backend = absl::StrSplit(open.job.backend, '+');
  open.device_backend = backend.front();
  open.comm_backends.assign(backend.begin() + 1, backend.end());
  open.state = std::make_unique<AttemptState>(*open.bench, key, std::move(rank_nodes), open.cases);
  open.exchange = std::make_unique<ExchangeTable>(open.job.ranks);
  open.accepted.assign(static_cast<std::size_t>(open.job.ranks), 0);
  open.sent = true;
  open.alive_on.insert(open.job.nodes.begin(), open.job.nodes.end());
  for (const std::string& name : open.job.nodes) {
    nodes_.Expect(name);
    nodes_.Find(name)->job_id = job_id;
  }
  PARAM_ASSIGN_OR_RETURN(const std::vector<RankEvent> events, store_.GetRankEvents(key));
  std::vector<Write> writes;
  std::vector<int> concluded;
  // What the last coordinator had decided comes first: later failures follow from it.
  if (!open.attempt.failure.empty()) open.state->AdoptFailure(open.attempt.failure);
  if (const auto ending = JobStateFromName(open.attempt.state);
      ending.ok() && IsFinal(*ending) && *ending != JobState::kFailed) {
    open.ending = *ending;
    open.ending_reason = open.job.reason;
    open.stopping = true;
    open.finish_at = clock_.Monotonic() + options_.lease + options_.stop_grace;
  }
  for (const RankEvent& event : events) {
    const auto effects = open.state->Apply(event);
    if (!effects.ok()) {
      open.state->FailUnfinished(RefusedEvent(open, event, effects.status()));
      continue;
    }
    Applied(open, *effects, writes);
    concluded.insert(concluded.end(), effects->concluded.begin(), effects->concluded.end());
  }
  for (std::size_t rank = 0; rank < open.accepted.size(); ++rank) {
    open.accepted[rank] = open.state->NextSeq(static_cast<int>(rank)) - 1;
  }
  writes.push_back(PutJob{open.job});
  StoreConcluded(open, concluded, std::move(writes));  // what was stored before is stored again
  open.published = open.done.size();  // who watches from now on is told of them first
  MaybeFinishAttempt(open);
  return absl::OkStatus();
}

}  // namespace param
