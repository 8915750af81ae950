#include <cstring>

#include "agent/backends/gloo/comm.h"

namespace {

const void* Table(const char* name) {
  return std::strcmp(name, "comm") == 0 ? param::gloo_comm::CommTable() : nullptr;
}

constexpr param_backend_v1 kEntry = {
    .struct_size = sizeof(param_backend_v1),
    .abi_major = PARAM_BACKEND_ABI_MAJOR,
    .abi_minor = PARAM_BACKEND_ABI_MINOR,
    .name = "gloo",
    .version = PARAM_BACKEND_VERSION,
    .table = Table,
};

}  // namespace

extern "C" const param_backend_v1* param_backend_entry_v1(void) { return &kEntry; }
