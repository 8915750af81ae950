#include "agent/backend/load_backend.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "proto/base/status.h"

namespace param {
namespace {

// dlsym also searches the dependencies of a handle; only the file itself counts.
bool IsDefinedIn(void* handle, void* symbol) {
  link_map* map = nullptr;
  Dl_info where = {};
  return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 &&
         dladdr(symbol, &where) != 0 &&
         map->l_addr == reinterpret_cast<ElfW(Addr)>(where.dli_fbase);
}

// Copies what both sides know of a structure that starts with its size; the rest stays zero.
template <typename T>
absl::Status CopyTable(const void* theirs, const char* what, T* out) {
  std::uint32_t size = 0;
  std::memcpy(&size, theirs, sizeof(size));
  if (size < offsetof(T, struct_size) + 2 * sizeof(void*)) {
    return absl::FailedPreconditionError(absl::StrCat(what, " says that it has ", size, " bytes"));
  }
  *out = {};
  std::memcpy(out, theirs, std::min<std::size_t>(size, sizeof(T)));
  out->struct_size = sizeof(T);
  return absl::OkStatus();
}

template <typename T>
absl::Status TakeTable(const param_backend_v1& entry, const char* name, std::optional<T>* out) {
  const void* const theirs = entry.table(name);
  if (theirs == nullptr) return absl::OkStatus();
  T table = {};
  PARAM_RETURN_IF_ERROR(CopyTable(theirs, name, &table));
  if (table.kind == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("table ", name, " has no kind"));
  }
  *out = table;
  return absl::OkStatus();
}

absl::StatusOr<param_backend_v1> Entry(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::UnavailableError(dlerror());
  void* const symbol = dlsym(handle, "param_backend_entry_v1");
  if (symbol == nullptr || !IsDefinedIn(handle, symbol)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a backend"));
  }
  const param_backend_v1* const theirs =
      reinterpret_cast<decltype(&param_backend_entry_v1)>(symbol)();
  if (theirs == nullptr || theirs->abi_major != PARAM_BACKEND_ABI_MAJOR) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ABI ",
                                                      theirs == nullptr ? 0 : theirs->abi_major,
                                                      ", wanted is ", PARAM_BACKEND_ABI_MAJOR));
  }
  param_backend_v1 entry = {};
  PARAM_RETURN_IF_ERROR(CopyTable(theirs, "entry", &entry), path);
  if (entry.name == nullptr || entry.table == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": entry without name or tables"));
  }
  return entry;
}

}  // namespace

// Never closed: a driver's threads may outlive any point at which we could. A process is what we
// unload.
absl::StatusOr<LoadedBackend> LoadBackend(const std::string& path) {
  PARAM_ASSIGN_OR_RETURN(const param_backend_v1 entry, Entry(path));
  LoadedBackend loaded;
  loaded.path = path;
  loaded.name = entry.name;
  loaded.version = entry.version == nullptr ? "" : entry.version;
  loaded.abi_minor = entry.abi_minor;
  PARAM_RETURN_IF_ERROR(TakeTable(entry, "device", &loaded.device), path);
  PARAM_RETURN_IF_ERROR(TakeTable(entry, "comm", &loaded.comm), path);
  PARAM_RETURN_IF_ERROR(TakeTable(entry, "native", &loaded.native), path);
  if (!loaded.device && !loaded.comm && !loaded.native) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": has no table known here"));
  }
  return loaded;
}

}  // namespace param
