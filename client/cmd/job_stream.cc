#include "client/cmd/job_stream.h"

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "client/cmd/job_views.h"
#include "client/output/case_view.h"
#include "client/output/job_table.h"
#include "client/output/progress.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"
#include "proto/convert/json.h"
#include "proto/convert/names.h"
#include "proto/convert/values.h"

namespace param {
namespace {

// What is printed of a running job. Not thread safe.
class Follower {
 public:
  Follower(Context& context, const v1::Job& job)
      : context_(context),
        progress_(context.io.err, context.io.err_facts, context.quiet, context.io.clock),
        job_(job) {}

  void OnEvent(const v1::JobEvent& event) {
    if (event.has_job()) OnJob(event.job());
    if (event.has_case_done()) OnCase(event.case_done());
    if (event.has_progress()) {
      counters_ =
          absl::StrCat(event.progress().phase(), ", case ", event.progress().case_index() + 1, ", ",
                       event.progress().samples(), " samples");
    }
    ShowProgress();
  }

  void Note(const std::string& line) { progress_.Note(line); }
  void ShowProgress() {
    const std::string reason = job_.reason().empty() ? "" : absl::StrCat(": ", job_.reason());
    std::string cases = absl::StrCat(job_.cases_done(), "/", job_.cases_total(), " cases");
    if (!counters_.empty() && job_.state() == v1::RUNNING) absl::StrAppend(&cases, ", ", counters_);
    const absl::Duration age =
        context_.io.clock.Wall() - absl::FromUnixNanos(job_.timeline().submitted());
    if (job_.timeline().submitted() > 0 && age > absl::ZeroDuration()) {
      absl::StrAppend(&cases, ", ", absl::ToInt64Seconds(age), " s");
    }
    progress_.Show(absl::StrCat("job ", job_.job_id(), " ", WireJobStateName(job_.state()), reason),
                   cases);
  }

  // Prints what the stream left out, and the end.
  void Finish(const v1::GetJobResponse& response) {
    progress_.Clear();
    job_ = response.job();
    if (context_.is_text() || context_.format == Format::kJson) {
      if (lines_printed_) context_.io.out << "\n";
      PrintJob(context_, response);
      return;
    }
    for (const v1::CaseResult& result : response.cases()) {
      if (result.status() != v1::CASE_STATUS_UNSPECIFIED) OnCase(result);
    }
    if (context_.format == Format::kCsv && seen_.empty()) {
      RenderCsv(CaseCsvTable(job_, {}), context_.io.out);
    }
    if (context_.format == Format::kJsonl) {
      Json last = Json::object();
      last["job"] = JobJson(job_);
      context_.io.out << JsonLine(last);
    }
    context_.io.out << std::flush;
  }

  void Clear() { progress_.Clear(); }

 private:
  void OnJob(const v1::Job& job) {
    if (job.attempt() > job_.attempt() && job_.attempt() > 0) {
      progress_.Note(absl::StrCat("attempt ", job.attempt(), " of job ", job.job_id(),
                                  ": the one before was lost"));
      seen_.clear();
    }
    counters_.clear();
    job_ = job;
  }

  void OnCase(const v1::CaseResult& result) {
    if (!seen_.insert(result.case_index()).second) return;
    job_.set_cases_done(static_cast<int>(seen_.size()));
    std::ostream& out = context_.io.out;
    switch (context_.format) {
      case Format::kJson:
        return;
      case Format::kJsonl:
        out << CaseLineOfJsonl(job_, result) << std::flush;
        return;
      case Format::kCsv:
        RenderCsv(CaseCsvTable(job_, {&result}), out, !lines_printed_);
        lines_printed_ = true;
        out << std::flush;
        return;
      case Format::kText:
      case Format::kWide:
        break;
    }
    // The table says it all in a moment, or must stand alone.
    if (job_.cases_total() < 2 || ReplacesReport(context_)) return;
    progress_.Clear();
    out << CaseLine(job_, result, ShownNames(result), context_.color) << "\n" << std::flush;
    lines_printed_ = true;
  }

