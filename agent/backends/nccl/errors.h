#pragma once
// From the codes of NCCL and the CUDA runtime to the boundary's codes and words.

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>

#include "agent/backend/kit.h"

namespace param::nccl {

// The code that says what a caller can do about it: a peer or the network is UNAVAILABLE, a wrong
// use FAILED_PRECONDITION.
kit::Code CodeOf(ncclResult_t result);

// "ncclRemoteError"
const char* ResultName(ncclResult_t result);

// Neither success nor, as a non-blocking communicator answers any call, "still at it".
inline bool IsFailure(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

// Fills `err`: "ncclAllReduce: remote process exited ... (ncclRemoteError): LAST ERROR". `comm` may
// be null.
std::int32_t FailWith(param_error* err, const char* call, ncclResult_t result, ncclComm_t comm);
// Clears the runtime's memory of the error too.
std::int32_t FailWith(param_error* err, const char* call, cudaError_t error);

}  // namespace param::nccl

// Returns from the enclosing function, with `err` filled, when a call of the runtime fails.
#define PARAM_NCCL_CUDA_TRY(err, name, ...)                                          \
  do {                                                                               \
    if (const cudaError_t cuda_code = name(__VA_ARGS__); cuda_code != cudaSuccess) { \
      return ::param::nccl::FailWith(err, #name, cuda_code);                         \
    }                                                                                \
  } while (false)
