#include "agent/process/worker_env.h"

#include <unistd.h>

#include <algorithm>

#include "agent/backend/variables.h"

namespace param::agent {

std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    if (ReachesWorker(absl::string_view(entry).substr(0, equals))) kept.push_back(entry);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

}  // namespace param::agent
