// The cpu backend's table "device".

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "agent/backends/cpu/machine.h"
#include "agent/backends/cpu/state.h"

namespace param::cpu {
namespace {

constexpr std::size_t kPage = 4096;
// From here on pages are touched first by the threads that will work on them, which places them
// near these threads on machines with several nodes of memory.
constexpr std::size_t kTouchBytes = std::size_t{16} << 20;

std::int32_t Probe(param_error*) { return 1; }

std::int32_t Describe(char* json, std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&] {
    const std::string device =
        kit::JsonObject()
            .Integer("index", 0)
            .Text("name", ProcessorName())
            .Integer("memory_bytes", MemoryBytes())
            .Integer("cores", static_cast<std::int64_t>(AllowedProcessors().size()))
            .Integer("last_level_cache_bytes", LastLevelCacheBytes())
            .Done();
    const std::string libraries = kit::JsonObject()
                                      .Text("onednn", OnednnVersion())
                                      .Text("openblas", OpenblasVersion())
                                      .Done();
    return kit::PutText(
        kit::JsonObject().Raw("devices", "[" + device + "]").Raw("libraries", libraries).Done(),
        json, capacity, err);
  });
}

std::int32_t Open(const param_host* host, std::int32_t device, param_ctx** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (device != 0) {
      return kit::Fail(err, kit::kNotFound, "no device %d: all processors are device 0", device);
    }
    auto ctx = std::make_unique<param_ctx>();
    ctx->host = host;
    ctx->threads = host->threads > 0 ? host->threads
                                     : std::max(1, static_cast<int>(AllowedProcessors().size()));
    UseThreads(ctx->threads);
    *out = ctx.release();
    return kit::kOk;
  });
}

void Close(param_ctx* ctx) {
  std::free(ctx->flush);
  delete ctx;
}

// Null when there is not so much.
unsigned char* Allocate(std::size_t bytes, int threads) {
  const std::size_t rounded = std::max(kPage, (bytes + kPage - 1) / kPage * kPage);
  auto* const data = static_cast<unsigned char*>(std::aligned_alloc(kPage, rounded));
  if (data == nullptr || rounded < kTouchBytes) return data;
  const auto pages = static_cast<std::int64_t>(rounded / kPage);
  Parallel(threads, [=](int i) {
    for (std::int64_t page = pages * i / threads; page < pages * (i + 1) / threads; ++page) {
      data[static_cast<std::size_t>(page) * kPage] = 0;
    }
  });
  return data;
}

std::int32_t BufferCreate(param_ctx* ctx, param_memory_kind kind, std::size_t bytes,
                          param_buffer** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (kind == PARAM_MEMORY_SYMMETRIC) {
      return kit::Fail(err, kit::kUnimplemented, "backend cpu has no symmetric memory");
    }
    // The kernel would promise more than it has and kill the process when that is used.
    const std::int64_t limit = MemoryBytes();
    auto buffer = std::make_unique<param_buffer>();
    if (bytes <= static_cast<std::size_t>(limit)) buffer->data = Allocate(bytes, ctx->threads);
    if (buffer->data == nullptr) {
      return kit::Fail(err, kit::kResourceExhausted, "%zu bytes of host memory, of %lld", bytes,
                       static_cast<long long>(limit));
    }
    buffer->bytes = bytes;
    *out = buffer.release();
    return kit::kOk;
  });
}

void BufferDestroy(param_ctx*, param_buffer* buffer) {
  std::free(buffer->data);
  delete buffer;
}

std::int32_t BufferWrite(param_ctx*, param_buffer* buffer, std::size_t offset, const void* from,
                         std::size_t bytes, param_error* err) {
  PARAM_KIT_TRY(kit::CheckRange("write", offset, bytes, buffer->bytes, err));
  if (bytes > 0) std::memcpy(buffer->data + offset, from, bytes);
  return kit::kOk;
}

std::int32_t BufferRead(param_ctx*, param_buffer* buffer, std::size_t offset, void* to,
                        std::size_t bytes, param_error* err) {
  PARAM_KIT_TRY(kit::CheckRange("read", offset, bytes, buffer->bytes, err));
  if (bytes > 0) std::memcpy(to, buffer->data + offset, bytes);
  return kit::kOk;
}

void* BufferNative(param_ctx*, param_buffer* buffer) { return buffer->data; }

template <typename T>
std::int32_t Make(T** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    *out = new T();
    return kit::kOk;
  });
}

