#include "client/cmd/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param {
namespace {

bool IsFlag(const std::string& arg) { return arg.size() > 1 && arg[0] == '-'; }

const Flag* FindFlag(const std::vector<Flag>& flags, const std::string& arg) {
  for (const Flag& flag : flags) {
    if (arg == "--" + flag.name) return &flag;
    if (flag.letter != '\0' && arg == std::string("-") + flag.letter) return &flag;
  }
  return nullptr;
}

bool StartsWithPath(const std::vector<std::string>& path, const std::vector<std::string>& start) {
  return path.size() >= start.size() && std::equal(start.begin(), start.end(), path.begin());
}

// The words that may follow `path`, each once, in the order of help.
std::vector<std::string> NextWords(const std::vector<std::string>& path) {
  std::vector<std::string> words;
  for (const Command& command : AllCommands()) {
    if (command.path.size() <= path.size() || !StartsWithPath(command.path, path)) continue;
    const std::string& word = command.path[path.size()];
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  return words;
}

const Command* FindCommand(const std::vector<std::string>& path) {
  for (const Command& command : AllCommands()) {
    if (command.path == path) return &command;
  }
  return nullptr;
}

absl::Status UnknownWord(const std::vector<std::string>& path, const std::string& word) {
  const std::vector<std::string> words = NextWords(path);
  const std::string near = DidYouMean(word, words);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown command \"", word, "\"", path.empty() ? "" : " of ", absl::StrJoin(path, " "),
      near.empty() ? "; there are " : near, near.empty() ? absl::StrJoin(words, ", ") : ""));
}

absl::Status UnknownFlag(const Command& command, const std::vector<Flag>& flags,
                         const std::string& arg) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) {
    names.push_back("--" + flag.name);
    if (flag.negatable) names.push_back("--no-" + flag.name);
  }
  const std::string name = arg.substr(0, arg.find('='));
  const std::string near = DidYouMean(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag ", name,
      near.empty() ? absl::StrCat("; see ", CommandLine(command.path), " --help") : near));
}

absl::Status CheckChoices(const Flag& flag, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (flag.choices.empty() ||
        std::find(flag.choices.begin(), flag.choices.end(), value) != flag.choices.end()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag.name, ": \"", value, "\" is not one of ",
                     absl::StrJoin(flag.choices, ", "), DidYouMean(value, flag.choices)));
  }
  return absl::OkStatus();
}

absl::Status CheckWordCount(const Command& command, const std::vector<std::string>& words) {
  const std::string usage = absl::StrCat(CommandLine(command.path), " ", command.arguments);
  if (words.size() < command.min_words) {
    return absl::InvalidArgumentError(absl::StrCat("an argument is missing: ", usage));
  }
  if (words.size() > command.max_words) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument \"", words[command.max_words], "\"; usage: ", usage));
  }
  return absl::OkStatus();
}

// CLI11's spelling of a flag: "-o,--output" or "--check,!--no-check".
std::string CliName(const Flag& flag) {
  std::string name = "--" + flag.name;
  if (flag.letter != '\0') name = std::string("-") + flag.letter + "," + name;
  if (flag.negatable) name += ",!--no-" + flag.name;
  return name;
}

}  // namespace

std::string CommandLine(const std::vector<std::string>& path) {
  return path.empty() ? "paramctl" : absl::StrCat("paramctl ", absl::StrJoin(path, " "));
}

absl::StatusOr<Resolved> ResolveCommand(const std::vector<std::string>& args) {
  Resolved out;
  bool words_over = false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") words_over = true;
    if (words_over || IsFlag(arg)) {
      if (!words_over && (arg == "-h" || arg == "--help")) out.help = true;
      out.rest.push_back(arg);
      const Flag* flag = words_over ? nullptr : FindFlag(GlobalFlags(), arg);
      if (flag != nullptr && !flag->value.empty() && i + 1 < args.size()) {
        out.rest.push_back(args[++i]);
      }
      continue;
    }
    if (out.command != nullptr) {
      out.rest.push_back(arg);
      continue;
    }
    std::vector<std::string> longer = out.path;
    longer.push_back(arg);
    const std::vector<std::string> words = NextWords(out.path);
    if (std::find(words.begin(), words.end(), arg) == words.end()) {
      return UnknownWord(out.path, arg);
    }
    out.path = std::move(longer);
    out.command = FindCommand(out.path);
  }
  return out;
}

std::string FirstWord(const std::vector<std::string>& args, const std::vector<Flag>& flags) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--") return i + 1 < args.size() ? args[i + 1] : "";
    if (!IsFlag(args[i])) return args[i];
    const Flag* flag = FindFlag(flags, args[i]);
    if (flag != nullptr && !flag->value.empty()) ++i;
  }
  return "";
}

absl::StatusOr<Arguments> ParseArguments(const Command& command, const std::vector<Flag>& flags,
                                         const std::vector<std::string>& args) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<std::string, CLI::Option*> options;
  Arguments out;
  try {
    for (const Flag& flag : flags) {
      options[flag.name] = flag.value.empty()
                               ? app.add_flag(CliName(flag))
                               : app.add_option(CliName(flag))->type_size(1)->expected(1);
      options[flag.name]->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra == "--") continue;
    if (IsFlag(extra)) return UnknownFlag(command, flags, extra);
    out.AddWord(extra);
  }
  for (const Flag& flag : flags) {
    const std::vector<std::string> values = options[flag.name]->results();
    if (values.empty()) continue;
    if (values.size() > 1 && !flag.repeat && !flag.value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " is given twice: \"",
                                                     values[0], "\" and \"", values[1], "\""));
    }
    PARAM_RETURN_IF_ERROR(CheckChoices(flag, values));
    out.AddFlag(flag.name, values);
  }
  PARAM_RETURN_IF_ERROR(CheckWordCount(command, out.words()));
  return out;
}

}  // namespace param
