// The one exported symbol and the table behind it.

#include <cstring>

#include "agent/backends/cuda/context.h"

namespace param::cuda {
namespace {

constexpr param_device_v1 kDevice = {
    .struct_size = sizeof(param_device_v1),
    .kind = "cuda",
    .probe = Probe,
    .describe = DescribeDevices,
    .open = Open,
    .close = Close,
    .buffer_create = BufferCreate,
    .buffer_destroy = BufferDestroy,
    .buffer_write = BufferWrite,
    .buffer_read = BufferRead,
    .buffer_native = BufferNative,
    .stream_create = StreamCreate,
    .stream_destroy = StreamDestroy,
    .stream_synchronize = StreamSynchronize,
    .stream_native = StreamNative,
    .event_create = EventCreate,
    .event_destroy = EventDestroy,
    .event_record = EventRecord,
    .event_synchronize = EventSynchronize,
    .stream_wait_event = StreamWaitEvent,
    .event_elapsed_ns = EventElapsedNs,
    .graph_begin = GraphBegin,
    .graph_end = GraphEnd,
    .graph_launch = GraphLaunch,
    .graph_destroy = GraphDestroy,
    .cache_flush = CacheFlush,
    .stream_hold = StreamHold,
    .stream_release = StreamRelease,
    .clocks = Clocks,
    .peak_flops = PeakFlops,
    .op_create = OpCreate,
    .op_destroy = OpDestroy,
    .op_workspace_bytes = OpWorkspaceBytes,
    .op_enqueue = OpEnqueue,
    .op_info = OpInfo,
};

const void* Table(const char* name) {
  return name != nullptr && std::strcmp(name, "device") == 0 ? &kDevice : nullptr;
}

constexpr param_backend_v1 kBackend = {
    .struct_size = sizeof(param_backend_v1),
    .abi_major = PARAM_BACKEND_ABI_MAJOR,
    .abi_minor = PARAM_BACKEND_ABI_MINOR,
    .name = "cuda",
    .version = PARAM_BACKEND_VERSION,
    .table = Table,
};

}  // namespace
}  // namespace param::cuda

extern "C" const param_backend_v1* param_backend_entry_v1(void) { return &param::cuda::kBackend; }
