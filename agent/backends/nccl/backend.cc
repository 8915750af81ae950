// The one exported symbol, the table behind it, and the context.

#include <net/if.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "agent/backends/nccl/state.h"

namespace param::nccl {
namespace {

// What everything here needs of the device's table.
bool HasWhatWeNeed(const param_device_v1& device) {
  return device.buffer_create != nullptr && device.buffer_destroy != nullptr &&
         device.buffer_native != nullptr && device.stream_create != nullptr &&
         device.stream_destroy != nullptr && device.stream_native != nullptr;
}

void Release(Context& ctx) {
  ctx.watch.Stop();
  for (const auto& comm : ctx.comms) Abort(*comm);  // does nothing where one is gone already
  if (Enter(ctx, nullptr) == kit::kOk) {
    for (const auto& request : ctx.requests) {
      if (request->event != nullptr) static_cast<void>(cudaEventDestroy(request->event));
    }
    static_cast<void>(cudaGetLastError());
  }
  if (ctx.stream != nullptr) ctx.device->stream_destroy(ctx.device_ctx, ctx.stream);
  if (ctx.scratch != nullptr) ctx.device->buffer_destroy(ctx.device_ctx, ctx.scratch);
}

// What the job asks for goes before what the node has set. NCCL takes names only: an address or a
// network stays without effect on it. Before the first communicator, when NCCL reads it.
void UseInterface() {
  const char* const wanted = std::getenv("PARAM_INTERFACE");
  if (wanted == nullptr || ::if_nametoindex(wanted) == 0) return;
  ::setenv("NCCL_SOCKET_IFNAME", ("=" + std::string(wanted)).c_str(), 1);  // "=": not a prefix
}

// The device's table does not say which CUDA device is behind it; memory that it made does.
std::int32_t Prepare(Context& ctx, param_error* err) {
  UseInterface();
  PARAM_KIT_TRY(
      ctx.device->buffer_create(ctx.device_ctx, PARAM_MEMORY_DEVICE, 256, &ctx.scratch, err));
  PARAM_KIT_TRY(ctx.device->stream_create(ctx.device_ctx, &ctx.stream, err));
  ctx.scratch_data = ctx.device->buffer_native(ctx.device_ctx, ctx.scratch);
  cudaPointerAttributes where = {};
  PARAM_NCCL_CUDA_TRY(err, cudaPointerGetAttributes, &where, ctx.scratch_data);
  if (where.type != cudaMemoryTypeDevice) {
    return kit::Fail(err, kit::kFailedPrecondition, "memory of device backend %s is no GPU's",
                     ctx.device->kind);
  }
  ctx.cuda_device = where.device;
  PARAM_KIT_TRY(Enter(ctx, err));
  PARAM_NCCL_CUDA_TRY(err, cudaDeviceGetAttribute, &ctx.major, cudaDevAttrComputeCapabilityMajor,
                      ctx.cuda_device);
  const ncclResult_t result = ncclGetVersion(&ctx.version);
  if (result != ncclSuccess) return FailWith(err, "ncclGetVersion", result, nullptr);
  return kit::kOk;
}

constexpr param_comm_v1 kComm = {
    .struct_size = sizeof(param_comm_v1),
    .kind = "nccl",
    .probe = Probe,
    .open = Open,
    .close = Close,
    .unique_id = UniqueId,
    .comm_create = CommCreate,
    .comm_split = CommSplit,
    .comm_destroy = CommDestroy,
    .comm_abort = CommAbort,
    .comm_async_error = CommAsyncError,
    .buffer_register = BufferRegister,
    .group_begin = GroupBegin,
    .group_end = GroupEnd,
    .op_create = OpCreate,
    .op_destroy = OpDestroy,
    .op_workspace_bytes = OpWorkspaceBytes,
    .op_enqueue = OpEnqueue,
    .request_test = RequestTest,
    .request_wait = RequestWait,
    .op_info = OpInfo,
};

const void* Table(const char* name) {
  return name != nullptr && std::strcmp(name, "comm") == 0 ? &kComm : nullptr;
}

constexpr param_backend_v1 kBackend = {
    .struct_size = sizeof(param_backend_v1),
    .abi_major = PARAM_BACKEND_ABI_MAJOR,
    .abi_minor = PARAM_BACKEND_ABI_MINOR,
    .name = "nccl",
    .version = PARAM_BACKEND_VERSION,
    .table = Table,
};

}  // namespace

// NCCL itself is there, or this object had not been loaded.
std::int32_t Probe(param_error* why) {
  std::int32_t devices = -1;
  static_cast<void>(kit::Guard(why, [&]() -> std::int32_t {
    int count = 0;
    PARAM_NCCL_CUDA_TRY(why, cudaGetDeviceCount, &count);
    if (count == 0) return kit::Fail(why, kit::kFailedPrecondition, "there is no CUDA device");
    devices = count;
    return kit::kOk;
  }));
  return devices;
}

std::int32_t Open(const param_host* host, const param_device_v1* device, param_ctx* device_ctx,
                  param_ctx** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (device == nullptr || device_ctx == nullptr || std::strcmp(device->kind, "cuda") != 0 ||
        !HasWhatWeNeed(*device)) {
      return kit::Fail(err, kit::kFailedPrecondition,
                       "nccl works on memory and streams of backend cuda, not of %s",
                       device == nullptr ? "none" : device->kind);
    }
    auto ctx = std::make_unique<Context>();
    ctx->host = host;
    ctx->device = device;
    ctx->device_ctx = device_ctx;
    if (const std::int32_t code = Prepare(*ctx, err); code != kit::kOk) {
      Release(*ctx);
      return code;
    }
    *out = reinterpret_cast<param_ctx*>(ctx.release());
    return kit::kOk;
  });
}

void Close(param_ctx* raw) {
  if (raw == nullptr) return;
  const std::unique_ptr<Context> ctx(Of(raw));
  static_cast<void>(kit::Guard(nullptr, [&]() -> std::int32_t {
    Release(*ctx);
    return kit::kOk;
  }));
}

}  // namespace param::nccl

extern "C" const param_backend_v1* param_backend_entry_v1(void) { return &param::nccl::kBackend; }
