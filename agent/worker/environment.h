#pragma once
// The facts about where a rank ran that go with its results.

#include <map>
#include <string>
#include <vector>

#include "agent/backend/load_backend.h"

namespace param {

// Host name, kernel, CPUs allowed, frequency governor, threads, backends with what they say of
// their libraries ("library.NAME"), our version, and the variables that are set and recorded
// ("env.NAME", agent/backend/variables.h); "env_left_out" counts those that there was no room for.
std::map<std::string, std::string> CollectFacts(const std::vector<const LoadedBackend*>& backends,
                                                int threads);

}  // namespace param
