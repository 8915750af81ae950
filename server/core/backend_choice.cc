#include "server/core/backend_choice.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param {
namespace {

bool Holds(const std::vector<std::string>& list, const std::string& wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

const BackendStatus* Find(const Inventory& node, const std::string& name) {
  for (const BackendStatus& backend : node.backends) {
    if (backend.name == name) return &backend;
  }
  return nullptr;
}

// Usable backends with `table` and a preference, best first; with `device`, those that work with
// it.
std::vector<std::string> Preferred(const std::vector<const Inventory*>& fleet,
                                   const std::string& table, const std::string& device) {
  std::map<std::string, int> preference;
  for (const Inventory* node : fleet) {
    for (const BackendStatus& backend : node->backends) {
      if (!backend.usable || backend.preference <= 0 || !Holds(backend.tables, table)) continue;
      if (!device.empty() && !Holds(backend.streams, device)) continue;
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

// Comm backends for `device`, best first. One that is both is its own.
std::vector<std::string> CommCandidates(const std::vector<const Inventory*>& fleet,
                                        const std::string& device) {
  for (const Inventory* node : fleet) {
    const BackendStatus* const backend = Find(*node, device);
    if (backend != nullptr && backend->usable && Holds(backend->tables, "comm")) return {device};
  }
  return Preferred(fleet, "comm", device);
}

}  // namespace

absl::StatusOr<BackendRequest> ParseBackend(const std::string& text,
                                            const std::vector<std::string>& device_backends) {
  BackendRequest request;
  if (text.empty() || text == "auto") return request;
  const std::vector<std::string> parts = absl::StrSplit(text, '+');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("backend \"", text, "\": write auto, DEVICE, COMM or DEVICE+COMM"));
    }
    if (i == 0 && Holds(device_backends, parts[i])) {
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
    if (!Holds(backend.tables, table)) {
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
      if (Holds(backend.tables, "device")) {
        names.insert(backend.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> AutoCandidates(const std::vector<const Inventory*>& fleet) {
  return Preferred(fleet, "device", "");
}

std::string WhyNotTogether(const Inventory& node, const std::string& name,
                           const std::string& device) {
  const BackendStatus* const backend = Find(node, name);
  if (backend == nullptr || backend->streams.empty() || Holds(backend->streams, device)) return "";
  return absl::StrCat("backend ", name, " works with ", absl::StrJoin(backend->streams, ", "),
                      ", not with ", device);
}

absl::StatusOr<std::vector<BackendPair>> BackendPairs(const std::string& text, bool needs_comm,
                                                      const std::vector<const Inventory*>& fleet) {
  PARAM_ASSIGN_OR_RETURN(const BackendRequest request, ParseBackend(text, DeviceBackends(fleet)));
  const bool any_device = request.device.empty();
  const std::vector<std::string> devices =
      any_device ? AutoCandidates(fleet) : std::vector<std::string>{request.device};
  std::vector<BackendPair> pairs;
  for (const std::string& device : devices) {
    if (!request.comm.empty() || !needs_comm) {
      const bool fits =
          std::all_of(request.comm.begin(), request.comm.end(), [&](const std::string& comm) {
            return std::any_of(fleet.begin(), fleet.end(), [&](const Inventory* node) {
              return Find(*node, comm) != nullptr && WhyNotTogether(*node, comm, device).empty();
            });
          });
      if (fits || !any_device) pairs.push_back({device, request.comm});
      continue;
    }
    for (std::string& comm : CommCandidates(fleet, device)) {
      pairs.push_back({device, {std::move(comm)}});
    }
  }
  if (!pairs.empty() || devices.empty()) return pairs;
  // Nothing fits: the first device, so that its reason can be told.
  pairs.push_back({devices.front(), request.comm});
  return pairs;
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
