// MPI as a property of the process: opened once, closed once, and what it says when it fails.

#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "agent/backends/mpi/state.h"

namespace param::mpi {
namespace {

// MPI can be opened and closed once per process, whatever number of contexts there is: the one
// thing here that is of the process and not of a context.
struct Process {
  std::mutex mutex;
  int contexts = 0;
  bool opened_here = false;  // not by the program around us, which then closes it too
  bool poisoned = false;     // a context ended badly: never finalize
};

Process& ThisProcess() {
  static Process process;
  return process;
}

bool IsInPath(const char* program) {
  const char* const path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  folders += ':';
  for (std::size_t at = 0; at < folders.size();) {
    const std::size_t end = folders.find(':', at);
    const std::string folder = folders.substr(at, end - at);
    at = end + 1;
    if (!folder.empty() && access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// In a process that mpirun did not start, MPI opens as a world of one: every rank would measure
// itself. So nothing else happens before the two worlds are known to be the same.
std::int32_t CheckWorld(const param_host& host, param_error* err) {
  int rank = -1;
  int size = -1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
      MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS) {
    return kit::Fail(err, kit::kInternal, "MPI does not say its rank and size");
  }
  if (rank == host.rank && size == host.size) return kit::kOk;
  return kit::Fail(
      err, kit::kFailedPrecondition, "MPI says rank %d of %d, the job says rank %d of %d%s", rank,
      size, host.rank, host.size,
      size == 1 ? ": this process was not started by the mpirun of its MPI library" : "");
}

std::int32_t Initialize(Process& process, param_error* err) {
  int opened = 0;
  int closed = 0;
  MPI_Initialized(&opened);
  MPI_Finalized(&closed);
  if (closed != 0 || process.poisoned) {
    return kit::Fail(err, kit::kFailedPrecondition,
                     "MPI was closed or aborted in this process and cannot be opened again");
  }
  int level = MPI_THREAD_SINGLE;
  if (opened == 0) {
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS) return FailWith(nullptr, err, "MPI_Init_thread", code);
    process.opened_here = true;
  } else {
    MPI_Query_thread(&level);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    return kit::Fail(err, kit::kFailedPrecondition,
                     "%s takes calls from its first thread only (level %d)",
                     LibraryVersion().c_str(), level);
  }
  return kit::kOk;
}

kit::Code CodeOf(int error_class) {
  switch (error_class) {
    case MPI_ERR_TRUNCATE:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_TAG:
    case MPI_ERR_RANK:
    case MPI_ERR_ROOT:
    case MPI_ERR_OP:
    case MPI_ERR_ARG:
    case MPI_ERR_BUFFER:
      return kit::kInvalidArgument;
    case MPI_ERR_NO_MEM:
      return kit::kResourceExhausted;
    case MPI_ERR_UNSUPPORTED_OPERATION:
      return kit::kUnimplemented;
    default:
      return kit::kInternal;
  }
}

}  // namespace

std::string LibraryVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version = text;
  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, ..."
  version = version.substr(0, version.find_first_of(",\n"));
  const std::size_t v = version.find(" v");
  if (v != std::string::npos) version.erase(v + 1, 1);
  return version;
}

// That the library loads is known by the time this runs. Opening MPI here would make this process a
// world of one, with helpers of its own; the version may be asked before.
std::int32_t Probe(param_error* why) {
  return kit::Guard(why, [&]() -> std::int32_t {
    if (IsInPath("mpirun")) {
      if (why != nullptr) {
        std::snprintf(why->message, sizeof(why->message), "%s", LibraryVersion().c_str());
      }
      return 1;
    }
    kit::Fail(why, kit::kUnavailable, "no mpirun in PATH, only the library, %s",
              LibraryVersion().c_str());
    return -1;
  });
}

std::int32_t FailWith(param_ctx* ctx, param_error* err, const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "no reason given";
  int length = 0;
  int error_class = MPI_ERR_OTHER;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &error_class);
  if (ctx != nullptr) ctx->broken = true;
  return kit::Fail(err, CodeOf(error_class), "%s: %s", call, text);
}

std::int32_t Aborted(param_error* err) {
  return kit::Fail(err, kit::kAborted, "the communicator was aborted");
}

std::int32_t Open(const param_host* host, const param_device_v1* device, param_ctx* device_ctx,
                  param_ctx** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (device == nullptr || device->buffer_native == nullptr) {
      return kit::Fail(err, kit::kFailedPrecondition,
                       "MPI works on host memory: a device whose buffers have a pointer is needed");
    }
    auto ctx = std::make_unique<param_ctx>();
    ctx->host = host;
    ctx->device = device;
    ctx->device_ctx = device_ctx;
    for (auto& row : ctx->reductions) row.fill(MPI_OP_NULL);
    Process& process = ThisProcess();
    const std::lock_guard lock(process.mutex);
    if (host->progress != nullptr) host->progress(host->user, "bootstrap");
    PARAM_KIT_TRY(Initialize(process, err));
    if (const std::int32_t code = CheckWorld(*host, err); code != kit::kOk) {
      // The others may stand elsewhere: a collective end could wait for them for ever.
      process.poisoned = true;
      return code;
    }
    ++process.contexts;
    *out = ctx.release();
    return kit::kOk;
  });
}

void Close(param_ctx* raw) {
  const std::unique_ptr<param_ctx> ctx(raw);
  const bool good = !ctx->broken && !ctx->aborted.load();
  for (param_request* request = ctx->pool; request != nullptr;) {
    const std::unique_ptr<param_request> gone(request);
    request = gone->next;
  }
  for (auto& row : ctx->reductions) {
    for (MPI_Op& op : row) {
      if (good && op != MPI_OP_NULL) MPI_Op_free(&op);
    }
  }
  Process& process = ThisProcess();
  const std::lock_guard lock(process.mutex);
  process.poisoned |= !good;
  if (--process.contexts == 0 && process.opened_here && !process.poisoned) {
    int closed = 0;
    MPI_Finalized(&closed);
    if (closed == 0) MPI_Finalize();
  }
}

}  // namespace param::mpi
