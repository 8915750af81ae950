#include "tests/fakes/cuda_model.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

struct param_buffer {
  std::vector<char> bytes;
};

struct param_graph {
  std::deque<param_stream::Work> work;
};

struct param_ctx {
  int device = 0;
  std::set<param_stream*> streams;
  void Drain() const {
    for (param_stream* const stream : streams) stream->Drain();
  }
};

struct CUevent_st {
  std::shared_ptr<std::atomic<bool>> done = std::make_shared<std::atomic<bool>>(true);
};

namespace param::cuda_model {
namespace {

// Device memory by its address: size and device.
struct Allocations {
  std::mutex mutex;
  std::map<const void*, std::pair<std::size_t, int>> known;
};
Allocations& AllAllocations() {
  static auto* const all = new Allocations();
  return *all;
}

std::int32_t BufferCreate(param_ctx* ctx, param_memory_kind, std::size_t bytes, param_buffer** out,
                          param_error*) {
  *out = new param_buffer{std::vector<char>(bytes == 0 ? 1 : bytes)};
  const std::lock_guard lock(AllAllocations().mutex);
  AllAllocations().known[(*out)->bytes.data()] = {bytes, ctx->device};
  return 0;
}

void BufferDestroy(param_ctx*, param_buffer* buffer) {
  {
    const std::lock_guard lock(AllAllocations().mutex);
    AllAllocations().known.erase(buffer->bytes.data());
  }
  delete buffer;
}

std::int32_t BufferWrite(param_ctx* ctx, param_buffer* buffer, std::size_t offset, const void* from,
                         std::size_t bytes, param_error*) {
  ctx->Drain();
  if (bytes > 0) std::memcpy(buffer->bytes.data() + offset, from, bytes);
  return 0;
}

std::int32_t BufferRead(param_ctx* ctx, param_buffer* buffer, std::size_t offset, void* to,
                        std::size_t bytes, param_error*) {
  ctx->Drain();
  if (bytes > 0) std::memcpy(to, buffer->bytes.data() + offset, bytes);
  return 0;
}

int AddressRange(unsigned long long* base, std::size_t* bytes, unsigned long long of) {
  const std::lock_guard lock(AllAllocations().mutex);
  const auto found =
      AllAllocations().known.find(reinterpret_cast<void*>(static_cast<std::uintptr_t>(of)));
  if (found == AllAllocations().known.end()) return 1;
  *base = of;
  *bytes = found->second.first;
  return 0;
}

param_device_v1 Table() {
  param_device_v1 t = {};
  t.struct_size = sizeof(t);
  t.kind = "cuda";
  t.open = [](const param_host*, std::int32_t device, param_ctx** out, param_error*) {
    *out = new param_ctx{device, {}};
    return std::int32_t{0};
  };
  t.close = [](param_ctx* ctx) { delete ctx; };
  t.buffer_create = BufferCreate;
  t.buffer_destroy = BufferDestroy;
  t.buffer_write = BufferWrite;
  t.buffer_read = BufferRead;
  t.buffer_native = [](param_ctx*, param_buffer* buffer) -> void* { return buffer->bytes.data(); };
  t.stream_create = [](param_ctx* ctx, param_stream** out, param_error*) {
    *out = new param_stream();
    ctx->streams.insert(*out);
    return std::int32_t{0};
  };
  t.stream_destroy = [](param_ctx* ctx, param_stream* stream) {
    ctx->streams.erase(stream);
    delete stream;
  };
  t.stream_synchronize = [](param_ctx*, param_stream* stream, param_error*) {
    stream->Drain();
    return std::int32_t{0};
  };
  t.stream_native = [](param_ctx*, param_stream* stream) -> void* { return stream; };
  t.graph_begin = [](param_ctx*, param_stream* stream, param_error*) {
    stream->BeginCapture();
    return std::int32_t{0};
  };
  t.graph_end = [](param_ctx*, param_stream* stream, param_graph** out, param_error*) {
    *out = new param_graph{stream->EndCapture()};
    return std::int32_t{0};
  };
  t.graph_launch = [](param_ctx*, param_graph* graph, param_stream* stream, param_error*) {
    for (const auto& work : graph->work) stream->Add(work);
    return std::int32_t{0};
  };
  t.graph_destroy = [](param_ctx*, param_graph* graph) { delete graph; };
  return t;
}

}  // namespace

LoadedBackend Backend() {
  LoadedBackend backend;
  backend.name = "cuda";
  backend.device = Table();
  return backend;
}

}  // namespace param::cuda_model

param_stream::~param_stream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void param_stream::Add(Work work) {
  const std::lock_guard lock(mutex_);
  (capturing_ ? captured_ : queue_).push_back(std::move(work));
  changed_.notify_all();
}

void param_stream::Drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
}

void param_stream::BeginCapture() {
  const std::lock_guard lock(mutex_);
  capturing_ = true;
}

std::deque<param_stream::Work> param_stream::EndCapture() {
  const std::lock_guard lock(mutex_);
  capturing_ = false;
  return std::exchange(captured_, {});
}

void param_stream::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

// ---- the runtime
// -----------------------------------------------------------------------------------

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* data) {
  auto& all = param::cuda_model::AllAllocations();
  const std::lock_guard lock(all.mutex);
  const auto found = all.known.find(data);
  if (found == all.known.end()) return cudaErrorInvalidValue;
  *out = {};
  out->type = cudaMemoryTypeDevice;
  out->device = found->second.second;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned int,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  if (std::strcmp(name, "cuMemGetAddressRange") != 0) return cudaErrorInvalidValue;
  *out = reinterpret_cast<void*>(&param::cuda_model::AddressRange);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned int) {
  *out = new CUevent_st();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->done = std::make_shared<std::atomic<bool>>(false);
  reinterpret_cast<param_stream*>(stream)->Add([done = event->done] { *done = true; });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return *event->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  reinterpret_cast<param_stream*>(stream)->Add([=] { std::memcpy(dst, src, bytes); });
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "words for an error"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorOfTheModel"; }

}  // extern "C"
