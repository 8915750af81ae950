#include "server/store/reads.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "proto/base/status.h"
#include "server/store/checks.h"
#include "server/store/codec.h"

namespace param {
namespace {

std::int64_t SqlLimit(int limit) { return limit <= 0 ? -1 : limit; }

absl::StatusOr<std::vector<std::string>> ReadIds(Call& call) {
  std::vector<std::string> ids;
  while (call.Next()) ids.push_back(call.ReadText());
  PARAM_RETURN_IF_ERROR(call.status());
  return ids;
}

}  // namespace

absl::StatusOr<Job> ReadJob(Connection& db, const std::string& job_id) {
  Call call(db, "get_job");
  call.Text(job_id);
  if (!call.Next()) return call.status().ok() ? NoJob(job_id) : call.status();
  Job job;
  job.job_id = call.ReadText();
  job.request_id = call.ReadText();
  job.owner = call.ReadText();
  job.benchmark_version = call.ReadSmallInt();
  PARAM_ASSIGN_OR_RETURN(job.spec, ParseSpec(call.ReadText()), "job ", job_id);
  PARAM_ASSIGN_OR_RETURN(job.state, JobStateFromName(call.ReadText()), "job ", job_id);
  job.reason = call.ReadText();
  job.attempt = call.ReadSmallInt();
  job.backend = call.ReadText();
  PARAM_ASSIGN_OR_RETURN(job.nodes, ParseNames(call.ReadText()), "job ", job_id);
  job.ranks = call.ReadSmallInt();
  job.oversubscribed = call.ReadInt() != 0;
  job.cases_total = call.ReadSmallInt();
  job.cases_done = call.ReadSmallInt();
  PARAM_ASSIGN_OR_RETURN(job.failure, ParseFailure(call.ReadText()), "job ", job_id);
  Timeline& at = job.timeline;
  for (std::int64_t* time : {&at.submitted, &at.placed, &at.spawned, &at.rendezvous, &at.comm_init,
                             &at.warmup, &at.first_timed, &at.finished}) {
    *time = call.ReadInt();
  }
  return job;
}

absl::StatusOr<Job> ReadJobOfRequest(Connection& db, const std::string& request_id) {
  Call call(db, "job_of_request");
  call.Text(request_id);
  if (!call.Next()) return call.status().ok() ? NoRequest(request_id) : call.status();
  return ReadJob(db, call.ReadText());
}

absl::StatusOr<std::vector<Job>> ReadJobs(Connection& db, const JobFilter& filter) {
  Call call(db, filter.states.empty() ? "list_jobs" : "list_jobs_in_states");
  call.Text(filter.benchmark).Int(SqlLimit(filter.limit));
  if (!filter.states.empty()) {
    std::vector<std::string> names;
    for (const JobState state : filter.states) names.emplace_back(JobStateName(state));
    call.Text(NamesJson(names));
  }
  PARAM_ASSIGN_OR_RETURN(const std::vector<std::string> ids, ReadIds(call));
  std::vector<Job> jobs;
  for (const std::string& id : ids) {
    PARAM_ASSIGN_OR_RETURN(Job job, ReadJob(db, id));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<Attempt>> ReadAttempts(Connection& db, const std::string& job_id) {
  Call call(db, "get_attempts");
  call.Text(job_id);
  std::vector<Attempt> attempts;
  while (call.Next()) {
    Attempt attempt;
    attempt.job_id = job_id;
    attempt.attempt = call.ReadSmallInt();
    attempt.state = call.ReadText();
    PARAM_ASSIGN_OR_RETURN(attempt.ranks, ParseRanks(call.ReadText()), "job ", job_id);
    PARAM_ASSIGN_OR_RETURN(attempt.failure, ParseFailure(call.ReadText()), "job ", job_id);
    attempt.started_ns = call.ReadInt();
    attempt.finished_ns = call.ReadInt();
    attempts.push_back(std::move(attempt));
  }
  PARAM_RETURN_IF_ERROR(call.status());
  return attempts;
}

absl::StatusOr<std::vector<RankEvent>> ReadRankEvents(Connection& db, const AttemptKey& key) {
  Call call(db, "get_rank_events");
  call.Text(key.job_id).Int(key.attempt);
  std::vector<RankEvent> events;
  while (call.Next()) {
    RankEvent event;
    event.key = key;
    event.rank = call.ReadSmallInt();
    event.seq = static_cast<std::uint64_t>(call.ReadInt());
    event.received_ns = call.ReadInt();
    event.line = call.ReadBlob();
    events.push_back(std::move(event));
  }
  PARAM_RETURN_IF_ERROR(call.status());
  return events;
}

absl::StatusOr<std::vector<RankEnvironment>> ReadEnvironment(Connection& db,
                                                             const AttemptKey& key) {
  Call call(db, "get_environment");
  call.Text(key.job_id).Int(key.attempt);
  std::vector<RankEnvironment> environments;
  while (call.Next()) {
    const int rank = call.ReadSmallInt();
    if (environments.empty() || environments.back().rank != rank) {
      environments.push_back({rank, {}});
    }
    std::string name = call.ReadText();
    environments.back().facts.emplace(std::move(name), call.ReadText());
  }
  PARAM_RETURN_IF_ERROR(call.status());
  return environments;
}

absl::StatusOr<std::vector<LogRow>> ReadLogs(Connection& db, const std::string& job_id, int rank,
                                             int limit) {
  Call call(db, "get_logs");
  call.Text(job_id).Int(rank).Int(SqlLimit(limit));
  std::vector<LogRow> rows;
  while (call.Next()) {
    LogRow row;
    row.attempt = call.ReadSmallInt();
    row.rank = call.ReadSmallInt();
    row.seq = static_cast<std::uint64_t>(call.ReadInt());
    row.time_ns = call.ReadInt();
    row.level = call.ReadText();
    row.text = call.ReadText();
    rows.push_back(std::move(row));
  }
  PARAM_RETURN_IF_ERROR(call.status());
  std::reverse(rows.begin(), rows.end());
  return rows;
}

absl::Status ReadSamplesFrom(Connection& db, const std::string& job_id, SamplePosition from,
                             const std::function<absl::Status(const SampleBlob&)>& each) {
  Call call(db, "get_samples");
  call.Text(job_id).Int(from.case_index).Int(from.rank);
  while (call.Next()) {
    SampleBlob blob;
    blob.case_index = call.ReadSmallInt();
    blob.rank = call.ReadSmallInt();
    blob.metric = call.ReadText();
    PARAM_ASSIGN_OR_RETURN(blob.labels, ParseLabels(call.ReadText()), "job ", job_id);
    const std::int64_t count = call.ReadInt();
    PARAM_ASSIGN_OR_RETURN(blob.values, UnpackDoubles(call.ReadBlob(), count), "job ", job_id,
                           ": case ", blob.case_index, ": rank ", blob.rank);
    PARAM_RETURN_IF_ERROR(each(blob));
  }
  return call.status();
}

absl::StatusOr<std::vector<NodeRecord>> ReadNodes(Connection& db) {
  Call call(db, "list_nodes");
  std::vector<NodeRecord> nodes;
  while (call.Next()) {
    NodeRecord node;
    node.node = call.ReadText();
    node.drained = call.ReadInt() != 0;
    node.drain_reason = call.ReadText();
    PARAM_ASSIGN_OR_RETURN(node.labels, ParseMap(call.ReadText()), "node ", node.node);
    node.inventory_json = call.ReadText();
    node.first_seen_ns = call.ReadInt();
    node.last_seen_ns = call.ReadInt();
    nodes.push_back(std::move(node));
  }
  PARAM_RETURN_IF_ERROR(call.status());
  return nodes;
}

}  // namespace param
