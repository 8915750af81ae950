// Communicators: made, split, destroyed, aborted. All are non-blocking: a call starts something and
// its end is polled for, under the caller's deadline.

#include <algorithm>
#include <cstring>

#include "agent/backends/nccl/state.h"

namespace param::nccl {
namespace {

static_assert(sizeof(ncclUniqueId) <= PARAM_COMM_ID_BYTES);

Deadline After(std::int64_t ns) {
  if (ns <= 0) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
}

ncclConfig_t NonBlocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

void Progress(const Context& ctx, const char* phase) {
  if (ctx.host->progress != nullptr) ctx.host->progress(ctx.host->user, phase);
}

// The first collective: NCCL opens its connections then, and not when a communicator is made.
std::int32_t Connect(Context& ctx, Comm& comm, Deadline deadline, param_error* err) {
  auto* const stream = ctx.Native(ctx.stream);
  {
    const Inside inside(ctx, comm);
    if (!inside.ok()) return FailClosed(comm, err);
    const ncclResult_t result =
        ncclAllReduce(ctx.scratch_data, ctx.scratch_data, 1, ncclInt32, ncclSum, comm.raw, stream);
    if (IsFailure(result)) return FailWith(err, "connect: ncclAllReduce", result, comm.raw);
  }
  PARAM_KIT_TRY(AwaitReady(ctx, comm, "connect", deadline, err));
  cudaEvent_t event = nullptr;
  PARAM_NCCL_CUDA_TRY(err, cudaEventCreateWithFlags, &event, cudaEventDisableTiming);
  const cudaError_t recorded = cudaEventRecord(event, stream);
  const std::int32_t code = recorded == cudaSuccess
                                ? AwaitEvent(ctx, comm, event, "connect", deadline, err)
                                : FailWith(err, "cudaEventRecord", recorded);
  static_cast<void>(cudaEventDestroy(event));
  return code;
}

// Hands a finished communicator over to the context, and to the watch.
param_comm* Keep(Context& ctx, std::unique_ptr<Comm> comm) {
  Comm* const raw = comm.get();
  {
    const std::lock_guard lock(ctx.comms_mutex);
    ctx.comms.push_back(std::move(comm));
  }
  ctx.watch.Start();
  return reinterpret_cast<param_comm*>(raw);
}

// Takes it away from the context; the watch does not look at it any more.
std::unique_ptr<Comm> Take(Context& ctx, const Comm* comm) {
  const std::lock_guard lock(ctx.comms_mutex);
  const auto found = std::find_if(ctx.comms.begin(), ctx.comms.end(),
                                  [comm](const auto& one) { return one.get() == comm; });
  if (found == ctx.comms.end()) return nullptr;
  std::unique_ptr<Comm> taken = std::move(*found);
  ctx.comms.erase(found);
  return taken;
}

// Rank and size from NCCL itself, then the connections.
std::int32_t Finish(Context& ctx, Comm& comm, Deadline deadline, param_error* err) {
  PARAM_KIT_TRY(AwaitReady(ctx, comm, "bootstrap", deadline, err));
  {
    const Inside inside(ctx, comm);
    if (!inside.ok()) return FailClosed(comm, err);
    ncclResult_t result = ncclCommUserRank(comm.raw, &comm.rank);
    if (result == ncclSuccess) result = ncclCommCount(comm.raw, &comm.size);
    if (result != ncclSuccess) return FailWith(err, "ncclCommCount", result, comm.raw);
  }
  Progress(ctx, "connect");
  return Connect(ctx, comm, deadline, err);
}

// The allocation that `data` begins. The runtime does not tell its size, the driver does; it is not
// linked, so the runtime is asked for it.
std::int32_t SizeOf(void* data, std::size_t* bytes, param_error* err) {
  using RangeFn = int (*)(unsigned long long*, std::size_t*, unsigned long long);
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  PARAM_NCCL_CUDA_TRY(err, cudaGetDriverEntryPointByVersion, "cuMemGetAddressRange", &entry, 12000,
                      cudaEnableDefault, &found);
#else
  PARAM_NCCL_CUDA_TRY(err, cudaGetDriverEntryPoint, "cuMemGetAddressRange", &entry,
                      cudaEnableDefault, &found);
#endif
  if (found != cudaDriverEntryPointSuccess || entry == nullptr) {
    return kit::Fail(err, kit::kUnimplemented, "the driver has no cuMemGetAddressRange");
  }
  unsigned long long base = 0;
  const int result = reinterpret_cast<RangeFn>(entry)(
      &base, bytes, static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(data)));
  if (result == 0) return kit::kOk;
  return kit::Fail(err, kit::kInvalidArgument,
                   "buffer_register: not device memory (cuMemGetAddressRange: error %d)", result);
}

// What a communicator holds, given back; the end of what was started, waited for.
std::int32_t Finalize(Context& ctx, Comm& comm, param_error* err) {
  {
    const Inside inside(ctx, comm);
    if (!inside.ok()) return FailClosed(comm, err);
    for (void* const handle : comm.registered) {
      const ncclResult_t result = ncclCommDeregister(comm.raw, handle);
      if (IsFailure(result)) return FailWith(err, "ncclCommDeregister", result, comm.raw);
    }
    comm.registered.clear();
  }
  PARAM_KIT_TRY(AwaitReady(ctx, comm, "ncclCommDeregister", std::nullopt, err));
  {
    const Inside inside(ctx, comm);
    if (!inside.ok()) return FailClosed(comm, err);
    const ncclResult_t result = ncclCommFinalize(comm.raw);
    if (IsFailure(result)) return FailWith(err, "ncclCommFinalize", result, comm.raw);
  }
  return AwaitReady(ctx, comm, "ncclCommFinalize", std::nullopt, err);
}

}  // namespace

