#include "server/store/memory_store.h"

#include <algorithm>
#include <limits>

#include "proto/base/status.h"
#include "server/store/checks.h"
#include "server/store/codec.h"

namespace param {
namespace {

bool WithinLimit(std::size_t count, int limit) {
  return limit <= 0 || count < static_cast<std::size_t>(limit);
}

// The order that the database's primary keys give.
template <typename T>
void SortByRankMetricLabels(std::vector<T>* rows) {
  std::sort(rows->begin(), rows->end(), [](const T& a, const T& b) {
    return std::make_tuple(a.rank, a.metric, LabelsText(a.labels)) <
           std::make_tuple(b.rank, b.metric, LabelsText(b.labels));
  });
}

}  // namespace

struct MemoryStore::Staged {
  const State& base;
  std::map<std::string, StoredJob> jobs = {};
  std::map<std::string, NodeRecord> nodes = {};

  StoredJob* Find(const std::string& job_id) {
    if (const auto it = jobs.find(job_id); it != jobs.end()) return &it->second;
    const auto it = base.jobs.find(job_id);
    if (it == base.jobs.end()) return nullptr;
    return &jobs.emplace(job_id, it->second).first->second;
  }

  absl::StatusOr<StoredJob*> FindAttempt(const AttemptKey& key) {
    StoredJob* const stored = Find(key.job_id);
    if (stored == nullptr || !stored->attempts.contains(key.attempt)) return NoAttempt(key);
    return stored;
  }

  absl::Status operator()(const PutJob& write) {
    for (const std::map<std::string, StoredJob>* all : {&std::as_const(jobs), &base.jobs}) {
      for (const auto& [job_id, other] : *all) {
        if (other.job.request_id == write.job.request_id && job_id != write.job.job_id) {
          return RequestTaken(write.job.request_id, job_id);
        }
      }
    }
    StoredJob* const stored = Find(write.job.job_id);
    (stored != nullptr ? *stored : jobs[write.job.job_id]).job = write.job;
    return absl::OkStatus();
  }

