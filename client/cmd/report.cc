// paramctl report

#include "absl/strings/str_cat.h"
#include "client/cmd/job_stream.h"
#include "client/cmd/write_file.h"
#include "client/output/html_report.h"

namespace param {
namespace {

ExitCode RunReport(Context& context) {
  if (!context.is_text()) {
    return Fail(context, absl::InvalidArgumentError(
                             "a report is HTML; for programs: paramctl job results JOB -o json"));
  }
  const std::string& job_id = context.args.words()[0];
  const std::string path = context.args.Text("html", absl::StrCat(job_id, ".html"));
  if (path.empty()) return Fail(context, absl::InvalidArgumentError("--html: no file is named"));
  const absl::StatusOr<v1::GetJobResponse> job = FetchJob(context, job_id);
  if (!job.ok()) return Fail(context, job.status());
  const std::string html = RenderHtmlReport(*job);
  if (path == "-") {
    context.io.out << html << std::flush;
    return ExitCode::kOk;
  }
  const absl::Status written = WriteWholeFile(path, html);
  if (!written.ok()) return Fail(context, written);
  Hint(context, absl::StrCat("wrote ", path));
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> ReportCommands() {
  Command report;
  report.path = {"report"};
  report.summary = "Write a job's results as one HTML file";
  report.arguments = "JOB";
  report.min_words = report.max_words = 1;
  report.description =
      "Facts, failure, curves over size, all cases, ranks against each other, environment and the "
      "command that repeats the job. The file needs no network and no other file; one that exists "
      "is replaced.";
  report.examples = {"paramctl report j-4k7q2mzd6b",
                     "paramctl report j-4k7q2mzd6b --html /tmp/sweep.html",
                     "paramctl report j-4k7q2mzd6b --html - | mail -s sweep me"};
  report.flags = {{.name = "html",
                   .value = "FILE",
                   .help = "write there, \"-\" for standard output (default: JOB.html)"}};
  report.run = RunReport;
  return {report};
}

}  // namespace param