std::int32_t UniqueId(param_ctx*, std::uint8_t id[PARAM_COMM_ID_BYTES], param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    ncclUniqueId unique = {};
    const ncclResult_t result = ncclGetUniqueId(&unique);
    if (result != ncclSuccess) return FailWith(err, "ncclGetUniqueId", result, nullptr);
    std::memset(id, 0, PARAM_COMM_ID_BYTES);
    std::memcpy(id, &unique, sizeof(unique));
    return kit::kOk;
  });
}

std::int32_t CommCreate(param_ctx* raw, const std::uint8_t id[PARAM_COMM_ID_BYTES],
                        std::int32_t rank, std::int32_t size, std::int64_t deadline_ns,
                        param_comm** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    if (size < 1 || rank < 0 || rank >= size) {
      return kit::Fail(err, kit::kInvalidArgument, "rank %d of %d", rank, size);
    }
    PARAM_KIT_TRY(Enter(ctx, err));
    const Deadline deadline = After(deadline_ns);
    ncclUniqueId unique = {};
    std::memcpy(&unique, id, sizeof(unique));
    Progress(ctx, "bootstrap");
    auto comm = std::make_unique<Comm>();
    comm->rank = rank;
    comm->size = size;
    ncclConfig_t config = NonBlocking();
    const ncclResult_t result = ncclCommInitRankConfig(&comm->raw, size, unique, rank, &config);
    if (IsFailure(result) || comm->raw == nullptr) {
      const std::int32_t code = FailWith(err, "ncclCommInitRankConfig", result, nullptr);
      if (comm->raw != nullptr) Abort(*comm);
      return code == kit::kOk ? kit::Fail(err, kit::kInternal, "no communicator made") : code;
    }
    if (const std::int32_t code = Finish(ctx, *comm, deadline, err); code != kit::kOk) {
      Abort(*comm);
      return code;
    }
    *out = Keep(ctx, std::move(comm));
    return kit::kOk;
  });
}