  absl::Status operator()(const PutCases& write) {
    PARAM_RETURN_IF_ERROR(CheckPlan(write));
    StoredJob* const stored = Find(write.job_id);
    if (stored == nullptr) return NoJob(write.job_id);
    if (!stored->cases.empty()) return PlannedAlready(write.job_id);
    for (const CaseRecord& record : write.cases) {
      CaseRecord plan;
      plan.index = record.index;
      plan.planned = record.planned;
      stored->cases.emplace(record.index, StoredCase{std::move(plan), 0, {}});
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const PutAttempt& write) {
    StoredJob* const stored = Find(write.attempt.job_id);
    if (stored == nullptr) return NoJob(write.attempt.job_id);
    stored->attempts[write.attempt.attempt] = write.attempt;
    return absl::OkStatus();
  }

  absl::Status operator()(const AppendRankEvents& write) {
    for (const RankEvent& event : write.events) {
      PARAM_RETURN_IF_ERROR(CheckSequence(event.seq));
      PARAM_ASSIGN_OR_RETURN(StoredJob* const stored, FindAttempt(event.key));
      stored->events.emplace(std::make_tuple(event.key.attempt, event.rank, event.seq), event);
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const PutCaseResult& write) {
    PARAM_RETURN_IF_ERROR(CheckResult(write));
    StoredJob* const stored = Find(write.key.job_id);
    if (stored == nullptr || !stored->cases.contains(write.result.index)) {
      return NoCase(write.key.job_id, write.result.index);
    }
    StoredCase& target = stored->cases[write.result.index];
    if (target.attempt > write.key.attempt) return absl::OkStatus();  // a later attempt stands
    const Case planned = target.record.planned;
    target = {write.result, write.key.attempt, write.samples};
    target.record.planned = planned;
    target.record.ended = true;
    SortByRankMetricLabels(&target.record.measurements);
    SortByRankMetricLabels(&target.samples);
    std::sort(target.record.ranks.begin(), target.record.ranks.end(),
              [](const RankStatus& a, const RankStatus& b) { return a.rank < b.rank; });
    return absl::OkStatus();
  }

  absl::Status operator()(const PutEnvironment& write) {
    PARAM_ASSIGN_OR_RETURN(StoredJob* const stored, FindAttempt(write.key));
    const auto at = std::make_pair(write.key.attempt, write.environment.rank);
    stored->environment.erase(at);
    if (!write.environment.facts.empty()) stored->environment[at] = write.environment;
    return absl::OkStatus();
  }

  absl::Status operator()(const AppendLogs& write) {
    StoredJob* const stored = Find(write.job_id);
    if (stored == nullptr) return NoJob(write.job_id);
    for (const LogRow& row : write.lines) {
      PARAM_RETURN_IF_ERROR(CheckSequence(row.seq));
      stored->logs.emplace(std::make_tuple(row.attempt, row.rank, row.seq), row);
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const PurgeRankEvents& write) {
    if (StoredJob* const stored = Find(write.key.job_id); stored != nullptr) {
      std::erase_if(stored->events, [&write](const auto& entry) {
        return std::get<0>(entry.first) == write.key.attempt;
      });
    }
    return absl::OkStatus();
  }

  absl::Status operator()(const PutNode& write) {
    nodes[write.node.node] = write.node;
    return absl::OkStatus();
  }
};

void MemoryStore::FailNext(absl::Status status, int batches) {
  const MutexLock lock(mu_);
  next_failure_ = std::move(status);
  failures_left_ = batches;
}

absl::Status MemoryStore::ApplyBatch(const std::vector<Write>& batch) {
  if (failures_left_ > 0) {
    --failures_left_;
    return next_failure_;
  }
  Staged staged = {state_};
  for (const Write& write : batch) PARAM_RETURN_IF_ERROR(std::visit(staged, write));
  for (auto& [job_id, stored] : staged.jobs) state_.jobs[job_id] = std::move(stored);
  for (auto& [name, node] : staged.nodes) state_.nodes[name] = std::move(node);
  return absl::OkStatus();
}

void MemoryStore::Submit(std::vector<Write> batch, Done done) {
  absl::Status status;
  {
    const MutexLock lock(mu_);
    status = ApplyBatch(batch);
  }
  if (done) done(std::move(status));
}

absl::StatusOr<Job> MemoryStore::GetJob(const std::string& job_id) {
  const MutexLock lock(mu_);
  const auto it = state_.jobs.find(job_id);
  if (it == state_.jobs.end()) return NoJob(job_id);
  return it->second.job;
}

absl::StatusOr<Job> MemoryStore::FindByRequest(const std::string& request_id) {
  const MutexLock lock(mu_);
  for (const auto& [job_id, stored] : state_.jobs) {
    if (stored.job.request_id == request_id) return stored.job;
  }
  return NoRequest(request_id);
}

absl::StatusOr<std::vector<Job>> MemoryStore::ListJobs(const JobFilter& filter) {
  const MutexLock lock(mu_);
  std::vector<Job> jobs;
  for (const auto& [job_id, stored] : state_.jobs) {
    const Job& job = stored.job;
    if (!filter.benchmark.empty() && job.spec.benchmark != filter.benchmark) continue;
    if (!filter.states.empty() &&
        std::find(filter.states.begin(), filter.states.end(), job.state) == filter.states.end()) {
      continue;
    }
    jobs.push_back(job);
  }
  std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return std::tie(a.timeline.submitted, a.job_id) > std::tie(b.timeline.submitted, b.job_id);
  });
  if (!WithinLimit(jobs.size(), filter.limit)) jobs.resize(static_cast<std::size_t>(filter.limit));
  return jobs;
}

CaseRecord MemoryStore::Visible(const StoredJob& stored, const StoredCase& stored_case) {
  CaseRecord record = stored_case.record;
  if (!record.ended || stored_case.attempt == stored.job.attempt) return record;
  CaseRecord plan;
  plan.index = record.index;
  plan.planned = std::move(record.planned);
  return plan;
}

absl::StatusOr<std::vector<CaseRecord>> MemoryStore::GetCases(const std::string& job_id) {
  const MutexLock lock(mu_);
  std::vector<CaseRecord> cases;
  const auto it = state_.jobs.find(job_id);
  if (it == state_.jobs.end()) return cases;
  for (const auto& [index, stored_case] : it->second.cases) {
    cases.push_back(Visible(it->second, stored_case));
  }
  return cases;
}

absl::StatusOr<std::vector<Attempt>> MemoryStore::GetAttempts(const std::string& job_id) {
  const MutexLock lock(mu_);
  std::vector<Attempt> attempts;
  const auto it = state_.jobs.find(job_id);
  if (it == state_.jobs.end()) return attempts;
  for (const auto& [number, attempt] : it->second.attempts) attempts.push_back(attempt);
  return attempts;
}

absl::StatusOr<std::vector<RankEvent>> MemoryStore::GetRankEvents(const AttemptKey& key) {
  const MutexLock lock(mu_);
  std::vector<RankEvent> events;
  const auto it = state_.jobs.find(key.job_id);
  if (it == state_.jobs.end()) return events;
  for (const auto& [at, event] : it->second.events) {
    if (std::get<0>(at) == key.attempt) events.push_back(event);
  }
  std::stable_sort(events.begin(), events.end(), [](const RankEvent& a, const RankEvent& b) {
    return a.received_ns < b.received_ns;  // then by rank and seq, as they are
  });
  return events;
}

absl::StatusOr<std::vector<RankEnvironment>> MemoryStore::GetEnvironment(const AttemptKey& key) {
  const MutexLock lock(mu_);
  std::vector<RankEnvironment> environments;
  const auto it = state_.jobs.find(key.job_id);
  if (it == state_.jobs.end()) return environments;
  for (const auto& [at, environment] : it->second.environment) {
    if (at.first == key.attempt) environments.push_back(environment);
  }
  return environments;
}

absl::StatusOr<std::vector<LogRow>> MemoryStore::GetLogs(const std::string& job_id, int rank,
                                                         int limit) {
  const MutexLock lock(mu_);
  std::vector<LogRow> rows;
  const auto it = state_.jobs.find(job_id);
  if (it == state_.jobs.end()) return rows;
  for (const auto& [at, row] : it->second.logs) {
    if (rank == -1 || row.rank == rank) rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [](const LogRow& a, const LogRow& b) {
    return std::tie(a.time_ns, a.attempt, a.rank, a.seq) <
           std::tie(b.time_ns, b.attempt, b.rank, b.seq);
  });
  if (!WithinLimit(rows.size(), limit)) rows.erase(rows.begin(), rows.end() - limit);
  return rows;
}

absl::StatusOr<std::vector<ResultRow>> MemoryStore::ListResults(const ResultFilter& filter) {
  const MutexLock lock(mu_);
  std::vector<const StoredJob*> finished;
  for (const auto& [job_id, stored] : state_.jobs) {
    const Job& job = stored.job;
    if (!IsFinal(job.state)) continue;
    if (!filter.benchmark.empty() && job.spec.benchmark != filter.benchmark) continue;
    if (!filter.node.empty() &&
        std::find(job.nodes.begin(), job.nodes.end(), filter.node) == job.nodes.end()) {
      continue;
    }
    finished.push_back(&stored);
  }
  std::sort(finished.begin(), finished.end(), [](const StoredJob* a, const StoredJob* b) {
    return std::tie(a->job.timeline.finished, a->job.job_id) >
           std::tie(b->job.timeline.finished, b->job.job_id);
  });
  std::vector<ResultRow> rows;
  for (const StoredJob* stored : finished) {
    for (const auto& [index, stored_case] : stored->cases) {
      if (!filter.case_id.empty() && stored_case.record.planned.id != filter.case_id) continue;
      CaseRecord record = Visible(*stored, stored_case);
      if (!record.ended) continue;
      if (!WithinLimit(rows.size(), filter.limit)) return rows;
      rows.push_back({stored->job, std::move(record)});
    }
  }
  return rows;
}

absl::Status MemoryStore::ReadSamples(const std::string& job_id, SamplePosition from,
                                      const std::function<absl::Status(const SampleBlob&)>& each) {
  for (int next = from.case_index;;) {
    std::vector<SampleBlob> blobs;  // of one case, so that `each` runs without the lock
    {
      const MutexLock lock(mu_);
      const auto job = state_.jobs.find(job_id);
      if (job == state_.jobs.end()) return absl::OkStatus();
      const auto it = job->second.cases.lower_bound(next);
      if (it == job->second.cases.end()) return absl::OkStatus();
      next = it->first + 1;
      if (it->second.attempt == job->second.job.attempt) blobs = it->second.samples;
    }
    for (const SampleBlob& blob : blobs) {
      if (SamplePosition{blob.case_index, blob.rank} < from) continue;
      PARAM_RETURN_IF_ERROR(each(blob));
    }
  }
}

absl::StatusOr<std::vector<NodeRecord>> MemoryStore::ListNodes() {
  const MutexLock lock(mu_);
  std::vector<NodeRecord> nodes;
  for (const auto& [name, node] : state_.nodes) nodes.push_back(node);
  return nodes;
}

}  // namespace param
