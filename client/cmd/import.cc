// paramctl result import

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cmd/job_stream.h"
#include "client/cmd/result_commands.h"
#include "client/import/importer.h"
#include "proto/base/file.h"
#include "proto/base/status.h"

namespace param {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

absl::StatusOr<std::string> ReadText(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path == "-" ? "/dev/stdin" : path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", text.status().message()));
  }
  if (text->size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", text->size(), " bytes, at most ", kMaxBytes, " are read"));
  }
  return text;
}

absl::StatusOr<v1::GetJobResponse> Import(Context& context) {
  const std::string& path = context.args.words()[0];
  ImportHints hints;
  PARAM_ASSIGN_OR_RETURN(const std::int64_t ranks, context.args.Int("ranks", 0, 2, 10'000'000));
  hints.ranks = static_cast<int>(ranks);
  hints.operation = context.args.Text("op");
  PARAM_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  PARAM_ASSIGN_OR_RETURN(Imported imported,
                         ImportResults(context.args.Text("format", "auto"),
                                       path == "-" ? "standard input" : path, text, hints));
  for (const std::string& note : imported.notes) Hint(context, SafeText(note));
  imported.request.mutable_principal()->set_name("local");
  imported.request.set_request_id(MakeToken(context.io.random));
  imported.request.set_name(context.args.Text("name"));
  PARAM_ASSIGN_OR_RETURN(const v1::ImportResponse response,
                         context.connection->Import(imported.request));
  Hint(context, absl::StrCat("imported ", imported.request.cases_size(), " cases of ",
                             imported.request.format(), " as job ", response.job_id()));
  return FetchJob(context, response.job_id());
}

ExitCode RunImport(Context& context) {
  const absl::StatusOr<v1::GetJobResponse> job = Import(context);
  if (!job.ok()) return Fail(context, job.status());
  PrintJob(context, *job);
  return ExitCodeOf(job->job().state());
}

}  // namespace

Command ImportCommand() {
  std::vector<std::string> formats = ImportFormats();
  formats.insert(formats.begin(), "auto");
  Command command;
  command.path = {"result", "import"};
  command.summary = "Add results of another tool to the history";
  command.arguments = "FILE";
  command.min_words = command.max_words = 1;
  command.description = absl::StrCat(
      "Formats: ",
      absl::StrJoin(AllImporters(), "; ",
                    [](std::string* out, const Importer& importer) {
                      absl::StrAppend(out, importer.format, ", ", importer.summary);
                    }),
      ". The results become a job that has ended, of benchmark collective, with the source "
      "\"import:FORMAT\"; lists, exports and comparisons treat it like any other. A tool that "
      "gives "
      "means alone gives one number per case: \"statistic\" in the case's info says so. FILE may "
      "be "
      "\"-\".");
  command.examples = {"paramctl result import all_reduce.txt",
                      "paramctl result import nccl.json --name \"rack 7, 12 March\"",
                      "paramctl result import osu_alltoall.txt --format osu --ranks 64",
                      "mpirun -np 8 all_reduce_perf -b 8 -e 1G -f 2 | paramctl result import -"};
  command.flags = {{.name = "format",
                    .value = "FORMAT",
                    .help = "what the file is (default: auto, what it looks like)",
                    .choices = std::move(formats)},
                   {.name = "name", .value = "TEXT", .help = "a name of your own, shown in lists"},
                   {.name = "ranks",
                    .value = "N",
                    .help = "how many ranks ran, where the file does not say (OSU never does)"},
                   {.name = "op",
                    .value = "OP",
                    .help = "the operation, where the file does not say: all_reduce, ..."}};
  command.run = RunImport;
  return command;
}

}  // namespace param