// A negative color takes part and gets none: *out is null.
std::int32_t CommSplit(param_ctx* raw, param_comm* from, std::int32_t color, std::int32_t key,
                       param_comm** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    Comm& parent = *Of(from);
    PARAM_KIT_TRY(Enter(ctx, err));
    auto comm = std::make_unique<Comm>();
    ncclConfig_t config = NonBlocking();
    {
      const Inside inside(ctx, parent);
      if (!inside.ok()) return FailClosed(parent, err);
      const ncclResult_t result = ncclCommSplit(parent.raw, color < 0 ? NCCL_SPLIT_NOCOLOR : color,
                                                key, &comm->raw, &config);
      if (IsFailure(result)) return FailWith(err, "ncclCommSplit", result, parent.raw);
    }
    // The new handle is there once the old communicator is through.
    if (const std::int32_t code = AwaitReady(ctx, parent, "ncclCommSplit", std::nullopt, err);
        code != kit::kOk) {
      static_cast<void>(comm.release());  // NCCL may yet write the handle into it
      return code;
    }
    *out = nullptr;
    if (color < 0 || comm->raw == nullptr) {
      return color < 0 ? std::int32_t{kit::kOk}
                       : kit::Fail(err, kit::kInternal, "ncclCommSplit made no communicator");
    }
    if (const std::int32_t code = Finish(ctx, *comm, std::nullopt, err); code != kit::kOk) {
      Abort(*comm);
      return code;
    }
    *out = Keep(ctx, std::move(comm));
    return kit::kOk;
  });
}

std::int32_t CommDestroy(param_ctx* raw, param_comm* handle, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    const std::unique_ptr<Comm> comm = Take(ctx, Of(handle));
    if (comm == nullptr || comm->gate.closed()) return kit::kOk;  // an abort has freed it
    std::int32_t code = Enter(ctx, err);
    if (code == kit::kOk) code = Finalize(ctx, *comm, err);
    if (code != kit::kOk) {
      Abort(*comm);
      return code;
    }
    if (!comm->gate.Close(std::chrono::milliseconds(0))) return kit::kOk;
    const ncclResult_t result = ncclCommDestroy(comm->raw);
    return IsFailure(result) ? FailWith(err, "ncclCommDestroy", result, nullptr)
                             : std::int32_t{kit::kOk};
  });
}

// Leaves our side of it to comm_destroy or close: other threads may look at it still.
void CommAbort(param_ctx*, param_comm* comm) {
  static_cast<void>(kit::Guard(nullptr, [&]() -> std::int32_t {
    Abort(*Of(comm));
    return kit::kOk;
  }));
}

std::int32_t CommAsyncError(param_ctx* raw, param_comm* handle, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Comm& comm = *Of(handle);
    const Inside inside(*Of(raw), comm);
    if (!inside.ok()) return FailClosed(comm, err);
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm.raw, &state);
    if (asked != ncclSuccess) return FailWith(err, "ncclCommGetAsyncError", asked, comm.raw);
    return IsFailure(state) ? FailWith(err, "asynchronous error", state, comm.raw)
                            : std::int32_t{kit::kOk};
  });
}

std::int32_t BufferRegister(param_ctx* raw, param_comm* handle, param_buffer* buffer,
                            param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    Comm& comm = *Of(handle);
    PARAM_KIT_TRY(Enter(ctx, err));
    void* const data = ctx.device->buffer_native(ctx.device_ctx, buffer);
    if (data == nullptr) {
      return kit::Fail(err, kit::kInvalidArgument, "buffer_register: no device memory");
    }
    std::size_t bytes = 0;
    PARAM_KIT_TRY(SizeOf(data, &bytes, err));
    // Grows first: a handle that cannot be noted would never be given back.
    comm.registered.reserve(comm.registered.size() + 1);
    void* registered = nullptr;
    {
      const Inside inside(ctx, comm);
      if (!inside.ok()) return FailClosed(comm, err);
      const ncclResult_t result = ncclCommRegister(comm.raw, data, bytes, &registered);
      if (IsFailure(result)) return FailWith(err, "ncclCommRegister", result, comm.raw);
    }
    PARAM_KIT_TRY(AwaitReady(ctx, comm, "ncclCommRegister", std::nullopt, err));
    if (registered != nullptr) comm.registered.push_back(registered);
    return kit::kOk;
  });
}

}  // namespace param::nccl
