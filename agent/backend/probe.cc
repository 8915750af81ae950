#include "agent/backend/probe.h"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "agent/backend/error.h"
#include "agent/backend/load_backend.h"

namespace param {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDescribeCapacity = 256 << 10;

// What a table's probe answers: devices, or why not. `remark` (may be null): what it says when all
// is well.
absl::StatusOr<std::int32_t> AskProbe(const char* table, std::int32_t (*probe)(param_error*),
                                      std::string* remark = nullptr) {
  if (probe == nullptr) return absl::UnimplementedError(absl::StrCat(table, ": cannot be probed"));
  BackendError error;
  const std::int32_t found = probe(&error);
  if (found >= 0) {
    if (remark != nullptr)
      *remark = std::string(error.message, strnlen(error.message, sizeof(error.message)));
    return found;
  }
  const absl::Status why = BackendFailure(error.code == 0 ? 14 : error.code, error);
  return absl::UnavailableError(why.message());
}

Json Describe(const param_device_v1& device) {
  if (device.describe == nullptr) return Json::object();
  std::string text(kDescribeCapacity, '\0');
  BackendError error;
  if (device.describe(text.data(), text.size(), &error) != 0) return Json::object();
  text.resize(strnlen(text.data(), text.size()));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json::object();
}

// Every table must be fit for use; the first that is not says why.
absl::Status ProbeTables(const LoadedBackend& backend, Json& out) {
  if (backend.device) {
    out["describe"] = Describe(*backend.device);
    PARAM_ASSIGN_OR_RETURN(const std::int32_t devices, AskProbe("device", backend.device->probe));
    out["devices"] = devices;
    if (devices == 0) return absl::NotFoundError("no device found");
  }
  if (backend.comm) {
    std::string library;
    PARAM_RETURN_IF_ERROR(AskProbe("comm", backend.comm->probe, &library).status());
    if (!library.empty()) {
      Json& libraries = out["describe"]["libraries"];
      if (!libraries.is_object()) libraries = Json::object();
      libraries[backend.comm->kind] = library;
    }
  }
  if (backend.native) PARAM_RETURN_IF_ERROR(AskProbe("native", backend.native->probe).status());
  return absl::OkStatus();
}

}  // namespace

std::string RunProbe(const std::string& path) {
  Json out = {
      {"name", ""},   {"version", ""}, {"loadable", false},       {"usable", false},
      {"reason", ""}, {"devices", 0},  {"tables", Json::array()}, {"describe", Json::object()}};
  const absl::StatusOr<LoadedBackend> backend = LoadBackend(path);
  absl::Status state = backend.status();
  if (backend.ok()) {
    out["name"] = backend->name;
    out["version"] = backend->version;
    out["loadable"] = true;
    if (backend->device) out["tables"].push_back("device");
    if (backend->comm) out["tables"].push_back("comm");
    if (backend->native) out["tables"].push_back("native");
    state = ProbeTables(*backend, out);
  }
  out["usable"] = state.ok();
  out["reason"] = std::string(state.message());
  // Texts of foreign libraries need not be UTF-8.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace param
