#pragma once
// Loads a backend into this process: a worker or a throw-away probe, never the agent.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agent/backend/param_backend.h"

namespace param {

// A backend's tables as this program was compiled: entries that an older backend lacks are null.
// The code behind them is never unloaded. Contexts keep references to these tables, so keep this
// where it does not move while one is open.
struct LoadedBackend {
  std::string path;
  std::string name;
  std::string version;
  std::uint32_t abi_minor = 0;
  std::optional<param_device_v1> device;
  std::optional<param_comm_v1> comm;
  std::optional<param_native_v1> native;
};

// UNAVAILABLE when the loader cannot (its message names the missing library),
// FAILED_PRECONDITION when the file is no backend, of another ABI, or has a table without a size.
absl::StatusOr<LoadedBackend> LoadBackend(const std::string& path);

}  // namespace param
