#pragma once
// Which backend a job means on a node, and whether the node can have it. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/node.h"

namespace param {

// What --backend said, taken apart.
struct BackendRequest {
  std::string device;             // "" for auto
  std::vector<std::string> comm;  // names of comm backends
};

// "auto", DEVICE, COMM or DEVICE+COMM. Which half a single name means is told by
// `device_backends`, see DeviceBackends().
absl::StatusOr<BackendRequest> ParseBackend(const std::string& text,
                                            const std::vector<std::string>& device_backends);

// Why `node` cannot run `benchmark` with backend `name` as its `table`, "device" or "comm" ("" = it
// can).
std::string WhyNotUsable(const Inventory& node, const std::string& name, const std::string& table,
                         const std::string& benchmark);

// Names of the device backends that some node of the fleet has.
std::vector<std::string> DeviceBackends(const std::vector<const Inventory*>& fleet);

// A device backend with the comm backends beside it.
struct BackendPair {
  std::string device;
  std::vector<std::string> comm;
};

// What the job may run on, in the order to try. Where `needs_comm` and none is named, one comm
// backend is chosen for each device: the device's own, else the usable one of the highest
// preference that works with that kind of device.
absl::StatusOr<std::vector<BackendPair>> BackendPairs(const std::string& text, bool needs_comm,
                                                      const std::vector<const Inventory*>& fleet);

// Why comm backend `name` of `node` cannot work with `device` ("" = it can).
std::string WhyNotTogether(const Inventory& node, const std::string& name,
                           const std::string& device);

// Device backends that `auto` may take on these nodes, best first by the manifests' preference.
std::vector<std::string> AutoCandidates(const std::vector<const Inventory*>& fleet);

// Ranks on a node when the user did not say: one per device where the backend asks for it, else
// one.
int DefaultRanksPerNode(const Inventory& node, const std::string& device_backend);

// Memory of one device of that backend; 0 where its devices use the host's memory.
std::int64_t DeviceMemory(const Inventory& node, const std::string& device_backend);

}  // namespace param
