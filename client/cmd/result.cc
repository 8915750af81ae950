// paramctl result ...

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cmd/command.h"
#include "client/cmd/job_stream.h"
#include "client/cmd/result_commands.h"
#include "client/cmd/write_file.h"
#include "client/output/job_table.h"
#include "proto/base/status.h"
#include "proto/convert/json.h"

namespace param {
namespace {

ExitCode RunList(Context& context) {
  v1::ListResultsRequest request;
  request.set_benchmark(context.args.Text("benchmark"));
  request.set_case_id(context.args.Text("case"));
  request.set_node(context.args.Text("node"));
  const absl::StatusOr<std::int64_t> limit = context.args.Int("limit", 100, 1, 100'000);
  if (!limit.ok()) return Fail(context, limit.status());
  request.set_limit(static_cast<std::int32_t>(*limit));
  const absl::StatusOr<v1::ListResultsResponse> response = context.connection->ListResults(request);
  if (!response.ok()) return Fail(context, response.status());
  if (context.format == Format::kJson || context.format == Format::kJsonl) {
    Json list = Json::array();
    for (const v1::ResultRow& row : response->results()) {
      if (context.format == Format::kJsonl) context.io.out << JsonLine(ResultJson(row));
      list.push_back(ResultJson(row));
    }
    Json document = Json::object();
    document["results"] = std::move(list);
    if (context.format == Format::kJson) context.io.out << JsonText(document);
    return ExitCode::kOk;
  }
  const std::vector<v1::ResultRow> rows(response->results().begin(), response->results().end());
  PrintTable(context, ResultsTable(rows, context.io.clock.Wall()), "results");
  return ExitCode::kOk;
}

absl::StatusOr<std::vector<v1::SampleBlob>> FetchSamples(Context& context,
                                                         const std::string& job_id) {
  std::vector<v1::SampleBlob> blobs;
  PARAM_RETURN_IF_ERROR(context.connection->Samples(
      job_id, [&blobs](const v1::SampleBlob& blob) { blobs.push_back(blob); }));
  return blobs;
}

void WriteSamples(Format format, const v1::GetJobResponse& job,
                  const std::vector<v1::SampleBlob>& blobs, std::ostream& out) {
  if (format == Format::kCsv) {
    RenderCsv(SamplesTable(job, blobs), out);
    return;
  }
  Json document = JobDocument(job);
  Json samples = Json::array();
  for (const v1::SampleBlob& blob : blobs) {
    if (format == Format::kJsonl) out << JsonLine(SamplesJson(blob));
    samples.push_back(SamplesJson(blob));
  }
  document["samples"] = std::move(samples);
  if (format == Format::kJson) out << JsonText(document);
}

void WriteCases(Format format, const v1::GetJobResponse& job, std::ostream& out) {
  if (format == Format::kCsv) {
    RenderCsv(CaseCsvTable(job.job(), ListCases(job)), out);
  } else if (format == Format::kJson) {
    out << JsonText(JobDocument(job));
  } else {
    for (const v1::CaseResult& result : job.cases()) out << CaseLineOfJsonl(job.job(), result);
  }
}

ExitCode RunExport(Context& context) {
  const std::string& job_id = context.args.words()[0];
  const absl::StatusOr<v1::GetJobResponse> job = FetchJob(context, job_id);
  if (!job.ok()) return Fail(context, job.status());
  const Format format = context.is_text() ? Format::kCsv : context.format;
  std::ostringstream text;
  if (context.args.IsOn("samples")) {
    const auto blobs = FetchSamples(context, job_id);
    if (!blobs.ok()) return Fail(context, blobs.status());
    WriteSamples(format, *job, *blobs, text);
  } else {
    WriteCases(format, *job, text);
  }
  if (!context.args.Has("file")) {
    context.io.out << text.str();
    return ExitCode::kOk;
  }
  const absl::Status written = WriteWholeFile(context.args.Text("file"), text.str());
  if (!written.ok()) return Fail(context, written);
  Hint(context, absl::StrCat("wrote ", context.args.Text("file")));
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> ResultCommands() {
  Command list;
  list.path = {"result", "list"};
  list.summary = "List the cases of finished jobs, newest first";
  list.examples = {"paramctl result list --benchmark gemm",
                   "paramctl result list --case gemm:v1:k=2048,m=2048,n=2048 -o json"};
  list.flags = {{.name = "benchmark", .value = "BENCH", .help = "only of this benchmark"},
                {.name = "case", .value = "CASE", .help = "only of this case"},
                {.name = "node", .value = "NAME", .help = "only of jobs that ran on this node"},
                {.name = "limit", .value = "N", .help = "how many at most (default: 100)"}};
  list.run = RunList;
  Command export_command;
  export_command.path = {"result", "export"};
  export_command.summary = "Write the results of a job for other programs";
  export_command.arguments = "JOB";
  export_command.min_words = export_command.max_words = 1;
  export_command.description =
      "The format is that of -o: csv (the default here), json or jsonl; base units, all digits.";
  export_command.examples = {
      "paramctl result export j-4k7q2mzd6b > job.csv",
      "paramctl result export j-4k7q2mzd6b --samples -o json --file job.json"};
  export_command.flags = {
      {.name = "samples", .value = "", .help = "every sample of every rank, not the summaries"},
      {.name = "file", .value = "PATH", .help = "write there instead of standard output"}};
  export_command.run = RunExport;
  return {list, CompareCommand(), export_command, ImportCommand()};
}

}  // namespace param
