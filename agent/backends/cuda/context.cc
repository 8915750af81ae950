#include "agent/backends/cuda/context.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace param::cuda {
namespace {

constexpr std::size_t kHostAlignment = 4096;

// The runtime's current device belongs to the thread; asking for it each time would cost the hot
// path more than this comparison.
cudaError_t UseDevice(int device) {
  thread_local int current = -1;
  if (current == device) return cudaSuccess;
  const cudaError_t error = cudaSetDevice(device);
  current = error == cudaSuccess ? device : -1;
  return error;
}

// Releases what Open made so far, and what was made later on demand.
void Release(param_ctx& ctx) {
  if (ctx.blas != nullptr) cublasDestroy(ctx.blas);
  if (ctx.lt != nullptr) cublasLtDestroy(ctx.lt);
  if (ctx.begin != nullptr) cudaEventDestroy(ctx.begin);
  if (ctx.end != nullptr) cudaEventDestroy(ctx.end);
  if (ctx.internal != nullptr) cudaStreamDestroy(ctx.internal);
  cudaFree(ctx.flush);
  cudaFree(ctx.one);
  static_cast<void>(cudaGetLastError());
}

std::int32_t Prepare(param_ctx& ctx, param_error* err) {
  PARAM_CUDA_TRY(err, nullptr, UseDevice, ctx.device);
  PARAM_CUDA_TRY(err, nullptr, cudaGetDeviceProperties, &ctx.properties, ctx.device);
  if (ctx.major() < kOldestMajor) {
    return kit::Fail(err, kit::kFailedPrecondition,
                     "device %d (%s) has compute capability %s; 8.0 or later is needed", ctx.device,
                     ctx.properties.name, ctx.Capability().c_str());
  }
  PARAM_CUDA_TRY(err, nullptr, cudaStreamCreateWithFlags, &ctx.internal, cudaStreamNonBlocking);
  PARAM_CUDA_TRY(err, nullptr, cudaEventCreate, &ctx.begin);
  PARAM_CUDA_TRY(err, nullptr, cudaEventCreate, &ctx.end);
  PARAM_CUDA_TRY(err, nullptr, cublasLtCreate, &ctx.lt);
  void* one = nullptr;
  PARAM_CUDA_TRY(err, nullptr, cudaMalloc, &one, sizeof(float));
  ctx.one = static_cast<float*>(one);
  const float value = 1.0F;
  PARAM_CUDA_TRY(err, nullptr, cudaMemcpy, ctx.one, &value, sizeof(value), cudaMemcpyHostToDevice);
  PARAM_CUDA_TRY(err, nullptr, cudaDeviceSynchronize);
  ctx.nvml = Nvml::Load();
  char bus_id[32] = "";
  if (ctx.nvml != nullptr &&
      cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), ctx.device) == cudaSuccess) {
    ctx.nvml_device = ctx.nvml->Device(bus_id);
  }
  return kit::kOk;
}

// A copy between the host and a buffer that the device can reach. Our streams do not wait for the
// default one, so "ordered after all work" is a wait for the whole device, and the copy is waited
// for.
std::int32_t Copy(param_ctx* ctx, void* to, const void* from, std::size_t bytes,
                  cudaMemcpyKind kind, param_error* err) {
  PARAM_CUDA_TRY(err, &ctx->lost, cudaDeviceSynchronize);
  PARAM_CUDA_TRY(err, &ctx->lost, cudaMemcpyAsync, to, from, bytes, kind, ctx->internal);
  PARAM_CUDA_TRY(err, &ctx->lost, cudaStreamSynchronize, ctx->internal);
  return kit::kOk;
}

}  // namespace

std::int32_t Enter(param_ctx* ctx, param_error* err) {
  if (!ctx->lost.empty()) {
    return kit::Fail(err, kit::kInternal, "device %d is lost since %s", ctx->device,
                     ctx->lost.c_str());
  }
  PARAM_CUDA_TRY(err, &ctx->lost, UseDevice, ctx->device);
  return kit::kOk;
}

Scratch::~Scratch() { cudaFree(data_); }

cudaError_t Scratch::Allocate(std::size_t bytes) {
  const cudaError_t error = cudaMalloc(&data_, bytes == 0 ? 1 : bytes);
  if (error != cudaSuccess) {
    data_ = nullptr;
    static_cast<void>(cudaGetLastError());
  }
  return error;
}

std::size_t WorkspaceLimit(const param_ctx& ctx) {
  return static_cast<std::size_t>(ctx.major() >= 9 ? 32 : 8) << 20;
}

