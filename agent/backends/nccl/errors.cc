#include "agent/backends/nccl/errors.h"

namespace param::nccl {

kit::Code CodeOf(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return kit::kOk;
    case ncclSystemError:
    case ncclRemoteError:
      return kit::kUnavailable;
    case ncclInvalidArgument:
      return kit::kInvalidArgument;
    case ncclInvalidUsage:
      return kit::kFailedPrecondition;
    case ncclUnhandledCudaError:
    case ncclInternalError:
    case ncclInProgress:
    case ncclNumResults:
      return kit::kInternal;
  }
  return kit::kInternal;
}

const char* ResultName(ncclResult_t result) {
  constexpr const char* kNames[] = {
      "ncclSuccess",         "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError",
      "ncclInvalidArgument", "ncclInvalidUsage",       "ncclRemoteError", "ncclInProgress"};
  const auto index = static_cast<std::size_t>(result);
  return index < sizeof(kNames) / sizeof(kNames[0]) ? kNames[index] : "unknown result";
}

std::int32_t FailWith(param_error* err, const char* call, ncclResult_t result, ncclComm_t comm) {
  const char* const last = ncclGetLastError(comm);
  const bool more = last != nullptr && last[0] != '\0';
  return kit::Fail(err, CodeOf(result), "%s: %s (%s)%s%s", call, ncclGetErrorString(result),
                   ResultName(result), more ? ": " : "", more ? last : "");
}

std::int32_t FailWith(param_error* err, const char* call, cudaError_t error) {
  static_cast<void>(cudaGetLastError());
  kit::Code code = kit::kInternal;
  if (error == cudaErrorMemoryAllocation) code = kit::kResourceExhausted;
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice ||
      error == cudaErrorInitializationError || error == cudaErrorSystemDriverMismatch ||
      error == cudaErrorSystemNotReady || error == cudaErrorStubLibrary) {
    code = kit::kFailedPrecondition;
  }
  return kit::Fail(err, code, "%s: %s (%s)", call, cudaGetErrorString(error),
                   cudaGetErrorName(error));
}

}  // namespace param::nccl
