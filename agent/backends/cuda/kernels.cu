#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>

#include "agent/backends/cuda/kernels.h"

namespace param::cuda {
namespace {

constexpr std::uint64_t kHoldLimitNs = 1'000'000'000;

__device__ std::uint64_t NowNs() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void Hold(const volatile std::uint64_t* released, volatile std::uint64_t* expired,
                     std::uint64_t ticket) {
  const std::uint64_t begin = NowNs();
  while (*released < ticket) {
    if (NowNs() - begin > kHoldLimitNs) {
      *expired = ticket;
      __threadfence_system();
      return;
    }
    __nanosleep(100);
  }
}

// A mixer of 64 bits (the finalizer of SplitMix64).
__device__ std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

__device__ void Store(double* at, float value) { *at = value; }
__device__ void Store(float* at, float value) { *at = value; }
__device__ void Store(__half* at, float value) { *at = __float2half(value); }
__device__ void Store(__nv_bfloat16* at, float value) { *at = __float2bfloat16(value); }
__device__ void Store(__nv_fp8_e4m3* at, float value) { *at = __nv_fp8_e4m3(value); }
__device__ void Store(__nv_fp8_e5m2* at, float value) { *at = __nv_fp8_e5m2(value); }
__device__ void Store(signed char* at, float value) {
  *at = static_cast<signed char>(floorf(value * 128.0f));
}

template <typename T>
__global__ void Fill(T* data, std::size_t elements) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < elements; i += step) {
    const float unit = static_cast<float>(Mix(i) >> 40) * 0x1p-24f;  // [0, 1)
    Store(data + i, unit * 2.0f - 1.0f);
  }
}

template <typename T>
void Launch(void* data, std::size_t elements, cudaStream_t stream) {
  constexpr unsigned kThreads = 256;
  const std::size_t wanted = (elements + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>(wanted, 4096));
  Fill<T><<<blocks, kThreads, 0, stream>>>(static_cast<T*>(data), elements);
}

}  // namespace

cudaError_t LaunchHold(const std::uint64_t* released, std::uint64_t* expired, std::uint64_t ticket,
                       cudaStream_t stream) {
  Hold<<<1, 1, 0, stream>>>(released, expired, ticket);
  return cudaGetLastError();
}

cudaError_t LaunchFill(void* data, std::size_t elements, FillType type, cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  switch (type) {
    case FillType::kF64:
      Launch<double>(data, elements, stream);
      break;
    case FillType::kF32:
      Launch<float>(data, elements, stream);
      break;
    case FillType::kF16:
      Launch<__half>(data, elements, stream);
      break;
    case FillType::kBf16:
      Launch<__nv_bfloat16>(data, elements, stream);
      break;
    case FillType::kF8E4M3:
      Launch<__nv_fp8_e4m3>(data, elements, stream);
      break;
    case FillType::kF8E5M2:
      Launch<__nv_fp8_e5m2>(data, elements, stream);
      break;
    case FillType::kI8:
      Launch<signed char>(data, elements, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace param::cuda
