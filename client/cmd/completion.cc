// Completion scripts, made from the command table. They call nothing: everything they offer is in
// the text.

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cmd/help.h"
#include "proto/base/text.h"

namespace param {
namespace {

// "job list" -> what may be typed next: words, flags, benchmark names.
std::map<std::string, std::vector<std::string>> NextByPrefix() {
  std::map<std::string, std::vector<std::string>> next;
  const auto add = [&next](const std::string& prefix, const std::string& word) {
    std::vector<std::string>& words = next[prefix];
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  };
  const auto add_flags = [&add](const std::string& prefix, const std::vector<Flag>& flags) {
    for (const Flag& flag : flags) {
      add(prefix, "--" + flag.name);
      if (flag.negatable) add(prefix, "--no-" + flag.name);
    }
  };
  for (const Command& command : AllCommands()) {
    std::string prefix;
    for (const std::string& word : command.path) {
      add(prefix, word);
      absl::StrAppend(&prefix, prefix.empty() ? "" : " ", word);
    }
    const bool takes_benchmark = absl::StartsWith(command.arguments, "BENCH");
    for (const BenchmarkSpec* bench : AllBenchmarks()) {
      if (takes_benchmark) add(prefix, std::string(bench->id));
      if (command.path.front() == "submit") add_flags(prefix, BenchmarkFlags(*bench));
    }
    add_flags(prefix, command.flags);
    add_flags(prefix, GlobalFlags());
  }
  for (const char* shell : {"bash", "zsh", "fish"}) add("completion", shell);
  add_flags("", GlobalFlags());
  return next;
}

// What may follow a flag: its choices; for submit also the benchmarks' choices and sets.
std::map<std::string, std::vector<std::string>> ChoicesByFlag() {
  std::map<std::string, std::vector<std::string>> choices;
  const auto add_flags = [&choices](const std::vector<Flag>& flags) {
    for (const Flag& flag : flags) {
      if (!flag.choices.empty()) choices["--" + flag.name] = flag.choices;
      if (!flag.choices.empty() && flag.letter != '\0') {
        choices[std::string("-") + flag.letter] = flag.choices;
      }
    }
  };
  add_flags(GlobalFlags());
  for (const Command& command : AllCommands()) add_flags(command.flags);
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    for (const ParamSpec* spec : AllParams(*bench)) {
      std::vector<std::string>& known = choices[FlagName(spec->name)];
      for (const absl::string_view choice : spec->choices) {
        if (std::find(known.begin(), known.end(), choice) == known.end()) {
          known.emplace_back(choice);
        }
      }
      if (known.empty()) choices.erase(FlagName(spec->name));
    }
    for (const ProblemSet& set : bench->sets) choices["--set"].emplace_back(set.name);
  }
  return choices;
}

constexpr absl::string_view kBash =
    R"(# bash completion for paramctl. Load it: source <(paramctl completion bash)
_paramctl() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path="" word i
  case "$previous" in
@CHOICES@  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "$path${path:+ }$word" in
@PATHS@) path="$path${path:+ }$word" ;;
    esac
  done
  case "$path" in
@NEXT@  esac
}
complete -F _paramctl paramctl
)";

constexpr absl::string_view kZsh = R"(#compdef paramctl
# zsh completion for paramctl. Load it: source <(paramctl completion zsh)
autoload -Uz bashcompinit && bashcompinit
)";

std::string BashScript() {
  std::string choices, next;
  std::vector<std::string> paths;
  for (const auto& [flag, words] : ChoicesByFlag()) {
    absl::StrAppend(&choices, "    ", flag, ") COMPREPLY=($(compgen -W \"",
                    absl::StrJoin(words, " "), "\" -- \"$current\")); return ;;\n");
  }
  for (const auto& [prefix, words] : NextByPrefix()) {
    if (!prefix.empty()) paths.push_back(absl::StrCat("\"", prefix, "\""));
    absl::StrAppend(&next, "    \"", prefix, "\") COMPREPLY=($(compgen -W \"",
                    absl::StrJoin(words, " "), "\" -- \"$current\")) ;;\n");
  }
  return absl::StrReplaceAll(kBash, {{"@CHOICES@", choices},
                                     {"@PATHS@", "      " + absl::StrJoin(paths, "|")},
                                     {"@NEXT@", next}});
}

std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// Conditions in fish are commands: these hold when the words typed so far are those of the path.
std::string FishCondition(const std::vector<std::string>& path) {
  std::vector<std::string> seen;
  seen.reserve(path.size());
  for (const std::string& word : path) {
    seen.push_back(absl::StrCat("__fish_seen_subcommand_from ", word));
  }
  return seen.empty() ? "__fish_use_subcommand" : absl::StrJoin(seen, "; and ");
}

std::string FishFlags(const std::string& condition, const std::vector<Flag>& flags) {
  std::string out;
  for (const Flag& flag : flags) {
    absl::StrAppend(&out, "complete -c paramctl -f -n ", FishQuoted(condition), " -l ", flag.name);
    if (flag.letter != '\0') absl::StrAppend(&out, " -s ", std::string(1, flag.letter));
    if (!flag.value.empty()) absl::StrAppend(&out, " -r");
    if (!flag.choices.empty()) {
      absl::StrAppend(&out, " -a ", FishQuoted(absl::StrJoin(flag.choices, " ")));
    }
    absl::StrAppend(&out, " -d ", FishQuoted(flag.help), "\n");
  }
  return out;
}

std::string FishScript() {
  std::string out =
      "# fish completion for paramctl. Load it: paramctl completion fish | source\n"
      "complete -c paramctl -f\n";
  std::set<std::string> nouns;
  for (const Command& command : AllCommands()) {
    const bool has_verb = command.path.size() > 1;
    if (nouns.insert(command.path.front()).second) {
      absl::StrAppend(&out, "complete -c paramctl -f -n __fish_use_subcommand -a ",
                      command.path.front(), " -d ",
                      FishQuoted(has_verb ? "see its verbs" : command.summary), "\n");
    }
    if (has_verb) {
      absl::StrAppend(&out, "complete -c paramctl -f -n ",
                      FishQuoted(FishCondition({command.path.front()})), " -a ",
                      command.path.back(), " -d ", FishQuoted(command.summary), "\n");
    }
    const std::string condition = FishCondition(command.path);
    absl::StrAppend(&out, FishFlags(condition, command.flags));
    for (const BenchmarkSpec* bench : AllBenchmarks()) {
      if (!absl::StartsWith(command.arguments, "BENCH")) break;
      absl::StrAppend(&out, "complete -c paramctl -f -n ", FishQuoted(condition), " -a ", bench->id,
                      " -d ", FishQuoted(bench->summary), "\n");
      if (command.path.front() == "submit") {
        absl::StrAppend(&out, FishFlags(FishCondition({"submit", std::string(bench->id)}),
                                        BenchmarkFlags(*bench)));
      }
    }
  }
  return absl::StrCat(out, FishFlags("true", GlobalFlags()));
}

}  // namespace

absl::StatusOr<std::string> CompletionScript(absl::string_view shell) {
  if (shell == "bash") return BashScript();
  if (shell == "zsh") return absl::StrCat(kZsh, BashScript());
  if (shell == "fish") return FishScript();
  return absl::InvalidArgumentError(absl::StrCat("\"", shell, "\" is not one of bash, zsh, fish",
                                                 DidYouMean(shell, {"bash", "zsh", "fish"})));
}

}  // namespace param
