#pragma once
// What a worker gets to see of the agent's environment.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace param::agent {

// Variables that libraries and backends need ("K=V" of `environment`), those that
// ReachesWorker() lets through (agent/backend/variables.h). Sorted.
std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& environment);

// The process's own.
std::vector<std::string> OwnEnvironment();

// The value of a variable in "K=V" entries; "" when it is not there.
std::string Variable(const std::vector<std::string>& environment, absl::string_view name);

// Puts "K=V" in the place of whatever K was before. False, and nothing changes, when the entry is
// none: without a name or '=', or with a NUL.
bool SetVariable(std::vector<std::string>* environment, std::string entry);

}  // namespace param::agent
