#pragma once
// From the codes of the vendor's libraries to the boundary's codes and words.

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "agent/backend/kit.h"

namespace param::cuda {

// The code that says what a caller can do about it.
kit::Code CodeOf(cudaError_t error);
kit::Code CodeOf(cublasStatus_t status);

// True for an error after which the context of the process is lost: every later call fails too.
bool IsSticky(cudaError_t error);

// "cudaMalloc: out of memory (cudaErrorMemoryAllocation)"
std::string Describe(const char* call, cudaError_t error);
// "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED"
std::string Describe(const char* call, cublasStatus_t status);

// Fills `err`. Clears the runtime's memory of the error, which would otherwise be reported again by
// the next innocent call. `lost` (may be null) is set to the message when the device is lost by it.
std::int32_t FailWith(param_error* err, const char* call, cudaError_t error, std::string* lost);
std::int32_t FailWith(param_error* err, const char* call, cublasStatus_t status, std::string* lost);

// "13.1.0" from 130100.
std::string BlasVersion(std::size_t version);
// "13.0" from 13000.
std::string CudaVersion(int version);

}  // namespace param::cuda

// Returns from the enclosing function, with `err` filled, when a call fails. `lost`: see FailWith.
#define PARAM_CUDA_TRY(err, lost, name, ...)                                          \
  do {                                                                                \
    if (const auto cuda_code = name(__VA_ARGS__); static_cast<int>(cuda_code) != 0) { \
      return ::param::cuda::FailWith(err, #name, cuda_code, lost);                    \
    }                                                                                 \
  } while (false)
