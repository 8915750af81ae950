#include "server/core/backend_choice.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param {

absl::StatusOr<BackendRequest> ParseBackend(const std::string& text,
                                            const std::vector<std::string>& device_backends) {
  BackendRequest request;
  if (text.empty() || text == "auto") return request;
  const auto is_device = [&device_backends](const std::string& name) {
    return std::find(device_backends.begin(), device_backends.end(), name) != device_backends.end();
  };
  const std::vector<std::string> parts = absl::StrSplit(text, '+');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("backend \"", text, "\": write auto, DEVICE, COMM or DEVICE+COMM"));
    }
    if (i == 0 && is_device(parts[i])) {
      request.device = parts[i];
    } else {
      request.comm.push_back(parts[i]);
    }
  }
  return request;
}

std::string WhyNotUsable(const Inventory& node, const std::string& name, const std::string& table,
                         const std::string& benchmark) {
  for (const BackendStatus& backend : node.backends) {
    if (backend.name != name) continue;
    if (!backend.usable) {
      return absl::StrCat("backend ", name, " is installed, not ",
                          backend.loadable ? "usable: " : "loadable: ", backend.reason);
    }
    if (std::count(backend.tables.begin(), backend.tables.end(), table) == 0) {
      return absl::StrCat("backend ", name, " has no table \"", table, "\"");
    }
    const bool runs = std::any_of(
        backend.benchmarks.begin(), backend.benchmarks.end(),
        [&benchmark](const std::string& each) { return each == "*" || each == benchmark; });
    return runs ? "" : absl::StrCat("backend ", name, " does not run ", benchmark);
  }
  return absl::StrCat("backend ", name, " is not installed");
}

std::vector<std::string> DeviceBackends(const std::vector<const Inventory*>& fleet) {
  std::set<std::string> names;
  for (const Inventory* node : fleet) {
    for (const BackendStatus& backend : node->backends) {
      if (std::count(backend.tables.begin(), backend.tables.end(), "device") > 0) {
        names.insert(backend.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> AutoCandidates(const std::vector<const Inventory*>& fleet) {
  std::map<std::string, int> preference;
  for (const Inventory* node : fleet) {
    for (const BackendStatus& backend : node->backends) {
      if (!backend.usable || backend.preference <= 0) continue;
      if (std::count(backend.tables.begin(), backend.tables.end(), "device") == 0) continue;
      int& best = preference[backend.name];
      best = std::max(best, backend.preference);
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : preference) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return preference[a] > preference[b];
  });
  return names;
}

int DefaultRanksPerNode(const Inventory& node, const std::string& device_backend) {
  for (const BackendStatus& backend : node.backends) {
    if (backend.name == device_backend && backend.rank_per_device) {
      return std::max(1, backend.devices);
    }
  }
  return 1;
}

std::int64_t DeviceMemory(const Inventory& node, const std::string& device_backend) {
  for (const BackendStatus& backend : node.backends) {
    if (backend.name == device_backend) return backend.device_memory_bytes;
  }
  return 0;
}

}  // namespace param
