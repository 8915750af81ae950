#pragma once
// From a command line to a command and its arguments. CLI11 splits the flags; finding the command,
// checking names and "did you mean" are ours. Errors are INVALID_ARGUMENT, ready to print.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cmd/command.h"

namespace param {

// The words of the command, and what is left for its flags and arguments.
struct Resolved {
  std::vector<std::string> path;     // {"job"} when the verb is missing
  const Command* command = nullptr;  // null for a noun alone or nothing at all
  bool help = false;                 // -h or --help is among `rest`
  std::vector<std::string> rest;
};
absl::StatusOr<Resolved> ResolveCommand(const std::vector<std::string>& args);

// The first argument that is no flag and no flag's value; "" when there is none.
std::string FirstWord(const std::vector<std::string>& args, const std::vector<Flag>& flags);

// Splits `args`; unknown flags, missing values, repeated single flags, values that are no choice
// and a wrong number of words are errors.
absl::StatusOr<Arguments> ParseArguments(const Command& command, const std::vector<Flag>& flags,
                                         const std::vector<std::string>& args);

// "paramctl job list".
std::string CommandLine(const std::vector<std::string>& path);

}  // namespace param
