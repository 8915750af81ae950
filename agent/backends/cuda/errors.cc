#include "agent/backends/cuda/errors.h"

namespace param::cuda {

bool IsSticky(cudaError_t error) {
  return error == cudaErrorIllegalAddress || error == cudaErrorLaunchFailure ||
         error == cudaErrorLaunchTimeout || error == cudaErrorAssert ||
         error == cudaErrorHardwareStackError || error == cudaErrorIllegalInstruction ||
         error == cudaErrorMisalignedAddress || error == cudaErrorInvalidAddressSpace ||
         error == cudaErrorInvalidPc || error == cudaErrorECCUncorrectable ||
         error == cudaErrorNvlinkUncorrectable || error == cudaErrorDeviceUninitialized ||
#if CUDART_VERSION >= 13000
         error == cudaErrorContained || error == cudaErrorTensorMemoryLeak ||
#endif
         error == cudaErrorContextIsDestroyed || error == cudaErrorUnknown;
}

kit::Code CodeOf(cudaError_t error) {
  if (IsSticky(error)) return kit::kInternal;
  if (error == cudaErrorMemoryAllocation) return kit::kResourceExhausted;
  if (error == cudaErrorInsufficientDriver || error == cudaErrorNoDevice ||
      error == cudaErrorInitializationError || error == cudaErrorSystemDriverMismatch ||
      error == cudaErrorSystemNotReady || error == cudaErrorCompatNotSupportedOnDevice ||
      error == cudaErrorStubLibrary || error == cudaErrorInvalidResourceHandle ||
      error == cudaErrorNotReady || error == cudaErrorNoKernelImageForDevice ||
      error == cudaErrorDevicesUnavailable) {
    return kit::kFailedPrecondition;
  }
  if (error == cudaErrorNotSupported) return kit::kUnimplemented;
  if (error == cudaErrorInvalidDevice) return kit::kNotFound;
  return kit::kInternal;
}

kit::Code CodeOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return kit::kOk;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return kit::kResourceExhausted;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return kit::kUnimplemented;
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_LICENSE_ERROR:
      return kit::kFailedPrecondition;
    case CUBLAS_STATUS_INVALID_VALUE:
    case CUBLAS_STATUS_MAPPING_ERROR:
    case CUBLAS_STATUS_EXECUTION_FAILED:
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return kit::kInternal;
  }
  return kit::kInternal;
}

std::string Describe(const char* call, cudaError_t error) {
  return std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) +
         ")";
}

std::string Describe(const char* call, cublasStatus_t status) {
  return std::string(call) + ": " + cublasGetStatusName(status);
}

std::int32_t FailWith(param_error* err, const char* call, cudaError_t error, std::string* lost) {
  static_cast<void>(cudaGetLastError());
  const std::string text = Describe(call, error);
  if (lost != nullptr && lost->empty() && IsSticky(error)) *lost = text;
  return kit::Fail(err, CodeOf(error), "%s", text.c_str());
}

std::int32_t FailWith(param_error* err, const char* call, cublasStatus_t status,
                      std::string* lost) {
  // An execution that failed says nothing more; the runtime knows what happened to the device.
  const cudaError_t under = cudaGetLastError();
  if (under == cudaSuccess) {
    return kit::Fail(err, CodeOf(status), "%s", Describe(call, status).c_str());
  }
  const std::string text = Describe(call, status) + ": " + cudaGetErrorString(under);
  if (!IsSticky(under)) return kit::Fail(err, CodeOf(status), "%s", text.c_str());
  if (lost != nullptr && lost->empty()) *lost = text;
  return kit::Fail(err, kit::kInternal, "%s", text.c_str());
}

std::string BlasVersion(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string CudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version / 10 % 100);
}

}  // namespace param::cuda
