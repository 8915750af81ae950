// paramctl result ...

#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cmd/command.h"
#include "client/cmd/job_stream.h"
#include "client/cmd/result_commands.h"
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

// Writes samples as they come, a blob at a time: a job's may be larger than the memory. The bytes
// are those of the whole document.
class SampleWriter {
 public:
  SampleWriter(Format format, const v1::GetJobResponse& job, std::ostream& out)
      : format_(format), job_(job), out_(out) {}

  void Begin() {
    if (format_ == Format::kCsv) {
      RenderCsv(SamplesTable(job_, {}), out_);
    } else if (format_ == Format::kJson) {
      Json document = JobDocument(job_);
      document["samples"] = Json::array();  // the last key
      const std::string text = JsonText(document);
      const std::size_t end = text.rfind(']');
      out_ << text.substr(0, end);
      tail_ = text.substr(end);
    }
  }
  void Add(const v1::SampleBlob& blob) {
    if (format_ == Format::kCsv) {
      RenderCsv(SamplesTable(job_, {blob}), out_, false);
    } else if (format_ == Format::kJsonl) {
      out_ << JsonLine(SamplesJson(blob));
    } else {
      std::string text = JsonText(SamplesJson(blob));
      text.pop_back();
      out_ << (is_first_ ? "\n    " : ",\n    ") << absl::StrReplaceAll(text, {{"\n", "\n    "}});
    }
    is_first_ = false;
  }
  void End() {
    if (format_ == Format::kJson) out_ << (is_first_ ? "" : "\n  ") << tail_;
  }

 private:
  const Format format_;
  const v1::GetJobResponse& job_;
  std::ostream& out_;
  std::string tail_;
  bool is_first_ = true;
};

absl::Status WriteSamples(Context& context, Format format, const v1::GetJobResponse& job,
                          std::ostream& out) {
  SampleWriter writer(format, job, out);
  writer.Begin();
  PARAM_RETURN_IF_ERROR(context.connection->Samples(
      job.job().job_id(), [&writer](const v1::SampleBlob& blob) { writer.Add(blob); }));
  writer.End();
  return absl::OkStatus();
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

absl::Status Export(Context& context, const v1::GetJobResponse& job, std::ostream& out) {
  const Format format = context.is_text() ? Format::kCsv : context.format;
  if (context.args.IsOn("samples")) return WriteSamples(context, format, job, out);
  WriteCases(format, job, out);
  return absl::OkStatus();
}

// What was written before an error stays, and the error says that it is not all.
absl::Status ExportToFile(Context& context, const v1::GetJobResponse& job,
                          const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file.good()) return absl::InternalError(absl::StrCat("cannot write ", path));
  PARAM_RETURN_IF_ERROR(Export(context, job, file), path, " is incomplete");
  file.flush();
  if (!file.good()) return absl::InternalError(absl::StrCat("cannot write all of ", path));
  return absl::OkStatus();
}

ExitCode RunExport(Context& context) {
  const std::string& job_id = context.args.words()[0];
  const absl::StatusOr<v1::GetJobResponse> job = FetchJob(context, job_id);
  if (!job.ok()) return Fail(context, job.status());
  const bool to_file = context.args.Has("file");
  const absl::Status written = to_file ? ExportToFile(context, *job, context.args.Text("file"))
                                       : Export(context, *job, context.io.out);
  if (!written.ok()) return Fail(context, written);
  if (to_file) Hint(context, absl::StrCat("wrote ", context.args.Text("file")));
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
