#include "client/cmd/help.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cmd/parse.h"
#include "proto/catalog/derived.h"

namespace param {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kFlagColumn = 28;

// `text` in lines of at most kWidth, the first one after `first` columns, the others after
// `indent`.
std::string Wrap(absl::string_view text, std::size_t first, std::size_t indent) {
  std::string out;
  std::size_t column = first;
  bool line_start = true;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line_start && column + 1 + word.size() > kWidth) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
      line_start = true;
    }
    absl::StrAppend(&out, line_start ? "" : " ", word);
    column += word.size() + (line_start ? 0 : 1);
    line_start = false;
  }
  return out;
}

std::string FlagUsage(const Flag& flag) {
  std::string usage = flag.letter == '\0'
                          ? absl::StrCat("--", flag.name)
                          : absl::StrCat("-", std::string(1, flag.letter), ", --", flag.name);
  if (!flag.choices.empty()) {
    absl::StrAppend(&usage, " ", absl::StrJoin(flag.choices, "|"));
  } else if (!flag.value.empty()) {
    absl::StrAppend(&usage, " ", flag.value);
  }
  return usage;
}

std::string FlagLines(const std::vector<Flag>& flags) {
  std::string out;
  for (const Flag& flag : flags) {
    const std::string usage = absl::StrCat("  ", FlagUsage(flag));
    const std::string help = absl::StrCat(flag.help, flag.repeat ? " (may be repeated)" : "");
    if (usage.size() + 2 > kFlagColumn) {
      absl::StrAppend(&out, usage, "\n", std::string(kFlagColumn, ' '));
    } else {
      absl::StrAppend(&out, usage, std::string(kFlagColumn - usage.size(), ' '));
    }
    absl::StrAppend(&out, Wrap(help, kFlagColumn, kFlagColumn), "\n");
  }
  return out;
}

std::string Usage(const Command& command) {
  return absl::StrCat(CommandLine(command.path), command.arguments.empty() ? "" : " ",
                      command.arguments, " [FLAGS]");
}

std::string CommandRows(const std::vector<std::string>& start) {
  std::string out;
  for (const Command& command : AllCommands()) {
    if (!std::equal(start.begin(), start.end(), command.path.begin(),
                    command.path.begin() +
                        static_cast<std::ptrdiff_t>(std::min(start.size(), command.path.size())))) {
      continue;
    }
    const std::string name = absl::StrCat(absl::StrJoin(command.path, " "),
                                          command.arguments.empty() ? "" : " ", command.arguments);
    absl::StrAppend(&out, absl::StrFormat("  %-34s  %s\n", name, command.summary));
  }
  return out;
}

std::string BenchmarkNames() {
  return absl::StrJoin(AllBenchmarks(), ", ", [](std::string* out, const BenchmarkSpec* bench) {
    absl::StrAppend(out, bench->id);
  });
}

}  // namespace

std::string ProgramHelp() {
  return absl::StrCat(
      "paramctl: run benchmarks on a cluster and read their results\n\n"
      "Examples:\n"
      "  paramctl up --nodes 4                      # a fleet on this machine\n"
      "  paramctl submit gemm --nodes 4             # run, stream, print the table\n"
      "  paramctl submit gemm --m 512,1024 -o json  # the same for programs\n"
      "  paramctl job list\n"
      "  paramctl down\n\n"
      "Usage: paramctl [--server ADDR] [-o FORMAT] NOUN VERB [ARGUMENTS] [FLAGS]\n\n"
      "Commands:\n",
      CommandRows({}), "\nBenchmarks: ", BenchmarkNames(), "\n\nFlags of every command:\n",
      FlagLines(GlobalFlags()),
      "\n\"paramctl COMMAND --help\" shows the flags and examples of a command.\n\n"
      "Exit codes:\n",
      ExitCodeHelp());
}

std::string NounHelp(const std::vector<std::string>& path) {
  return absl::StrCat("Usage: ", CommandLine(path), " VERB [ARGUMENTS] [FLAGS]\n\nCommands:\n",
                      CommandRows(path), "\nFlags of every command:\n", FlagLines(GlobalFlags()),
                      "\nExit codes:\n", ExitCodeHelp());
}

std::string CommandHelp(const Command& command, const BenchmarkSpec* bench) {
  std::string out = absl::StrCat(CommandLine(command.path), ": ", command.summary, "\n\n");
  if (bench != nullptr) {
    absl::StrAppend(&out, HelpText(*bench), "\n");
  } else {
    absl::StrAppend(&out, "Examples:\n");
    for (const std::string& example : command.examples) {
      absl::StrAppend(&out, "  ", example, "\n");
    }
    absl::StrAppend(&out, "\n");
  }
  absl::StrAppend(&out, "Usage: ", Usage(command), "\n\n");
  if (!command.description.empty()) {
    absl::StrAppend(&out, Wrap(command.description, 0, 0), "\n\n");
  }
  if (!command.flags.empty()) {
    absl::StrAppend(&out, bench == nullptr ? "Flags:\n" : "Flags of the job:\n",
                    FlagLines(command.flags), "\n");
  }
  return absl::StrCat(out, "Flags of every command:\n", FlagLines(GlobalFlags()), "\nExit codes:\n",
                      ExitCodeHelp());
}

std::string MarkdownReference() {
  std::string out = absl::StrCat(
      "<!-- Generated from the command table in client/cmd; a test compares it. -->\n\n"
      "# paramctl\n\n```text\n",
      ProgramHelp(), "```\n");
  for (const Command& command : AllCommands()) {
    absl::StrAppend(&out, "\n## ", CommandLine(command.path), "\n\n");
    if (!command.description.empty()) {
      absl::StrAppend(&out, Wrap(command.description, 0, 0), "\n\n");
    } else {
      absl::StrAppend(&out, command.summary, ".\n\n");
    }
    absl::StrAppend(&out, "```sh\n", absl::StrJoin(command.examples, "\n"), "\n```\n\n", "Usage: `",
                    Usage(command), "`\n");
    if (command.flags.empty()) continue;
    absl::StrAppend(&out, "\n```text\n", FlagLines(command.flags), "```\n");
  }
  return out;
}

}  // namespace param