std::int32_t Open(const param_host* host, std::int32_t device, param_ctx** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    int count = 0;
    PARAM_CUDA_TRY(err, nullptr, cudaGetDeviceCount, &count);
    if (device < 0 || device >= count) {
      return kit::Fail(err, kit::kNotFound, "no device %d; there are %d", device, count);
    }
    auto ctx = std::make_unique<param_ctx>();
    ctx->host = host;
    ctx->device = device;
    if (const std::int32_t code = Prepare(*ctx, err); code != kit::kOk) {
      Release(*ctx);
      return code;
    }
    *out = ctx.release();
    return kit::kOk;
  });
}

void Close(param_ctx* ctx) {
  if (ctx == nullptr) return;
  static_cast<void>(kit::Guard(nullptr, [&]() -> std::int32_t {
    static_cast<void>(UseDevice(ctx->device));
    Release(*ctx);
    delete ctx;
    return kit::kOk;
  }));
}

std::int32_t BufferCreate(param_ctx* ctx, param_memory_kind kind, std::size_t bytes,
                          param_buffer** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    auto buffer = std::make_unique<param_buffer>();
    buffer->kind = kind;
    buffer->bytes = bytes;
    const std::size_t wanted = bytes == 0 ? 1 : bytes;  // so that it has an address
    if (kind == PARAM_MEMORY_HOST) {
      if (wanted > SIZE_MAX - kHostAlignment) {
        return kit::Fail(err, kit::kResourceExhausted, "%zu bytes of host memory", bytes);
      }
      const std::size_t whole = (wanted + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
      buffer->data = std::aligned_alloc(kHostAlignment, whole);
      if (buffer->data == nullptr) {
        return kit::Fail(err, kit::kResourceExhausted, "%zu bytes of host memory", bytes);
      }
    } else if (kind == PARAM_MEMORY_PINNED || kind == PARAM_MEMORY_DEVICE) {
      const bool pinned = kind == PARAM_MEMORY_PINNED;
      const cudaError_t error = pinned ? cudaHostAlloc(&buffer->data, wanted, cudaHostAllocPortable)
                                       : cudaMalloc(&buffer->data, wanted);
      if (error != cudaSuccess) {
        const std::int32_t code = FailWith(nullptr, "", error, &ctx->lost);
        return kit::Fail(err, static_cast<kit::Code>(code), "%zu bytes of %s memory: %s", bytes,
                         pinned ? "pinned" : "device", cudaGetErrorString(error));
      }
    } else {
      return kit::Fail(err, kit::kUnimplemented, "memory kind %d is not offered by cuda",
                       static_cast<int>(kind));
    }
    *out = buffer.release();
    return kit::kOk;
  });
}

void BufferDestroy(param_ctx* ctx, param_buffer* buffer) {
  if (buffer == nullptr) return;
  if (buffer->kind == PARAM_MEMORY_HOST) {
    std::free(buffer->data);
  } else if (Enter(ctx, nullptr) == kit::kOk) {  // a lost device's memory went with it
    if (buffer->kind == PARAM_MEMORY_PINNED) {
      cudaFreeHost(buffer->data);
    } else {
      cudaFree(buffer->data);
    }
    static_cast<void>(cudaGetLastError());
  }
  delete buffer;
}

std::int32_t BufferWrite(param_ctx* ctx, param_buffer* buffer, std::size_t offset, const void* from,
                         std::size_t bytes, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    PARAM_KIT_TRY(kit::CheckRange("buffer_write", offset, bytes, buffer->bytes, err));
    if (bytes == 0) return kit::kOk;
    char* const to = static_cast<char*>(buffer->data) + offset;
    if (buffer->kind == PARAM_MEMORY_HOST) {
      PARAM_CUDA_TRY(err, &ctx->lost, cudaDeviceSynchronize);
      std::memcpy(to, from, bytes);
      return kit::kOk;
    }
    return Copy(ctx, to, from, bytes, cudaMemcpyDefault, err);
  });
}

std::int32_t BufferRead(param_ctx* ctx, param_buffer* buffer, std::size_t offset, void* to,
                        std::size_t bytes, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    PARAM_KIT_TRY(kit::CheckRange("buffer_read", offset, bytes, buffer->bytes, err));
    if (bytes == 0) return kit::kOk;
    const char* const from = static_cast<const char*>(buffer->data) + offset;
    if (buffer->kind == PARAM_MEMORY_HOST) {
      PARAM_CUDA_TRY(err, &ctx->lost, cudaDeviceSynchronize);
      std::memcpy(to, from, bytes);
      return kit::kOk;
    }
    return Copy(ctx, to, from, bytes, cudaMemcpyDefault, err);
  });
}

void* BufferNative(param_ctx* /*ctx*/, param_buffer* buffer) { return buffer->data; }

}  // namespace param::cuda
