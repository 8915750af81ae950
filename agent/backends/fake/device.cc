// The fake backend's table "device".

#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "agent/backends/fake/state.h"

namespace param::fake {
namespace {

constexpr std::size_t kMaxBufferBytes = std::size_t{8} << 30;
constexpr std::size_t kFlushBytes = 1 << 20;

int DeviceCount() {
  const char* const text = std::getenv("PARAM_FAKE_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

std::int32_t Describe(char* json, std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&] {
    std::string devices;
    for (int i = 0; i < DeviceCount(); ++i) {
      devices += (i == 0 ? "" : ", ") + kit::JsonObject()
                                            .Integer("index", i)
                                            .Text("name", "fake device")
                                            .Integer("memory_bytes", std::int64_t{8} << 30)
                                            .Done();
    }
    return kit::PutText(
        kit::JsonObject().Raw("devices", "[" + devices + "]").Raw("libraries", "{}").Done(), json,
        capacity, err);
  });
}

std::int32_t Open(const param_host* host, std::int32_t device, param_ctx** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (device < 0 || device >= DeviceCount()) {
      return kit::Fail(err, kit::kNotFound, "no device %d, there are %d", device, DeviceCount());
    }
    auto ctx = std::make_unique<param_ctx>();
    ctx->host = host;
    PARAM_KIT_TRY(ParseScript(host->script, &ctx->script, err));
    ctx->faults = std::make_unique<Faults>(host, ctx->script.faults);
    ctx->random = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(host->rank + 1);
    PARAM_KIT_TRY(ctx->faults->Reach("spawn", err));
    *out = ctx.release();
    return kit::kOk;
  });
}

void Close(param_ctx* ctx) {
  param_error ignored;  // nobody can be told at this point
  (void)ctx->faults->Reach("teardown", &ignored);
  delete ctx;
}

std::int32_t BufferCreate(param_ctx*, param_memory_kind kind, std::size_t bytes, param_buffer** out,
                          param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (kind == PARAM_MEMORY_SYMMETRIC) {
      return kit::Fail(err, kit::kUnimplemented, "no symmetric memory");
    }
    if (bytes > kMaxBufferBytes) {
      return kit::Fail(err, kit::kResourceExhausted, "%zu bytes: the fake device has %zu", bytes,
                       kMaxBufferBytes);
    }
    auto buffer = std::make_unique<param_buffer>();
    buffer->data.resize(bytes);
    *out = buffer.release();
    return kit::kOk;
  });
}

void BufferDestroy(param_ctx*, param_buffer* buffer) { delete buffer; }

std::int32_t BufferWrite(param_ctx* ctx, param_buffer* buffer, std::size_t offset, const void* from,
                         std::size_t bytes, param_error* err) {
  PARAM_KIT_TRY(kit::CheckRange("write", offset, bytes, buffer->data.size(), err));
  if (bytes > 0) std::memcpy(buffer->data.data() + offset, from, bytes);
  buffer->version = ++ctx->writes;
  return kit::kOk;
}

std::int32_t BufferRead(param_ctx*, param_buffer* buffer, std::size_t offset, void* to,
                        std::size_t bytes, param_error* err) {
  PARAM_KIT_TRY(kit::CheckRange("read", offset, bytes, buffer->data.size(), err));
  if (bytes > 0) std::memcpy(to, buffer->data.data() + offset, bytes);
  return kit::kOk;
}

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

std::int32_t EventCreate(param_ctx*, param_event** out, param_error* err) { return Make(out, err); }
void EventDestroy(param_ctx*, param_event* event) { delete event; }

std::int32_t EventRecord(param_ctx* ctx, param_event* event, param_stream* stream, param_error*) {
  event->at_ns =
      ctx->script.LatencyNs(ctx->host->rank).has_value() ? stream->now_ns : MonotonicNs();
  event->recorded = true;
  return kit::kOk;
}

std::int32_t EventSynchronize(param_ctx*, param_event* event, param_error* err) {
  if (event->recorded) return kit::kOk;
  return kit::Fail(err, kit::kFailedPrecondition, "the event was never recorded");
}

std::int32_t StreamWaitEvent(param_ctx*, param_stream* stream, param_event* event, param_error*) {
  if (event->recorded && event->at_ns > stream->now_ns) stream->now_ns = event->at_ns;
  return kit::kOk;
}

std::int32_t EventElapsed(param_ctx*, param_event* begin, param_event* end, double* out,
                          param_error* err) {
  if (!begin->recorded || !end->recorded) {
    return kit::Fail(err, kit::kFailedPrecondition, "an event was never recorded");
  }
  *out = end->at_ns - begin->at_ns;
  return kit::kOk;
}

std::int32_t CacheFlush(param_ctx* ctx, param_stream*, std::uint64_t* bytes_out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    ctx->flush.assign(kFlushBytes, static_cast<char>(++ctx->writes));
    *bytes_out = kFlushBytes;
    return kit::kOk;
  });
}

constexpr param_device_v1 MakeTable() {
  param_device_v1 t = {};
  t.struct_size = sizeof(t);
  t.kind = "fake";
  t.probe = Probe;
  t.describe = Describe;
  t.open = Open;
  t.close = Close;
  t.buffer_create = BufferCreate;
  t.buffer_destroy = BufferDestroy;
  t.buffer_write = BufferWrite;
  t.buffer_read = BufferRead;
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
  t.op_create = OpCreate;
  t.op_destroy = OpDestroy;
  t.op_workspace_bytes = OpWorkspaceBytes;
  t.op_enqueue = OpEnqueue;
  t.op_info = OpInfo;
  return t;
}

}  // namespace

std::int32_t Probe(param_error* why) {
  const char* const text = std::getenv("PARAM_FAKE_PROBE");
  if (text == nullptr || text[0] == '\0') return DeviceCount();
  if (std::strcmp(text, "crash") == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  }
  while (std::strcmp(text, "hang") == 0) ::pause();
  kit::Fail(why, kit::kUnavailable, "%s", text);
  return -1;
}

double MonotonicNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The worker says where it is. One that does not verifies first, then warms up five times.
const char* PhaseOf(const param_ctx& ctx) {
  const bool knows = ctx.host->struct_size >= sizeof(param_host) && ctx.host->phase != nullptr;
  const char* const phase = knows ? ctx.host->phase(ctx.host->user) : "";
  if (phase != nullptr && phase[0] != '\0') return phase;
  if (ctx.enqueued <= 1) return "verify";
  return ctx.enqueued <= 6 ? "warmup" : "timed";
}

void SpendTime(param_ctx& ctx, param_stream& stream) {
  std::optional<double> ns = ctx.script.LatencyNs(ctx.host->rank);
  if (!ns) return;
  if (ctx.script.jitter_ns > 0) {
    // splitmix64
    std::uint64_t z = (ctx.random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    *ns += ctx.script.jitter_ns * static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  stream.now_ns += *ns;
  if (!ctx.script.real_time) return;
  timespec left = {static_cast<time_t>(*ns / 1e9),
                   static_cast<long>(std::uint64_t(*ns) % 1000000000)};
  while (::nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

const param_device_v1* DeviceTable() {
  static constexpr param_device_v1 kTable = MakeTable();
  return &kTable;
}

}  // namespace param::fake
