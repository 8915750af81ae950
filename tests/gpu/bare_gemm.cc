#include "tests/gpu/bare_gemm.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <vector>

#include "agent/backend/param_backend.h"

namespace {

struct Types {
  cudaDataType in, out, scale;
  cublasComputeType_t compute;
};

bool TypesOf(int32_t dtype, Types* out) {
  switch (static_cast<param_dtype>(dtype)) {
    case PARAM_DTYPE_F64:
      *out = {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
      return true;
    case PARAM_DTYPE_F32:
      *out = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case PARAM_DTYPE_TF32:
      *out = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
      return true;
    case PARAM_DTYPE_F16:
      *out = {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case PARAM_DTYPE_BF16:
      *out = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case PARAM_DTYPE_F8E4M3:
      *out = {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return true;
    case PARAM_DTYPE_I8:
      *out = {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
      return true;
    case PARAM_DTYPE_F8E5M2:
    case PARAM_DTYPE_U8:
    case PARAM_DTYPE_I32:
    case PARAM_DTYPE_I64:
      return false;
  }
  return false;
}

// Everything of one run; the destructor releases what was made.
struct Loop {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::vector<cudaEvent_t> events;

  ~Loop() {
    for (cudaEvent_t event : events) cudaEventDestroy(event);
    cudaFree(workspace);
    if (stream != nullptr) cudaStreamDestroy(stream);
    if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
    if (result != nullptr) cublasLtMatrixLayoutDestroy(result);
    if (second != nullptr) cublasLtMatrixLayoutDestroy(second);
    if (first != nullptr) cublasLtMatrixLayoutDestroy(first);
    if (desc != nullptr) cublasLtMatmulDescDestroy(desc);
    if (handle != nullptr) cublasLtDestroy(handle);
  }
};

#define TRY(call)                                               \
  do {                                                          \
    if (const int code = static_cast<int>(call); code != 0) {   \
      std::snprintf(why, capacity, "%s: code %d", #call, code); \
      return 1;                                                 \
    }                                                           \
  } while (false)

int32_t Run(const bare_gemm& g, char* why, size_t capacity) {
  constexpr size_t kWorkspace = size_t{32} << 20;
  constexpr int kWarmup = 2;
  Types types = {};
  if (!TypesOf(g.dtype, &types)) {
    std::snprintf(why, capacity, "no such type here");
    return 1;
  }
  Loop loop;
  TRY(cublasLtCreate(&loop.handle));
  TRY(cudaStreamCreateWithFlags(&loop.stream, cudaStreamNonBlocking));
  TRY(cudaMalloc(&loop.workspace, kWorkspace));
  TRY(cublasLtMatmulDescCreate(&loop.desc, types.compute, types.scale));
  const int32_t transposed = g.trans_b != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  TRY(cublasLtMatmulDescSetAttribute(loop.desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                     sizeof(transposed)));
  const auto m = static_cast<uint64_t>(g.m);
  const auto n = static_cast<uint64_t>(g.n);
  const auto k = static_cast<uint64_t>(g.k);
  // By columns C^T = op(B)^T A^T.
  TRY(g.trans_b != 0 ? cublasLtMatrixLayoutCreate(&loop.first, types.in, k, n, g.k)
                     : cublasLtMatrixLayoutCreate(&loop.first, types.in, n, k, g.n));
  TRY(cublasLtMatrixLayoutCreate(&loop.second, types.in, k, m, g.k));
  TRY(cublasLtMatrixLayoutCreate(&loop.result, types.out, n, m, g.n));
  TRY(cublasLtMatmulPreferenceCreate(&loop.preference));
  TRY(cublasLtMatmulPreferenceSetAttribute(
      loop.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof(kWorkspace)));
  cublasLtMatmulHeuristicResult_t guess = {};
  int guesses = 0;
  TRY(cublasLtMatmulAlgoGetHeuristic(loop.handle, loop.desc, loop.first, loop.second, loop.result,
                                     loop.result, loop.preference, 1, &guess, &guesses));
  if (guesses == 0) {
    std::snprintf(why, capacity, "no algorithm");
    return 1;
  }
  const double one_f64 = 1, zero_f64 = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const int32_t one_i32 = 1, zero_i32 = 0;
  const void* alpha = &one_f32;
  const void* beta = &zero_f32;
  if (types.scale == CUDA_R_64F) alpha = &one_f64, beta = &zero_f64;
  if (types.scale == CUDA_R_32I) alpha = &one_i32, beta = &zero_i32;

  const int total = kWarmup + g.iterations;
  loop.events.resize(2 * static_cast<size_t>(total), nullptr);
  for (cudaEvent_t& event : loop.events) TRY(cudaEventCreate(&event));
  for (int i = 0; i < total; ++i) {
    TRY(cudaEventRecord(loop.events[2 * static_cast<size_t>(i)], loop.stream));
    TRY(cublasLtMatmul(loop.handle, loop.desc, alpha, g.b, loop.first, g.a, loop.second, beta, g.c,
                       loop.result, g.c, loop.result, &guess.algo, loop.workspace, kWorkspace,
                       loop.stream));
    TRY(cudaEventRecord(loop.events[2 * static_cast<size_t>(i) + 1], loop.stream));
  }
  TRY(cudaStreamSynchronize(loop.stream));
  for (int i = 0; i < g.iterations; ++i) {
    float ms = 0;
    const size_t at = 2 * static_cast<size_t>(i + kWarmup);
    TRY(cudaEventElapsedTime(&ms, loop.events[at], loop.events[at + 1]));
    g.ns[i] = static_cast<double>(ms) * 1e6;
  }
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t bare_gemm_run(const bare_gemm* gemm,
                                                                        char* why,
                                                                        size_t capacity) {
  return Run(*gemm, why, capacity);
}
