#include "agent/process/worker_env.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
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

std::string Variable(const std::vector<std::string>& environment, absl::string_view name) {
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos && absl::string_view(entry).substr(0, equals) == name) {
      return entry.substr(equals + 1);
    }
  }
  return "";
}

bool SetVariable(std::vector<std::string>* environment, std::string entry) {
  const std::size_t equals = entry.find('=');
  if (equals == std::string::npos || equals == 0 || absl::StrContains(entry, '\0')) return false;
  const absl::string_view name = absl::string_view(entry).substr(0, equals + 1);
  std::erase_if(*environment, [name](const std::string& each) {
    return absl::string_view(each).substr(0, name.size()) == name;
  });
  environment->push_back(std::move(entry));
  return true;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

}  // namespace param::agent
