#include "client/cmd/command.h"

#include <charconv>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param {

std::string Arguments::Text(absl::string_view flag, absl::string_view otherwise) const {
  const auto it = flags_.find(flag);
  return it == flags_.end() || it->second.empty() ? std::string(otherwise) : it->second.back();
}

std::vector<std::string> Arguments::All(absl::string_view flag) const {
  const auto it = flags_.find(flag);
  return it == flags_.end() ? std::vector<std::string>() : it->second;
}

absl::StatusOr<std::int64_t> Arguments::Int(absl::string_view flag, std::int64_t otherwise,
                                            std::int64_t min, std::int64_t max) const {
  if (!Has(flag)) return otherwise;
  const std::string text = Text(flag);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": \"", text, "\" is not a whole number"));
  }
  if (value < min || value > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": ", value, " is outside ", min, "..", max));
  }
  return value;
}

absl::StatusOr<absl::Duration> Arguments::Duration(absl::string_view flag,
                                                   absl::Duration otherwise) const {
  if (!Has(flag)) return otherwise;
  PARAM_ASSIGN_OR_RETURN(const absl::Duration value, ParseDuration(Text(flag)), "--", flag);
  return value;
}

absl::StatusOr<std::map<std::string, std::string>> Arguments::Pairs(absl::string_view flag) const {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : All(flag)) {
    const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.size() != 2 || parts[0].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, ": \"", text, "\" is not KEY=VALUE"));
    }
    if (!pairs.emplace(parts[0], parts[1]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, ": \"", parts[0], "\" is given twice"));
    }
  }
  return pairs;
}

const std::vector<Flag>& GlobalFlags() {
  static const auto* const flags = new std::vector<Flag>{
      {.name = "server",
       .value = "ADDR",
       .help = "the coordinator (default: $PARAM_SERVER, else that of \"paramctl up\", else "
               "127.0.0.1:7700)"},
      {.name = "output",
       .value = "FORMAT",
       .help = "text and wide are for people, the others for programs (default: text)",
       .choices = {"text", "wide", "json", "jsonl", "csv"},
       .letter = 'o'},
      {.name = "quiet", .value = "", .help = "no progress and no hints", .letter = 'q'},
      {.name = "no-color", .value = "", .help = "no colours, as with $NO_COLOR"},
      {.name = "help", .value = "", .help = "this text", .letter = 'h'},
  };
  return *flags;
}

std::vector<Flag> BenchmarkFlags(const BenchmarkSpec& bench) {
  std::vector<Flag> flags;
  for (const ParamSpec* spec : AllParams(bench)) {
    Flag flag;
    flag.name = FlagName(spec->name).substr(2);
    flag.help = std::string(spec->help);
    if (spec->type == ParamType::kBool) {
      flag.negatable = true;
    } else {
      flag.value = "VALUE";
    }
    // Not Flag::choices: lists of choices are values too, and the catalogue checks them.
    flags.push_back(std::move(flag));
  }
  if (!bench.sets.empty()) {
    flags.push_back({.name = "set", .value = "NAME", .help = "run a problem set"});
  }
  return flags;
}

const std::vector<Command>& AllCommands() {
  static const auto* const commands = [] {
    auto* all = new std::vector<Command>();
    for (auto* group : {&SubmitCommands, &FleetCommands, &JobCommands, &NodeCommands,
                        &BenchCommands, &ResultCommands, &ReportCommands, &AdminCommands}) {
      for (Command& command : (*group)()) all->push_back(std::move(command));
    }
    return all;
  }();
  return *commands;
}

ExitCode Fail(Context& context, const absl::Status& status) {
  context.io.out << std::flush;
  context.io.err << "error: " << SafeText(absl::StrCat("", status.message())) << "\n" << std::flush;
  return ExitCodeOf(status);
}

void Hint(const Context& context, absl::string_view line) {
  if (!context.quiet) context.io.err << line << "\n" << std::flush;
}

void PrintTable(const Context& context, const Table& table, absl::string_view json_key) {
  switch (context.format) {
    case Format::kText:
    case Format::kWide:
      RenderText(table, context.text_options(), context.io.out);
      break;
    case Format::kJson:
      RenderJson(table, json_key, context.io.out);
      break;
    case Format::kJsonl:
      RenderJsonl(table, context.io.out);
      break;
    case Format::kCsv:
      RenderCsv(table, context.io.out);
      break;
  }
}

}  // namespace param
