// The fake backend's table "native": one run, "sleep", whose samples are scripted.

#include <ctime>
#include <nlohmann/json.hpp>

#include "agent/backends/fake/state.h"

namespace param::fake {
namespace {

std::int32_t Supports(const char* benchmark, const char*, param_error* why) {
  if (std::strcmp(benchmark, "sleep") == 0) return kit::kOk;
  return kit::Fail(why, kit::kUnimplemented, "backend fake runs no \"%s\" of its own", benchmark);
}

// {"iters": 3, "seconds": 0.001}: sleeps so often and so long, a sample of "time" each.
std::int32_t Run(const param_host* host, const char* benchmark, const char* params_json,
                 param_sample_fn sample, void* user, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Supports(benchmark, params_json, err));
    const nlohmann::json params = nlohmann::json::parse(params_json, nullptr, false);
    if (!params.is_object()) {
      return kit::Fail(err, kit::kInvalidArgument, "the parameters are not a JSON object");
    }
    const int iters = params.value("iters", 1);
    const auto ns = static_cast<std::int64_t>(params.value("seconds", 0.001) * 1e9);
    for (int i = 0; i < iters; ++i) {
      if (host->cancelled != nullptr && host->cancelled(host->user) != 0) {
        return kit::Fail(err, kit::kCancelled, "cancelled after %d of %d", i, iters);
      }
      const timespec span = {ns / 1000000000, ns % 1000000000};
      const double begin = MonotonicNs();
      ::nanosleep(&span, nullptr);
      sample(user, "time", "s", (MonotonicNs() - begin) * 1e-9);
    }
    return kit::kOk;
  });
}

}  // namespace

const param_native_v1* NativeTable() {
  static constexpr param_native_v1 kTable = {
      .struct_size = sizeof(param_native_v1),
      .kind = "fake",
      .probe = Probe,
      .supports = Supports,
      .run = Run,
  };
  return &kTable;
}

}  // namespace param::fake
