#pragma once
// What param-worker is when a foreign launcher starts it: a helper that asks the agent of its node
// and waits (proto/line/launch.h). The work itself is done by a child of the agent, as always.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/line/launch.h"

namespace param {

// Stands for a rank: `rank_variable` of the environment says which. How it ended, once it has.
// INVALID_ARGUMENT without a rank; other errors: the agent is out of reach.
absl::StatusOr<line::LaunchEnd> HelpRank(const std::string& rank_variable);

// Stands for the launcher's daemon on another node: `words` are HOST and a command line.
absl::StatusOr<line::LaunchEnd> HelpDaemon(const std::vector<std::string>& words);

// Becomes the program words[0] with the name words[1] and the arguments behind it. Returns only
// when it cannot.
absl::Status BecomeProgram(const std::vector<std::string>& words);

// The value of a variable, which is gone afterwards: children and backends do not see it, nor does
// who looks at this process from outside.
std::string TakeVariable(const char* name);

}  // namespace param
