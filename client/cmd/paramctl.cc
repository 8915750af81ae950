// One command line, from words to exit code.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cmd/command.h"
#include "client/cmd/help.h"
#include "client/cmd/io.h"
#include "client/cmd/parse.h"
#include "proto/base/version.h"

namespace param {
namespace {

int Code(ExitCode code) { return static_cast<int>(code); }

int UsageError(Io& io, const absl::Status& status) {
  io.err << "error: " << SafeText(absl::StrCat("", status.message())) << "\n" << std::flush;
  return Code(ExitCode::kUsage);
}

Format FormatOf(const std::string& name) {
  if (name == "wide") return Format::kWide;
  if (name == "json") return Format::kJson;
  if (name == "jsonl") return Format::kJsonl;
  return name == "csv" ? Format::kCsv : Format::kText;
}

// `paramctl help job list` is `paramctl job list --help`.
std::vector<std::string> WithoutHelpWord(const std::vector<std::string>& args) {
  if (args.empty() || args.front() != "help") return args;
  std::vector<std::string> rest(args.begin() + 1, args.end());
  rest.emplace_back("--help");
  return rest;
}

std::vector<Flag> Joined(const std::vector<Flag>& a, const std::vector<Flag>& b) {
  std::vector<Flag> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// The benchmark that `submit` names; null when none is named. To find the word, every flag that
// takes a value must be known, so all benchmarks' flags count here.
absl::StatusOr<const BenchmarkSpec*> NamedBenchmark(const Command& command,
                                                    const std::vector<std::string>& rest) {
  std::vector<Flag> flags = Joined(command.flags, GlobalFlags());
  for (const BenchmarkSpec* bench : AllBenchmarks()) flags = Joined(flags, BenchmarkFlags(*bench));
  const std::string word = FirstWord(rest, flags);
  if (word.empty()) return nullptr;
  return FindBenchmark(word);
}

int RunCommand(const Resolved& resolved, Io& io) {
  const Command& command = *resolved.command;
  std::vector<Flag> flags = Joined(command.flags, GlobalFlags());
  const BenchmarkSpec* bench = nullptr;
  if (command.path.front() == "submit") {
    const absl::StatusOr<const BenchmarkSpec*> named = NamedBenchmark(command, resolved.rest);
    if (!named.ok()) return UsageError(io, named.status());
    bench = *named;
    if (bench != nullptr) flags = Joined(BenchmarkFlags(*bench), flags);
  }
  if (resolved.help) {
    io.out << CommandHelp(command, bench) << std::flush;
    return Code(ExitCode::kOk);
  }
  absl::StatusOr<Arguments> args = ParseArguments(command, flags, resolved.rest);
  if (!args.ok()) return UsageError(io, args.status());
  Context context = {.io = io, .command = command, .args = *std::move(args)};
  context.format = FormatOf(context.args.Text("output"));
  context.quiet = context.args.IsOn("quiet");
  context.color = UseColor(context.args.IsOn("no-color"), io.out_facts);
  context.benchmark = bench;
  context.connection = std::make_unique<Connection>(
      ResolveAddress(context.args.Text("server"), io.env), io.connection);
  const ExitCode code = command.run(context);
  io.out << std::flush;
  return Code(code);
}

}  // namespace

int RunParamctl(const std::vector<std::string>& args, Io& io) {
  if (args.size() == 1 && args.front() == "--version") {
    io.out << "paramctl " << Version() << " (" << Revision() << ")\n" << std::flush;
    return Code(ExitCode::kOk);
  }
  const absl::StatusOr<Resolved> resolved = ResolveCommand(WithoutHelpWord(args));
  if (!resolved.ok()) return UsageError(io, resolved.status());
  if (resolved->command != nullptr) return RunCommand(*resolved, io);
  const std::string help = resolved->path.empty() ? ProgramHelp() : NounHelp(resolved->path);
  if (resolved->help) {
    io.out << help << std::flush;
    return Code(ExitCode::kOk);
  }
  io.err << help << "\n";
  return UsageError(
      io, absl::InvalidArgumentError(
              resolved->path.empty()
                  ? "a command is missing"
                  : absl::StrCat("a verb is missing after \"", CommandLine(resolved->path), "\"")));
}

}  // namespace param