std::int32_t StreamCreate(param_ctx*, param_stream** out, param_error* err) {
  return Make(out, err);
}
void StreamDestroy(param_ctx*, param_stream* stream) { delete stream; }
std::int32_t StreamSynchronize(param_ctx*, param_stream*, param_error*) { return kit::kOk; }
std::int32_t StreamWaitEvent(param_ctx*, param_stream*, param_event*, param_error*) {
  return kit::kOk;  // whatever was recorded is complete
}

std::int32_t EventCreate(param_ctx*, param_event** out, param_error* err) { return Make(out, err); }
void EventDestroy(param_ctx*, param_event* event) { delete event; }

std::int32_t EventRecord(param_ctx*, param_event* event, param_stream*, param_error*) {
  event->at_ns = MonotonicNs();
  return kit::kOk;
}

std::int32_t EventSynchronize(param_ctx*, param_event* event, param_error* err) {
  if (event->at_ns >= 0) return kit::kOk;
  return kit::Fail(err, kit::kFailedPrecondition, "the event was never recorded");
}

std::int32_t EventElapsed(param_ctx*, param_event* begin, param_event* end, double* out,
                          param_error* err) {
  if (begin->at_ns < 0 || end->at_ns < 0) {
    return kit::Fail(err, kit::kFailedPrecondition, "an event was never recorded");
  }
  *out = static_cast<double>(end->at_ns - begin->at_ns);
  return kit::kOk;
}

// One access per cache line, which no compiler or library may turn into stores that bypass the
// caches, as a large memset does.
void TouchLines(volatile unsigned char* data, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < bytes; at += kLine) {
    data[at] = static_cast<unsigned char>(data[at] + 1U);
  }
}

// Reads and writes twice the last-level caches, every thread its part, so that each cache sees
// enough of it.
std::int32_t CacheFlush(param_ctx* ctx, param_stream*, std::uint64_t* bytes_out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (ctx->flush == nullptr) {
      ctx->flush_bytes = 2 * static_cast<std::size_t>(LastLevelCacheBytes());
      ctx->flush = Allocate(ctx->flush_bytes, ctx->threads);
      if (ctx->flush == nullptr) {
        return kit::Fail(err, kit::kResourceExhausted, "%zu bytes to flush the caches with",
                         ctx->flush_bytes);
      }
    }
    const std::size_t part = ctx->flush_bytes / static_cast<std::size_t>(ctx->threads);
    Parallel(ctx->threads,
             [=](int i) { TouchLines(ctx->flush + static_cast<std::size_t>(i) * part, part); });
    *bytes_out = part * static_cast<std::size_t>(ctx->threads);
    return kit::kOk;
  });
}

std::int32_t Clocks(param_ctx*, char* json, std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&] {
    kit::JsonObject clocks;
    if (const double hz = ClockHz(); hz > 0) clocks.Number("cpu_hz", hz);
    if (const std::string governor = Governor(); !governor.empty()) {
      clocks.Text("governor", governor);
    }
    return kit::PutText(clocks.Done(), json, capacity, err);
  });
}

constexpr param_device_v1 MakeTable() {
  param_device_v1 t = {};
  t.struct_size = sizeof(t);
  t.kind = "cpu";
  t.probe = Probe;
  t.describe = Describe;
  t.open = Open;
  t.close = Close;
  t.buffer_create = BufferCreate;
  t.buffer_destroy = BufferDestroy;
  t.buffer_write = BufferWrite;
  t.buffer_read = BufferRead;
  t.buffer_native = BufferNative;
  t.stream_create = StreamCreate;
  t.stream_destroy = StreamDestroy;
  t.stream_synchronize = StreamSynchronize;
  t.event_create = EventCreate;
  t.event_destroy = EventDestroy;
  t.event_record = EventRecord;
  t.event_synchronize = EventSynchronize;
  t.stream_wait_event = StreamWaitEvent;
  t.event_elapsed_ns = EventElapsed;
  t.cache_flush = CacheFlush;
  t.clocks = Clocks;
  t.peak_flops = PeakFlops;
  t.op_create = OpCreate;
  t.op_destroy = OpDestroy;
  t.op_workspace_bytes = OpWorkspaceBytes;
  t.op_enqueue = OpEnqueue;
  t.op_info = OpInfo;
  return t;
}

}  // namespace

std::int64_t MonotonicNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void UseThreads(int threads) {
  thread_local int used = 0;
  if (used == threads) return;
  ::omp_set_num_threads(threads);
  ::openblas_set_num_threads(threads);
  used = threads;
}

const param_device_v1* DeviceTable() {
  static constexpr param_device_v1 kTable = MakeTable();
  return &kTable;
}

}  // namespace param::cpu
