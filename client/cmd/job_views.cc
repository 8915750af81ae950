#include "client/cmd/job_views.h"

#include "absl/strings/str_cat.h"
#include "client/output/convention.h"
#include "client/output/curves.h"
#include "client/output/job_report.h"
#include "client/output/plot.h"
#include "proto/base/status.h"
#include "proto/convert/names.h"

namespace param {
namespace {

// Null without the flag; its name is one of the choices.
std::optional<Convention> ConventionOf(const Context& context) {
  if (!context.args.Has("convention")) return std::nullopt;
  const absl::StatusOr<Convention> convention = ConventionFromName(context.args.Text("convention"));
  return convention.ok() ? std::optional<Convention>(*convention) : std::nullopt;
}

void PrintConvention(Context& context, Convention convention, const v1::GetJobResponse& response) {
  const absl::StatusOr<ConventionText> text =
      RenderConvention(convention, response, context.format == Format::kWide);
  if (!text.ok()) {
    Fail(context, text.status());
    return;
  }
  context.io.out << text->text << std::flush;
  for (const std::string& note : text->notes) Hint(context, SafeText(note));
  // The tool's table has no place for it, and parsers none for our words.
  const v1::Job& job = response.job();
  if (job.has_failure() && !job.failure().code().empty()) {
    context.io.err << "failure: " << FailureText(job.failure()) << "\n";
  } else if (job.state() == v1::FAILED || job.state() == v1::TIMED_OUT) {
    context.io.err << WireJobStateName(job.state()) << ": " << SafeText(job.reason()) << "\n";
  }
}

PlotOptions PlotOptionsOf(const Context& context) {
  const TerminalFacts& facts = context.io.out_facts;
  PlotOptions options;
  if (facts.columns > 0) options.width = facts.columns;
  options.utf8 = facts.is_tty && facts.utf8;
  options.color = context.color;
  return options;
}

void PrintCharts(Context& context, const std::vector<Chart>& charts) {
  if (charts.empty()) Hint(context, "nothing to draw: no case has a time");
  for (const Chart& chart : charts) {
    context.io.out << "\n" << RenderPlot(chart, PlotOptionsOf(context));
  }
}

}  // namespace

std::vector<Flag> ViewFlags() {
  return {{.name = "convention",
           .value = "TOOL",
           .help = "print the table of this tool, column by column, instead of ours; -o wide adds "
                   "the columns of OSU's -f",
           .choices = ConventionNames()},
          PlotFlag()};
}

Flag PlotFlag() {
  return {.name = "plot",
          .value = "",
          .help = "draw time and bandwidth over size, one curve for each operation and type"};
}

absl::Status CheckViewFlags(const Context& context) {
  if (context.args.Has("convention") && !context.is_text()) {
    return absl::InvalidArgumentError(
        "--convention is text for parsers of that tool's output: leave -o out, or give -o wide");
  }
  if (context.args.IsOn("plot") && (!context.is_text() || context.args.Has("convention"))) {
    return absl::InvalidArgumentError(
        "--plot is a drawing for people: leave -o and --convention out");
  }
  return absl::OkStatus();
}

absl::Status CheckViews(const Context& context, absl::string_view benchmark,
                        const CaseList& cases) {
  const std::optional<Convention> convention = ConventionOf(context);
  if (convention.has_value()) return CheckConvention(*convention, benchmark, cases);
  if (context.args.IsOn("plot") && benchmark != kCollective) {
    return absl::InvalidArgumentError(absl::StrCat("--plot draws a sweep over sizes, as \"",
                                                   kCollective, "\" makes; \"", benchmark,
                                                   "\" has none"));
  }
  return absl::OkStatus();
}

bool ReplacesReport(const Context& context) { return context.args.Has("convention"); }

void PrintViews(Context& context, const v1::GetJobResponse& response) {
  const std::optional<Convention> convention = ConventionOf(context);
  if (convention.has_value()) {
    PrintConvention(context, *convention, response);
    return;
  }
  PrintJobReport(response, context.text_options(), context.io.out);
  if (!context.args.IsOn("plot")) return;
  const absl::StatusOr<std::vector<Chart>> charts = ChartsOf(response);
  if (charts.ok()) PrintCharts(context, *charts);
}

void PrintPlots(Context& context, const v1::GetJobResponse& a, const v1::GetJobResponse& b) {
  const absl::StatusOr<std::vector<Chart>> charts_a = ChartsOf(a), charts_b = ChartsOf(b);
  if (!charts_a.ok() || !charts_b.ok()) {
    Hint(context,
         absl::StrCat("no plot: ", (charts_a.ok() ? charts_b : charts_a).status().message()));
    return;
  }
  PrintCharts(context, SideBySide(*charts_a, *charts_b));
}

}  // namespace param
