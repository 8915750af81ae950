// paramctl result compare

#include "client/output/compare.h"

#include <sys/stat.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cmd/job_stream.h"
#include "client/cmd/job_views.h"
#include "client/cmd/result_commands.h"
#include "client/output/csv_read.h"
#include "proto/base/file.h"
#include "proto/base/status.h"
#include "proto/convert/json.h"
#include "proto/convert/json_read.h"

namespace param {
namespace {

bool IsFile(const std::string& path) {
  struct stat facts = {};
  return ::stat(path.c_str(), &facts) == 0;
}

// A job's id is asked of the coordinator unless a file has that name.
absl::StatusOr<v1::GetJobResponse> Load(Context& context, const std::string& what) {
  if (absl::StartsWith(what, "j-") && !IsFile(what)) return FetchJob(context, what);
  absl::StatusOr<std::string> text = ReadFile(what);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        " is neither a job's id (j-...) nor a file that can be read: ", text.status().message()));
  }
  const bool json = absl::StartsWith(absl::StripLeadingAsciiWhitespace(*text), "{");
  absl::StatusOr<v1::GetJobResponse> job = json ? ReadJobDocument(*text) : ReadCaseCsv(*text);
  if (!job.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", job.status().message(),
                     "; a file is what \"paramctl result export JOB\" writes, as csv or json"));
  }
  return job;
}

// Nothing without the flag.
absl::StatusOr<std::optional<double>> FailOn(const Context& context) {
  if (!context.args.Has("fail-on")) return std::optional<double>();
  std::string text = context.args.Text("fail-on");
  if (absl::EndsWith(text, "%")) text.pop_back();
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || end != text.data() + text.size() || !(percent >= 0) ||
      percent > 1e6) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fail-on: \"", context.args.Text("fail-on"), "\" is no percentage"));
  }
  return std::optional<double>(percent);
}

void PrintOnly(const std::vector<const v1::CaseResult*>& cases, absl::string_view side,
               std::ostream& out) {
  for (const v1::CaseResult* result : cases) {
    out << "only in " << side << ": " << SafeText(result->case_id()) << "\n";
  }
}

void PrintText(Context& context, const v1::GetJobResponse& a, const v1::GetJobResponse& b,
               const Comparison& comparison) {
  std::ostream& out = context.io.out;
  out << "A: " << SafeText(SideText(a.job())) << "\nB: " << SafeText(SideText(b.job())) << "\n\n";
  if (!comparison.both.empty()) {
    RenderText(ComparisonTable(a, comparison), context.text_options(), out);
    out << "\n";
  }
  PrintOnly(comparison.only_a, "A", out);
  PrintOnly(comparison.only_b, "B", out);
  if (context.args.IsOn("plot")) PrintPlots(context, a, b);
}

void PrintComparison(Context& context, const v1::GetJobResponse& a, const v1::GetJobResponse& b,
                     const Comparison& comparison) {
  switch (context.format) {
    case Format::kText:
    case Format::kWide:
      PrintText(context, a, b, comparison);
      break;
    case Format::kJson:
      context.io.out << JsonText(ComparisonJson(a, b, comparison));
      break;
    case Format::kJsonl:
      for (const ComparedCase& one : comparison.both) {
        context.io.out << JsonLine(ComparedCaseJson(one));
      }
      break;
    case Format::kCsv:
      RenderCsv(ComparisonTable(a, comparison), context.io.out);
      break;
  }
  context.io.out << std::flush;
}

absl::StatusOr<ExitCode> Compare(Context& context) {
  PARAM_ASSIGN_OR_RETURN(const std::optional<double> fail_on, FailOn(context));
  if (context.args.IsOn("plot") && !context.is_text()) {
    return absl::InvalidArgumentError("--plot is a drawing for people: leave -o out");
  }
  PARAM_ASSIGN_OR_RETURN(const v1::GetJobResponse a, Load(context, context.args.words()[0]));
  PARAM_ASSIGN_OR_RETURN(const v1::GetJobResponse b, Load(context, context.args.words()[1]));
  PARAM_ASSIGN_OR_RETURN(const Comparison comparison, CompareJobs(a, b));
  PrintComparison(context, a, b, comparison);
  if (comparison.both.empty()) Hint(context, "the two have no case in common");
  if (!fail_on.has_value()) return ExitCode::kOk;
  const int slower = CountSlower(comparison, *fail_on);
  if (slower == 0) return ExitCode::kOk;
  context.io.err << "error: B is slower by more than " << *fail_on
                 << " % beyond noise, or has no time, "
                 << "in " << slower << " of " << comparison.both.size() << " cases\n";
  return ExitCode::kThreshold;
}

ExitCode RunCompare(Context& context) {
  const absl::StatusOr<ExitCode> code = Compare(context);
  return code.ok() ? *code : Fail(context, code.status());
}

}  // namespace

Command CompareCommand() {
  Command command;
  command.path = {"result", "compare"};
  command.summary = "Compare the times of two jobs, case by case";
  command.arguments = "A B";
  command.min_words = command.max_words = 2;
  command.description =
      "A and B are jobs, or files that \"result export\" or -o json wrote. Cases are the same when "
      "their parameters are, whatever nodes and backend ran them. B is faster or slower where the "
      "95 % intervals of the two medians lie apart; a single number, as imported means are, has no "
      "interval, and --fail-on goes by the percentage alone.";
  command.examples = {"paramctl result compare j-4k7q2mzd6b j-7h2wq5xk3a",
                      "paramctl result compare last-week.json j-7h2wq5xk3a --plot",
                      "paramctl result compare last-week.json j-7h2wq5xk3a --fail-on 5"};
  command.flags = {{.name = "fail-on",
                    .value = "PERCENT",
                    .help = "exit with 4 when a case of B is slower by more than this beyond "
                            "noise, or has no time where A has one"},
                   PlotFlag()};
  command.run = RunCompare;
  return command;
}

}  // namespace param
