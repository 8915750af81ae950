#pragma once
// What stands behind the boundary's opaque handles on a CUDA device.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "agent/backend/kit.h"
#include "agent/backends/cuda/errors.h"
#include "agent/backends/cuda/nvml.h"

// Memory. Host memory is pageable and out of the device's reach; pinned and device memory are not.
struct param_buffer {
  param_memory_kind kind = PARAM_MEMORY_HOST;
  void* data = nullptr;
  std::size_t bytes = 0;
};

// An ordered queue, with the mailbox through which the host lets held work go.
struct param_stream {
  cudaStream_t stream = nullptr;
  std::uint64_t* mailbox =
      nullptr;  // pinned: [0] released up to, written here; [1] expired, by the device
  std::uint64_t* mailbox_on_device = nullptr;
  std::uint64_t tickets = 0;  // holds queued so far
};

struct param_event {
  cudaEvent_t event = nullptr;
};

struct param_graph {
  cudaGraphExec_t exec = nullptr;
};

// A prepared operation; one class per library.
struct param_op {
  virtual ~param_op() = default;
  virtual std::size_t workspace_bytes() const { return 0; }
  // Does not allocate and does not wait.
  virtual std::int32_t Enqueue(param_ctx& ctx, cudaStream_t stream, const param_operand* operands,
                               std::size_t count, param_buffer* workspace, param_error* err) = 0;
  // What really runs, as a JSON object of texts.
  virtual std::string Info() const = 0;
};

// One device. One thread at a time, as the boundary says; any thread.
struct param_ctx {
  const param_host* host = nullptr;
  int device = 0;
  cudaDeviceProp properties = {};
  cublasLtHandle_t lt = nullptr;
  cublasHandle_t blas = nullptr;    // made when first asked for: it costs memory and a second
  cudaStream_t internal = nullptr;  // copies, measuring peaks and algorithms
  cudaEvent_t begin = nullptr, end = nullptr;  // of the same
  void* flush = nullptr;                       // twice the L2 cache, made when first asked for
  std::size_t flush_bytes = 0;
  float* one = nullptr;  // 1.0f on the device: the scale of f8 operands
  std::unique_ptr<param::cuda::Nvml> nvml;
  std::unique_ptr<param::cuda::NvmlDevice> nvml_device;
  std::string lost;  // why the device is gone; "" while it is there

  int major() const { return properties.major; }
  int minor() const { return properties.minor; }
  std::string Capability() const { return std::to_string(major()) + "." + std::to_string(minor()); }
};

namespace param::cuda {

// Our kernels are built for compute capability 8.0 and later.
inline constexpr int kOldestMajor = 8;

// The first line of every function with a context: makes its device the thread's current one, and
// INTERNAL once the device is lost (nothing on it can succeed any more; the process must go).
std::int32_t Enter(param_ctx* ctx, param_error* err);

// Device memory for the length of a scope. `data` is null until Allocate succeeds.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  cudaError_t Allocate(std::size_t bytes);
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// The device's best workspace for cuBLASLt, as NVIDIA recommends: 32 MiB from Hopper on, else 8
// MiB.
std::size_t WorkspaceLimit(const param_ctx& ctx);

// ---- table entries, by file ---------------------------------------------------------------------

// inventory.cc
std::int32_t Probe(param_error* why);
std::int32_t DescribeDevices(char* json, std::size_t capacity, param_error* err);
std::int32_t Clocks(param_ctx* ctx, char* json, std::size_t capacity, param_error* err);

// context.cc
std::int32_t Open(const param_host* host, std::int32_t device, param_ctx** out, param_error* err);
void Close(param_ctx* ctx);
std::int32_t BufferCreate(param_ctx* ctx, param_memory_kind kind, std::size_t bytes,
                          param_buffer** out, param_error* err);
void BufferDestroy(param_ctx* ctx, param_buffer* buffer);
std::int32_t BufferWrite(param_ctx* ctx, param_buffer* buffer, std::size_t offset, const void* from,
                         std::size_t bytes, param_error* err);
std::int32_t BufferRead(param_ctx* ctx, param_buffer* buffer, std::size_t offset, void* to,
                        std::size_t bytes, param_error* err);
void* BufferNative(param_ctx* ctx, param_buffer* buffer);

// stream.cc
std::int32_t StreamCreate(param_ctx* ctx, param_stream** out, param_error* err);
void StreamDestroy(param_ctx* ctx, param_stream* stream);
std::int32_t StreamSynchronize(param_ctx* ctx, param_stream* stream, param_error* err);
void* StreamNative(param_ctx* ctx, param_stream* stream);
std::int32_t EventCreate(param_ctx* ctx, param_event** out, param_error* err);
void EventDestroy(param_ctx* ctx, param_event* event);
std::int32_t EventRecord(param_ctx* ctx, param_event* event, param_stream* stream,
                         param_error* err);
std::int32_t EventSynchronize(param_ctx* ctx, param_event* event, param_error* err);
std::int32_t StreamWaitEvent(param_ctx* ctx, param_stream* stream, param_event* event,
                             param_error* err);
std::int32_t EventElapsedNs(param_ctx* ctx, param_event* begin, param_event* end, double* out,
                            param_error* err);
std::int32_t GraphBegin(param_ctx* ctx, param_stream* stream, param_error* err);
std::int32_t GraphEnd(param_ctx* ctx, param_stream* stream, param_graph** out, param_error* err);
std::int32_t GraphLaunch(param_ctx* ctx, param_graph* graph, param_stream* stream,
                         param_error* err);
void GraphDestroy(param_ctx* ctx, param_graph* graph);
std::int32_t CacheFlush(param_ctx* ctx, param_stream* stream, std::uint64_t* bytes_out,
                        param_error* err);
std::int32_t StreamHold(param_ctx* ctx, param_stream* stream, param_error* err);
std::int32_t StreamRelease(param_ctx* ctx, param_stream* stream, param_error* err);

// ops.cc
std::int32_t OpCreate(param_ctx* ctx, const param_op_desc* desc, param_op** out, param_error* err);
void OpDestroy(param_ctx* ctx, param_op* op);
std::size_t OpWorkspaceBytes(param_ctx* ctx, param_op* op);
std::int32_t OpEnqueue(param_ctx* ctx, param_op* op, param_stream* stream,
                       const param_operand* operands, std::size_t count, param_buffer* workspace,
                       param_error* err);
std::int32_t OpInfo(param_ctx* ctx, param_op* op, char* json, std::size_t capacity,
                    param_error* err);

// peak.cc
std::int32_t PeakFlops(param_ctx* ctx, param_dtype dtype, double* out, char* how,
                       std::size_t capacity, param_error* err);

}  // namespace param::cuda
