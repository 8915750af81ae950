#pragma once
// The facts about where a rank ran that go with its results.

#include <map>
#include <string>
#include <vector>

#include "agent/backend/load_backend.h"

namespace param {

// Host name, kernel, CPUs allowed, frequency governor, threads, backends with what they say of
// their libraries ("library.NAME"), our version, and the variables of a fixed list that are set
// ("env.NAME"). Variables that are not on the list never appear.
std::map<std::string, std::string> CollectFacts(const std::vector<const LoadedBackend*>& backends,
                                                int threads);

// Whether a variable may be recorded.
bool IsRecordedVariable(const std::string& name);

}  // namespace param
