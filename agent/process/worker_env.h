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

}  // namespace param::agent
