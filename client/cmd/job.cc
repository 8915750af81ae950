// paramctl job ...

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cmd/command.h"
#include "client/cmd/job_stream.h"
#include "client/cmd/job_views.h"
#include "client/output/job_report.h"
#include "client/output/job_table.h"
#include "proto/base/status.h"
#include "proto/convert/json.h"
#include "proto/convert/names.h"

namespace param {
namespace {

constexpr std::int64_t kMaxRows = 100'000;

// {"jobs": [...]} or one job per line.
void PrintJobsJson(const Context& context, const std::vector<v1::Job>& jobs) {
  Json list = Json::array();
  for (const v1::Job& job : jobs) {
    if (context.format == Format::kJsonl) context.io.out << JsonLine(JobJson(job));
    list.push_back(JobJson(job));
  }
  if (context.format == Format::kJsonl) return;
  Json document = Json::object();
  document["jobs"] = std::move(list);
  context.io.out << JsonText(document);
}

absl::StatusOr<v1::ListJobsRequest> ListRequest(const Context& context) {
  v1::ListJobsRequest request;
  for (const std::string& name : context.args.All("state")) {
    PARAM_ASSIGN_OR_RETURN(const v1::JobState state, WireJobStateFromName(name), "--state");
    request.add_states(state);
  }
  request.set_benchmark(context.args.Text("benchmark"));
  if (!request.benchmark().empty()) {
    PARAM_RETURN_IF_ERROR(FindBenchmark(request.benchmark()).status(), "--benchmark");
  }
  PARAM_ASSIGN_OR_RETURN(const std::int64_t limit, context.args.Int("limit", 50, 1, kMaxRows));
  request.set_limit(static_cast<std::int32_t>(limit));
  return request;
}

ExitCode RunList(Context& context) {
  const absl::StatusOr<v1::ListJobsRequest> request = ListRequest(context);
  if (!request.ok()) return Fail(context, request.status());
  const absl::StatusOr<v1::ListJobsResponse> response = context.connection->ListJobs(*request);
  if (!response.ok()) return Fail(context, response.status());
  const std::vector<v1::Job> jobs(response->jobs().begin(), response->jobs().end());
  if (context.format == Format::kJson || context.format == Format::kJsonl) {
    PrintJobsJson(context, jobs);
    return ExitCode::kOk;
  }
  PrintTable(context, JobsTable(jobs, context.io.clock.Wall()), "jobs");
  if (jobs.empty()) Hint(context, "no jobs; start one: paramctl submit gemm");
  return ExitCode::kOk;
}

ExitCode RunShow(Context& context) {
  const absl::StatusOr<v1::GetJobResponse> response = FetchJob(context, context.args.words()[0]);
  if (!response.ok()) return Fail(context, response.status());
  if (context.is_text()) {
    PrintJobFacts(*response, context.text_options(), context.io.out);
  } else if (context.format == Format::kCsv) {
    PrintTable(context, JobsTable({response->job()}, context.io.clock.Wall()), "jobs");
  } else {
    PrintJob(context, *response);
  }
  return ExitCode::kOk;
}

ExitCode RunResults(Context& context) {
  const absl::Status flags = CheckViewFlags(context);
  if (!flags.ok()) return Fail(context, flags);
  const absl::StatusOr<v1::GetJobResponse> response = FetchJob(context, context.args.words()[0]);
  if (!response.ok()) return Fail(context, response.status());
  const absl::Status views =
      CheckViews(context, response->job().spec().benchmark(), ListCases(*response));
  if (!views.ok()) return Fail(context, views);
  PrintJob(context, *response);
  if (!IsFinalState(response->job().state())) {
    Hint(context,
         absl::StrCat("the job goes on; watch it: paramctl job watch ", response->job().job_id()));
  }
  return ExitCode::kOk;
}

ExitCode RunWatch(Context& context) {
  v1::GetJobRequest request;
  request.set_job_id(context.args.words()[0]);
  const absl::StatusOr<v1::GetJobResponse> response = context.connection->GetJob(request);
  if (!response.ok()) return Fail(context, response.status());
  return FollowJob(context, response->job());
}

ExitCode RunCancel(Context& context) {
  v1::CancelRequest request;
  request.mutable_principal()->set_name("local");
  request.set_request_id(MakeToken(context.io.random));
  request.set_job_id(context.args.words()[0]);
  const absl::StatusOr<v1::CancelResponse> response = context.connection->Cancel(request);
  if (!response.ok()) return Fail(context, response.status());
  const v1::Job& job = response->job();
  if (context.format == Format::kJson || context.format == Format::kJsonl) {
    Json document = Json::object();
    document["job"] = JobJson(job);
    context.io.out << (context.format == Format::kJson ? JsonText(document) : JsonLine(document));
  } else {
    PrintTable(context, JobsTable({job}, context.io.clock.Wall()), "jobs");
  }
  if (!IsFinalState(job.state())) {
    Hint(context, "its workers are being stopped");
  } else if (job.state() != v1::CANCELLED) {
    Hint(context, absl::StrCat("it had ended before: ", WireJobStateName(job.state())));
  }
  return ExitCode::kOk;
}

ExitCode RunLogs(Context& context) {
  v1::LogsRequest request;
  request.set_job_id(context.args.words()[0]);
  const absl::StatusOr<std::int64_t> rank = context.args.Int("rank", -1, 0, 1 << 30);
  if (!rank.ok()) return Fail(context, rank.status());
  const absl::StatusOr<std::int64_t> limit = context.args.Int("limit", 1000, 1, kMaxRows);
  if (!limit.ok()) return Fail(context, limit.status());
  request.set_rank(static_cast<std::int32_t>(*rank));
  request.set_limit(static_cast<std::int32_t>(*limit));
  const absl::StatusOr<v1::LogsResponse> response = context.connection->Logs(request);
  if (!response.ok()) return Fail(context, response.status());
  if (context.format == Format::kJson || context.format == Format::kJsonl) {
    Json lines = Json::array();
    for (const v1::LogRow& row : response->lines()) {
      if (context.format == Format::kJsonl) context.io.out << JsonLine(LogRowJson(row));
      lines.push_back(LogRowJson(row));
    }
    Json document = Json::object();
    document["lines"] = std::move(lines);
    if (context.format == Format::kJson) context.io.out << JsonText(document);
    return ExitCode::kOk;
  }
  if (response->lines().empty()) {
    Hint(context, "no lines");
    if (context.is_text()) return ExitCode::kOk;
  }
  PrintTable(context, LogsTable({response->lines().begin(), response->lines().end()}), "lines");
  return ExitCode::kOk;
}

Command JobCommand(const char* verb, const char* summary, ExitCode (*run)(Context&)) {
  Command command;
  command.path = {"job", verb};
  command.summary = summary;
  command.arguments = "JOB";
  command.min_words = command.max_words = 1;
  command.examples = {absl::StrCat("paramctl job ", verb, " j-4k7q2mzd6b")};
  command.run = run;
  return command;
}

}  // namespace

std::vector<Command> JobCommands() {
  Command list = JobCommand("list", "List jobs, newest first", RunList);
  list.arguments = "";
  list.min_words = list.max_words = 0;
  list.examples = {"paramctl job list", "paramctl job list --state RUNNING --state QUEUED",
                   "paramctl job list -o json | jq -r '.jobs[].id'"};
  list.flags = {{.name = "state",
                 .value = "STATE",
                 .help = "only jobs in this state: QUEUED, STARTING, RUNNING, SUCCEEDED, FAILED, "
                         "CANCELLED, TIMED_OUT",
                 .repeat = true},
                {.name = "benchmark", .value = "BENCH", .help = "only jobs of this benchmark"},
                {.name = "limit", .value = "N", .help = "how many at most (default: 50)"}};
  Command show = JobCommand("show", "Show where a job stands, why, and where it ran", RunShow);
  show.examples.push_back("paramctl job show j-4k7q2mzd6b -o json");
  Command watch = JobCommand("watch", "Follow a job to its end", RunWatch);
  watch.description =
      "Shows what has ended so far and follows the rest, as submit does; the exit code is the "
      "job's. Ctrl-C detaches.";
  Command cancel = JobCommand("cancel", "Stop a job", RunCancel);
  Command logs = JobCommand("logs", "Show what a job's ranks logged", RunLogs);
  logs.examples.push_back("paramctl job logs j-4k7q2mzd6b --rank 3 --limit 50");
  logs.flags = {{.name = "rank", .value = "R", .help = "only this rank (default: all)"},
                {.name = "limit", .value = "N", .help = "the last N lines (default: 1000)"}};
  Command results = JobCommand("results", "Show the results of a job", RunResults);
  results.examples.push_back("paramctl job results j-4k7q2mzd6b -o csv > job.csv");
  results.examples.push_back("paramctl job results j-4k7q2mzd6b --convention nccl-tests");
  results.flags = ViewFlags();
  return {list, show, watch, cancel, logs, results};
}

}  // namespace param
