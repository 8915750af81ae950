// paramctl submit BENCH: generic over the catalogue.

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cmd/command.h"
#include "client/cmd/job_stream.h"
#include "client/cmd/job_views.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/catalog/cases.h"
#include "proto/convert/names.h"
#include "proto/convert/values.h"

namespace param {
namespace {

constexpr std::int64_t kMaxNodes = 1'000'000;

// The benchmark's parameters as typed.
GivenParams GivenOf(const Context& context) {
  GivenParams given;
  for (const ParamSpec* spec : AllParams(*context.benchmark)) {
    const std::string flag = FlagName(spec->name).substr(2);
    if (context.args.Has(flag)) given.emplace(spec->name, context.args.Text(flag));
  }
  if (context.args.Has("set")) given.emplace("set", context.args.Text("set"));
  return given;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::Status CheckPhase(const std::string& phase) {
  const std::vector<std::string> names = PhaseNames();
  if (std::find(names.begin(), names.end(), phase) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--deadline: \"", phase, "\" is not one of ",
                                                 absl::StrJoin(names, ", "),
                                                 DidYouMean(phase, names)));
}

absl::Status AddDeadlines(const Context& context, v1::JobSpec* spec) {
  PARAM_ASSIGN_OR_RETURN(const auto pairs, context.args.Pairs("deadline"));
  for (const auto& [phase, text] : pairs) {
    PARAM_RETURN_IF_ERROR(CheckPhase(phase));
    PARAM_ASSIGN_OR_RETURN(const absl::Duration deadline, ParseDuration(text),
                           "--deadline: ", phase);
    (*spec->mutable_phase_deadlines_ns())[phase] = absl::ToInt64Nanoseconds(deadline);
  }
  return absl::OkStatus();
}

// What --convention cannot say is known before the job runs.
absl::Status CheckPlannedViews(const Context& context, const std::vector<Case>& planned) {
  PARAM_RETURN_IF_ERROR(CheckViewFlags(context));
  std::vector<v1::CaseResult> cases(planned.size());
  CaseList list;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    cases[i].set_case_index(static_cast<int>(i));
    ParamsToProto(planned[i].params, cases[i].mutable_params());
    list.push_back(&cases[i]);
  }
  return CheckViews(context, context.benchmark->id, list);
}

absl::StatusOr<v1::JobSpec> SpecOfArguments(const Context& context) {
  const Arguments& args = context.args;
  v1::JobSpec spec;
  spec.set_benchmark(std::string(context.benchmark->id));
  const std::vector<std::string> names = args.All("node");
  PARAM_ASSIGN_OR_RETURN(
      const std::int64_t nodes,
      args.Int("nodes", names.empty() ? 1 : static_cast<std::int64_t>(names.size()), 1, kMaxNodes));
  spec.set_nodes(static_cast<std::int32_t>(nodes));
  PARAM_ASSIGN_OR_RETURN(const std::int64_t ranks, args.Int("ranks-per-node", 0, 1, 4096));
  spec.set_ranks_per_node(static_cast<std::int32_t>(ranks));
  spec.set_backend(args.Text("backend", "auto"));
  for (const std::string& name : names) spec.add_node_names(name);
  PARAM_ASSIGN_OR_RETURN(const auto selector, args.Pairs("selector"));
  spec.mutable_selector()->insert(selector.begin(), selector.end());
  PARAM_ASSIGN_OR_RETURN(const std::int64_t priority, args.Int("priority", 0, -1000, 1000));
  spec.set_priority(static_cast<std::int32_t>(priority));
  PARAM_ASSIGN_OR_RETURN(const absl::Duration timeout,
                         args.Duration("timeout", absl::ZeroDuration()));
  spec.set_timeout_ns(absl::ToInt64Nanoseconds(timeout));
  PARAM_ASSIGN_OR_RETURN(const std::int64_t retries, args.Int("retries", 0, 0, 100));
  spec.set_retries(static_cast<std::int32_t>(retries));
  spec.set_name(args.Text("name"));
  spec.set_no_wait(args.IsOn("no-wait"));
  spec.set_source("cli");
  spec.set_interface(args.Text("interface"));
  PARAM_RETURN_IF_ERROR(AddDeadlines(context, &spec));
  if (args.Has("fake-script")) {
    PARAM_ASSIGN_OR_RETURN(*spec.mutable_fake_script(), ReadFile(args.Text("fake-script")),
                           "--fake-script");
  }
  const GivenParams given = GivenOf(context);
  // The coordinator checks the same with the same code; here it costs no round trip.
  PARAM_ASSIGN_OR_RETURN(const std::vector<Case> planned, ExpandCases(*context.benchmark, given));
  PARAM_RETURN_IF_ERROR(CheckPlannedViews(context, planned));
  PARAM_RETURN_IF_ERROR(ParseInjection(args.Text("inject")).status());
  for (const auto& [name, text] : given) (*spec.mutable_params())[name] = text;
  return spec;
}

void PrintDetached(Context& context, const v1::Job& job) {
  v1::GetJobResponse response;
  *response.mutable_job() = job;
  if (context.format == Format::kText || context.format == Format::kWide) {
    context.io.out << job.job_id() << "\n";
    Hint(context, absl::StrCat("watch it: paramctl job watch ", job.job_id(),
                               "; its results: paramctl job results ", job.job_id()));
  } else if (context.format == Format::kCsv) {
    context.io.out << "job_id\n" << job.job_id() << "\n";
  } else {
    PrintJob(context, response);
  }
}

ExitCode RunSubmit(Context& context) {
  absl::StatusOr<v1::JobSpec> spec = SpecOfArguments(context);
  if (!spec.ok()) return Fail(context, spec.status());
  v1::SubmitRequest request;
  request.mutable_principal()->set_name("local");
  request.set_request_id(MakeToken(context.io.random));
  *request.mutable_spec() = *std::move(spec);
  const absl::StatusOr<v1::SubmitResponse> response = context.connection->Submit(request);
  if (!response.ok()) return Fail(context, response.status());
  if (context.args.IsOn("detach")) {
    PrintDetached(context, response->job());
    return ExitCode::kOk;
  }
  return FollowJob(context, response->job());
}

std::vector<Flag> JobFlags() {
  std::vector<Flag> flags = {
      {.name = "nodes", .value = "N", .help = "how many nodes (default: 1, or as many as --node)"},
      {.name = "ranks-per-node",
       .value = "R",
       .help = "workers on each node (default: the backend's: 1 on cpu, one per GPU)"},
      {.name = "backend",
       .value = "NAME",
       .help = "DEVICE, COMM or DEVICE+COMM (default: auto, the best that all nodes can use)"},
      {.name = "node", .value = "NAME", .help = "run on this node", .repeat = true},
      {.name = "selector",
       .value = "KEY=VALUE",
       .help = "only on nodes with this label",
       .repeat = true},
      {.name = "priority", .value = "P", .help = "higher goes first (default: 0)"},
      {.name = "timeout",
       .value = "DURATION",
       .help = "stop the job this long after submit, queueing included (default: none)"},
      {.name = "retries",
       .value = "K",
       .help = "repeat an attempt that was lost to a dead agent (default: 0)"},
      {.name = "name", .value = "TEXT", .help = "a name of your own, shown in lists"},
      {.name = "detach", .value = "", .help = "print the job's id and return at once"},
      {.name = "interface",
       .value = "NIC",
       .help = "what traffic between ranks goes over, as eth0 or 10.0.0.0/24 (default: chosen)"},
      {.name = "no-wait", .value = "", .help = "reject the job if it cannot start now"},
      {.name = "deadline",
       .value = "PHASE=DURATION",
       .help = absl::StrCat("how long a phase may take: ", absl::StrJoin(PhaseNames(), ", ")),
       .repeat = true},
      {.name = "fake-script",
       .value = "FILE",
       .help = "what the fake backend does, for tests of the service itself"},
  };
  for (Flag& flag : ViewFlags()) flags.push_back(std::move(flag));
  return flags;
}

}  // namespace

std::vector<Command> SubmitCommands() {
  return {{
      .path = {"submit"},
      .summary = "Run a benchmark and show its results",
      .arguments = "BENCH",
      .min_words = 1,
      .max_words = 1,
      .description =
          "Rows appear as cases finish; a table ends it. Ctrl-C detaches and leaves the job "
          "running. \"paramctl submit BENCH --help\" shows the parameters of a benchmark, "
          "\"paramctl bench list\" the benchmarks.",
      .examples = {"paramctl submit gemm --nodes 4",
                   "paramctl submit gemm --m 512:4096:x2 --dtype f32,bf16 -o csv > gemm.csv",
                   "paramctl submit gemm --set smoke --node n1 --node n2 --timeout 5m",
                   "paramctl submit collective --nodes 4 --size 8:64M:x2 --convention nccl-tests",
                   "paramctl submit gemm --nodes 2 --detach"},
      .flags = JobFlags(),
      .run = RunSubmit,
  }};
}

}  // namespace param
