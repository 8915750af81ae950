#include "server/store/writes.h"

#include <utility>

#include "proto/base/status.h"
#include "server/store/checks.h"
#include "server/store/codec.h"

namespace param {
namespace {

// A missing parent row shows as a foreign key error; the caller knows its name.
absl::Status OrMissing(const absl::Status& status, const absl::Status& missing) {
  return absl::IsNotFound(status) ? missing : status;
}

absl::StatusOr<bool> Exists(Call& call) {
  const bool found = call.Next() && call.ReadInt() != 0;
  PARAM_RETURN_IF_ERROR(call.status());
  return found;
}

// The job's attempt as stored, or -1 when there is no such job.
absl::StatusOr<int> AttemptOfJob(Connection& db, const std::string& job_id) {
  Call call(db, "attempt_of_job");
  call.Text(job_id);
  const int attempt = call.Next() ? call.ReadSmallInt() : -1;
  PARAM_RETURN_IF_ERROR(call.status());
  return attempt;
}

absl::Status CheckRequest(Connection& db, const Job& job) {
  Call call(db, "job_of_request");
  call.Text(job.request_id);
  if (call.Next()) {
    const std::string other = call.ReadText();
    if (other != job.job_id) return RequestTaken(job.request_id, other);
  }
  return call.status();
}

absl::Status Apply(Connection& db, const PutJob& write) {
  const Job& job = write.job;
  PARAM_RETURN_IF_ERROR(CheckRequest(db, job));
  PARAM_ASSIGN_OR_RETURN(const int stored_attempt, AttemptOfJob(db, job.job_id));
  if (stored_attempt >= 1 && job.attempt > stored_attempt) {
    PARAM_RETURN_IF_ERROR(Call(db, "reopen_cases").Text(job.job_id).Int(job.attempt).Run());
  }
  const Timeline& at = job.timeline;
  Call call(db, "put_job");
  call.Text(job.job_id).Text(job.request_id).Text(job.owner).Text(job.spec.source);
  call.Text(job.spec.name).Text(job.spec.benchmark).Int(job.benchmark_version);
  call.Text(SpecJson(job.spec)).Text(JobStateName(job.state)).Text(job.reason);
  call.Int(job.spec.priority).Int(job.attempt).Text(job.backend).Int(job.spec.nodes);
  call.Text(NamesJson(job.nodes)).Int(job.ranks).Int(job.oversubscribed ? 1 : 0);
  call.Int(job.cases_total).Int(job.cases_done).Text(FailureJson(job.failure));
  call.Int(at.submitted).Int(at.placed).Int(at.spawned).Int(at.rendezvous).Int(at.comm_init);
  call.Int(at.warmup).Int(at.first_timed).Int(at.finished);
  return call.Run();
}

absl::Status PutParam(Call& call, const std::string& job_id, int index, const std::string& name,
                      const Value& value) {
  call.Text(job_id).Int(index).Text(name);
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    call.Text("int").Int(*number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    call.Text("real").Real(*real);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    call.Text("bool").Int(*flag ? 1 : 0);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    call.Text("text").Text(*text);
  }
  return call.RunAgain();
}

absl::Status Apply(Connection& db, const PutCases& write) {
  PARAM_RETURN_IF_ERROR(CheckPlan(write));
  PARAM_ASSIGN_OR_RETURN(const int attempt, AttemptOfJob(db, write.job_id));
  if (attempt < 0) return NoJob(write.job_id);
  {
    Call call(db, "has_cases");
    call.Text(write.job_id);
    PARAM_ASSIGN_OR_RETURN(const bool planned, Exists(call));
    if (planned) return PlannedAlready(write.job_id);
  }
  Call put_case(db, "put_case");
  Call put_param(db, "put_case_param");
  for (const CaseRecord& record : write.cases) {
    const Case& planned = record.planned;
    put_case.Text(write.job_id).Int(record.index).Text(planned.id).Text(planned.set_row);
    PARAM_RETURN_IF_ERROR(put_case.Text(planned.application).RunAgain());
    for (const auto& [name, value] : planned.params) {
      PARAM_RETURN_IF_ERROR(PutParam(put_param, write.job_id, record.index, name, value));
    }
  }
  return absl::OkStatus();
}

absl::Status Apply(Connection& db, const PutAttempt& write) {
  const Attempt& attempt = write.attempt;
  Call call(db, "put_attempt");
  call.Text(attempt.job_id).Int(attempt.attempt).Text(attempt.state);
  call.Text(RanksJson(attempt.ranks)).Text(FailureJson(attempt.failure));
  call.Int(attempt.started_ns).Int(attempt.finished_ns);
  return OrMissing(call.Run(), NoJob(attempt.job_id));
}

absl::Status Apply(Connection& db, const AppendRankEvents& write) {
  Call call(db, "append_rank_event");
  for (const RankEvent& event : write.events) {
    PARAM_RETURN_IF_ERROR(CheckSequence(event.seq));
    call.Text(event.key.job_id).Int(event.key.attempt).Int(event.rank);
    call.Int(static_cast<std::int64_t>(event.seq)).Int(event.received_ns).Blob(event.line);
    PARAM_RETURN_IF_ERROR(OrMissing(call.RunAgain(), NoAttempt(event.key)));
  }
  return absl::OkStatus();
}

absl::Status PutMeasurements(Connection& db, const PutCaseResult& write) {
  Call call(db, "put_measurement");
  for (const Measurement& m : write.result.measurements) {
    const Summary& s = m.summary;
    call.Text(write.key.job_id).Int(write.key.attempt).Int(write.result.index).Int(m.rank);
    call.Text(m.metric).Text(LabelsText(m.labels)).Text(m.unit).Int(s.n);
    call.Real(s.min).Real(s.p50).Real(s.p75).Real(s.p95).Real(s.p99).Real(s.max).Real(s.mean);
    call.Real(s.stdev).Real(s.ci95_low).Real(s.ci95_high).Int(s.slowest_rank);
    PARAM_RETURN_IF_ERROR(call.RunAgain());
  }
  return absl::OkStatus();
}

absl::Status PutSamples(Connection& db, const PutCaseResult& write) {
  Call call(db, "put_sample");
  for (const SampleBlob& blob : write.samples) {
    PARAM_ASSIGN_OR_RETURN(const std::string packed, PackDoubles(blob.values));
    call.Text(write.key.job_id).Int(write.key.attempt).Int(blob.case_index).Int(blob.rank);
    call.Text(blob.metric).Text(LabelsText(blob.labels));
    call.Int(static_cast<std::int64_t>(blob.values.size())).Blob(packed);
    PARAM_RETURN_IF_ERROR(call.RunAgain());
  }
  return absl::OkStatus();
}

absl::Status PutCaseRanks(Connection& db, const PutCaseResult& write) {
  Call call(db, "put_case_rank");
  for (const RankStatus& rank : write.result.ranks) {
    call.Text(write.key.job_id).Int(write.key.attempt).Int(write.result.index).Int(rank.rank);
    call.Text(rank.node).Text(line::CaseStatusName(rank.status)).Text(rank.reason);
    PARAM_RETURN_IF_ERROR(call.RunAgain());
  }
  return absl::OkStatus();
}

absl::Status Apply(Connection& db, const PutCaseResult& write) {
  PARAM_RETURN_IF_ERROR(CheckResult(write));
  const std::string& job_id = write.key.job_id;
  const int index = write.result.index;
  {
    Call call(db, "attempt_of_case");
    call.Text(job_id).Int(index);
    if (!call.Next()) return call.status().ok() ? NoCase(job_id, index) : call.status();
    if (call.ReadInt() > write.key.attempt) return absl::OkStatus();  // a later attempt stands
  }
  for (const absl::string_view clear :
       {"clear_case_ranks", "clear_measurements", "clear_samples"}) {
    PARAM_RETURN_IF_ERROR(Call(db, clear).Text(job_id).Int(write.key.attempt).Int(index).Run());
  }
  Call end(db, "end_case");
  end.Text(job_id).Int(index).Int(write.key.attempt);
  end.Text(line::CaseStatusName(write.result.status)).Text(write.result.reason);
  PARAM_RETURN_IF_ERROR(end.Text(MapJson(write.result.info)).Run());
  PARAM_RETURN_IF_ERROR(PutCaseRanks(db, write));
  PARAM_RETURN_IF_ERROR(PutMeasurements(db, write));
  return PutSamples(db, write);
}

absl::Status Apply(Connection& db, const PutEnvironment& write) {
  const AttemptKey& key = write.key;
  {
    Call call(db, "has_attempt");
    call.Text(key.job_id).Int(key.attempt);
    PARAM_ASSIGN_OR_RETURN(const bool there, Exists(call));
    if (!there) return NoAttempt(key);
  }
  const int rank = write.environment.rank;
  PARAM_RETURN_IF_ERROR(
      Call(db, "clear_environment").Text(key.job_id).Int(key.attempt).Int(rank).Run());
  Call call(db, "put_environment_fact");
  for (const auto& [name, value] : write.environment.facts) {
    call.Text(key.job_id).Int(key.attempt).Int(rank).Text(name).Text(value);
    PARAM_RETURN_IF_ERROR(call.RunAgain());
  }
  return absl::OkStatus();
}

absl::Status Apply(Connection& db, const AppendLogs& write) {
  PARAM_ASSIGN_OR_RETURN(const int attempt, AttemptOfJob(db, write.job_id));
  if (attempt < 0) return NoJob(write.job_id);
  Call call(db, "append_log");
  for (const LogRow& row : write.lines) {
    PARAM_RETURN_IF_ERROR(CheckSequence(row.seq));
    call.Text(write.job_id).Int(row.attempt).Int(row.rank).Int(static_cast<std::int64_t>(row.seq));
    PARAM_RETURN_IF_ERROR(call.Int(row.time_ns).Text(row.level).Text(row.text).RunAgain());
  }
  return absl::OkStatus();
}

absl::Status Apply(Connection& db, const PurgeRankEvents& write) {
  return Call(db, "purge_rank_events").Text(write.key.job_id).Int(write.key.attempt).Run();
}

absl::Status Apply(Connection& db, const PutNode& write) {
  const NodeRecord& node = write.node;
  Call call(db, "put_node");
  call.Text(node.node).Int(node.drained ? 1 : 0).Text(node.drain_reason).Text(MapJson(node.labels));
  return call.Text(node.inventory_json).Int(node.first_seen_ns).Int(node.last_seen_ns).Run();
}

constexpr std::size_t kRowBytes = 256;  // a row's numbers, short strings and overhead

std::size_t Size(const PutJob& write) { return 8 * kRowBytes + 64 * write.job.nodes.size(); }
std::size_t Size(const PutCases& write) { return 8 * kRowBytes * write.cases.size(); }
std::size_t Size(const PutAttempt& write) { return kRowBytes + 64 * write.attempt.ranks.size(); }
std::size_t Size(const AppendRankEvents& write) {
  std::size_t bytes = 0;
  for (const RankEvent& event : write.events) bytes += kRowBytes + event.line.size();
  return bytes;
}
std::size_t Size(const PutCaseResult& write) {
  std::size_t bytes = kRowBytes * (write.result.measurements.size() + write.result.ranks.size());
  for (const SampleBlob& blob : write.samples) {
    bytes += kRowBytes + sizeof(double) * blob.values.size();
  }
  return bytes;
}
std::size_t Size(const PutEnvironment& write) {
  return kRowBytes * (1 + write.environment.facts.size());
}
std::size_t Size(const AppendLogs& write) {
  std::size_t bytes = 0;
  for (const LogRow& row : write.lines) bytes += kRowBytes + row.text.size();
  return bytes;
}
std::size_t Size(const PurgeRankEvents& /*write*/) { return kRowBytes; }
std::size_t Size(const PutNode& write) { return kRowBytes + write.node.inventory_json.size(); }

}  // namespace

absl::Status ApplyWrite(Connection& db, const Write& write) {
  return std::visit([&db](const auto& one) { return Apply(db, one); }, write);
}

std::size_t ApproximateBytes(const Write& write) {
  return std::visit([](const auto& one) { return Size(one); }, write);
}

}  // namespace param