  // The parameters worth showing follow from all cases, which have not ended yet: they are made
  // from what was submitted, as the coordinator does.
  const std::vector<std::string>& ShownNames(const v1::CaseResult& result) {
    if (!shown_.empty()) return shown_;
    const BenchmarkSpec* bench = SpecOf(job_.spec().benchmark());
    std::vector<v1::CaseResult> planned;
    if (bench != nullptr) {
      const GivenParams given(job_.spec().params().begin(), job_.spec().params().end());
      const absl::StatusOr<std::vector<Case>> cases = ExpandCases(*bench, given);
      for (const Case& one : cases.ok() ? *cases : std::vector<Case>()) {
        ParamsToProto(one.params, planned.emplace_back().mutable_params());
      }
    }
    CaseList list;
    for (const v1::CaseResult& one : planned) list.push_back(&one);
    if (list.empty()) list.push_back(&result);
    shown_ = ShownParams(bench, list);
    return shown_;
  }

  Context& context_;
  Progress progress_;
  v1::Job job_;
  std::set<int> seen_;
  std::vector<std::string> shown_;
  std::string counters_;
  bool lines_printed_ = false;
};

ExitCode Detach(Context& context, const std::string& job_id) {
  context.io.err << "detached; job " << job_id << " goes on\n"
                 << "  watch it:  paramctl job watch " << job_id << "\n"
                 << "  cancel it: paramctl job cancel " << job_id << "\n"
                 << std::flush;
  return ExitCode::kOk;
}

}  // namespace

absl::StatusOr<v1::GetJobResponse> FetchJob(Context& context, const std::string& job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  request.set_with_cases(true);
  request.set_with_environment(true);
  return context.connection->GetJob(request);
}

std::string CaseLineOfJsonl(const v1::Job& job, const v1::CaseResult& result) {
  Json line = CaseJson(result);
  line["attempt"] = job.attempt();
  return JsonLine(line);
}

void PrintJob(Context& context, const v1::GetJobResponse& response) {
  std::ostream& out = context.io.out;
  switch (context.format) {
    case Format::kText:
    case Format::kWide:
      PrintViews(context, response);
      break;
    case Format::kJson:
      out << JsonText(JobDocument(response));
      break;
    case Format::kJsonl: {
      for (const v1::CaseResult& result : response.cases()) {
        out << CaseLineOfJsonl(response.job(), result);
      }
      Json last = Json::object();
      last["job"] = JobJson(response.job());
      out << JsonLine(last);
      break;
    }
    case Format::kCsv:
      RenderCsv(CaseCsvTable(response.job(), ListCases(response)), out);
      break;
  }
  out << std::flush;
}

ExitCode FollowJob(Context& context, const v1::Job& job) {
  Follower follower(context, job);
  context.io.interrupts.Arm();
  WatchCallbacks callbacks;
  callbacks.on_event = [&follower](const v1::JobEvent& event) { follower.OnEvent(event); };
  callbacks.on_note = [&follower](const std::string& line) { follower.Note(line); };
  callbacks.on_tick = [&follower] { follower.ShowProgress(); };
  callbacks.stop = [&context] { return context.io.interrupts.Raised() || !context.io.out.good(); };
  follower.ShowProgress();
  const absl::StatusOr<WatchEnd> end = context.connection->Watch(job.job_id(), callbacks);
  follower.Clear();
  if (!end.ok()) {
    Hint(context, absl::StrCat("job ", job.job_id(), " goes on if the coordinator does"));
    return Fail(context, end.status());
  }
  if (*end == WatchEnd::kInterrupted) return Detach(context, job.job_id());
  const absl::StatusOr<v1::GetJobResponse> response = FetchJob(context, job.job_id());
  if (!response.ok()) return Fail(context, response.status());
  follower.Finish(*response);
  if (IsFinalState(response->job().state())) return ExitCodeOf(response->job().state());
  return Fail(context, absl::UnavailableError(absl::StrCat(
                           "the coordinator stopped sending events of job ", job.job_id(),
                           " before it ended; watch it: paramctl job watch ", job.job_id())));
}

}  // namespace param
