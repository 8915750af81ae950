#include "server/rpc/job_service.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/rpc/records.h"
#include "server/rpc/watch_stream.h"

namespace param {
namespace {

constexpr int kMaxListed = 10'000;

int Limit(int wanted, int fallback) {
  return wanted <= 0 ? fallback : std::min(wanted, kMaxListed);
}

absl::Status FillJob(Store& store, const v1::GetJobRequest& request, v1::GetJobResponse* response) {
  PARAM_ASSIGN_OR_RETURN(const Job job, store.GetJob(request.job_id()));
  *response->mutable_job() = JobToProto(job);
  if (request.with_cases()) {
    PARAM_ASSIGN_OR_RETURN(const auto cases, store.GetCases(job.job_id));
    for (const CaseRecord& record : cases) *response->add_cases() = CaseToProto(record);
  }
  if (request.with_environment() && job.attempt > 0) {
    PARAM_ASSIGN_OR_RETURN(const auto attempts, store.GetAttempts(job.job_id));
    PARAM_ASSIGN_OR_RETURN(const auto environment,
                           store.GetEnvironment(AttemptKey{job.job_id, job.attempt}));
    for (const RankEnvironment& rank : environment) {
      v1::RankEnvironment* out = response->add_environment();
      out->set_rank(rank.rank);
      for (const Attempt& attempt : attempts) {
        if (attempt.attempt != job.attempt) continue;
        for (const RankPlace& place : attempt.ranks) {
          if (place.rank == rank.rank) out->set_node(place.node);
        }
      }
      out->mutable_facts()->insert(rank.facts.begin(), rank.facts.end());
    }
  }
  return absl::OkStatus();
}

absl::Status FillLogs(Store& store, const v1::LogsRequest& request, v1::LogsResponse* response) {
  PARAM_RETURN_IF_ERROR(store.GetJob(request.job_id()).status());
  PARAM_ASSIGN_OR_RETURN(const auto attempts, store.GetAttempts(request.job_id()));
  std::map<std::pair<int, int>, std::string> nodes;  // by (attempt, rank)
  for (const Attempt& attempt : attempts) {
    for (const RankPlace& place : attempt.ranks) nodes[{attempt.attempt, place.rank}] = place.node;
  }
  PARAM_ASSIGN_OR_RETURN(const auto lines, store.GetLogs(request.job_id(), request.rank(),
                                                         Limit(request.limit(), 1000)));
  for (const LogRow& line : lines) {
    v1::LogRow* out = response->add_lines();
    out->set_attempt(line.attempt);
    out->set_rank(line.rank);
    out->set_time_ns(line.time_ns);
    out->set_level(line.level);
    out->set_text(line.text);
    out->set_node(nodes[{line.attempt, line.rank}]);
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* JobServiceImpl::Submit(grpc::CallbackServerContext* call,
                                                 const v1::SubmitRequest* request,
                                                 v1::SubmitResponse* response) {
  const UnaryCall unary(context_, "JobService.Submit", call->DefaultReactor());
  context_.loop.Post([this, unary, request, response] {
    context_.coordinator.Submit(
        request->principal().name(), request->request_id(), SpecFromProto(request->spec()),
        [unary, request, response](absl::StatusOr<Job> job) {
          if (job.ok()) *response->mutable_job() = JobToProto(*job);
          const std::string object =
              job.ok() ? absl::StrCat("job ", job->job_id)
                       : absl::StrCat("a job of benchmark ", request->spec().benchmark());
          unary.FinishChange(*request, object, job.status());
        });
  });
  return unary.reactor();
}

grpc::ServerUnaryReactor* JobServiceImpl::Get(grpc::CallbackServerContext* call,
                                              const v1::GetJobRequest* request,
                                              v1::GetJobResponse* response) {
  const UnaryCall unary(context_, "JobService.Get", call->DefaultReactor());
  unary.FinishOnReader(
      [this, request, response] { return FillJob(context_.store, *request, response); });
  return unary.reactor();
}

grpc::ServerUnaryReactor* JobServiceImpl::List(grpc::CallbackServerContext* call,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  const UnaryCall unary(context_, "JobService.List", call->DefaultReactor());
  unary.FinishOnReader([this, request, response]() -> absl::Status {
    JobFilter filter;
    filter.benchmark = request->benchmark();
    filter.limit = Limit(request->limit(), 50);
    for (const int state : request->states()) {
      PARAM_ASSIGN_OR_RETURN(const JobState wanted,
                             StateFromProto(static_cast<v1::JobState>(state)));
      filter.states.push_back(wanted);
    }
    PARAM_ASSIGN_OR_RETURN(const auto jobs, context_.store.ListJobs(filter));
    for (const Job& job : jobs) *response->add_jobs() = JobToProto(job);
    return absl::OkStatus();
  });
  return unary.reactor();
}

grpc::ServerWriteReactor<v1::JobEvent>* JobServiceImpl::Watch(grpc::CallbackServerContext*,
                                                              const v1::WatchRequest* request) {
  return StartWatch(context_, request->job_id(), request->after_seq());
}

grpc::ServerUnaryReactor* JobServiceImpl::Cancel(grpc::CallbackServerContext* call,
                                                 const v1::CancelRequest* request,
                                                 v1::CancelResponse* response) {
  const UnaryCall unary(context_, "JobService.Cancel", call->DefaultReactor());
  context_.loop.Post([this, unary, request, response] {
    context_.coordinator.Cancel(
        request->job_id(), [unary, request, response](absl::StatusOr<Job> job) {
          if (job.ok()) *response->mutable_job() = JobToProto(*job);
          unary.FinishChange(*request, absl::StrCat("job ", request->job_id()), job.status());
        });
  });
  return unary.reactor();
}

grpc::ServerUnaryReactor* JobServiceImpl::Logs(grpc::CallbackServerContext* call,
                                               const v1::LogsRequest* request,
                                               v1::LogsResponse* response) {
  const UnaryCall unary(context_, "JobService.Logs", call->DefaultReactor());
  unary.FinishOnReader(
      [this, request, response] { return FillLogs(context_.store, *request, response); });
  return unary.reactor();
}

}  // namespace param
