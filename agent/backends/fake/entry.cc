#include "agent/backends/fake/state.h"

namespace {

const void* Table(const char* name) {
  if (std::strcmp(name, "device") == 0) return param::fake::DeviceTable();
  if (std::strcmp(name, "comm") == 0) return param::fake::CommTable();
  if (std::strcmp(name, "native") == 0) return param::fake::NativeTable();
  return nullptr;
}

constexpr param_backend_v1 kEntry = {
    .struct_size = sizeof(param_backend_v1),
    .abi_major = PARAM_BACKEND_ABI_MAJOR,
    .abi_minor = PARAM_BACKEND_ABI_MINOR,
    .name = "fake",
    .version = PARAM_BACKEND_VERSION,
    .table = Table,
};

}  // namespace

extern "C" const param_backend_v1* param_backend_entry_v1(void) { return &kEntry; }
