#include "agent/backends/cuda/gemm.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace param::cuda {
namespace {

bool IsF8(param_dtype dtype) { return dtype == PARAM_DTYPE_F8E4M3 || dtype == PARAM_DTYPE_F8E5M2; }

bool IsInt32(double value) {
  return value == std::trunc(value) && std::abs(value) <= std::numeric_limits<std::int32_t>::max();
}

// The environment may switch off what the type asks for; the number would be of another type then.
bool Tf32IsOff() {
  const char* const value = std::getenv("NVIDIA_TF32_OVERRIDE");
  return value != nullptr && value[0] == '0';
}

}  // namespace

GemmScalars::Scalar GemmScalars::Convert(double value, cudaDataType scale) {
  Scalar out = {};
  if (scale == CUDA_R_64F) {
    out.f64 = value;
  } else if (scale == CUDA_R_32I) {
    out.i32 = static_cast<std::int32_t>(value);
  } else {
    out.f32 = static_cast<float>(value);
  }
  return out;
}

GemmScalars::GemmScalars(const kit::Gemm& gemm, cudaDataType scale)
    : alpha_(Convert(gemm.alpha, scale)), beta_(Convert(gemm.beta, scale)) {}

std::int32_t CheckGemm(const param_ctx& ctx, const kit::Gemm& gemm, GemmTypes* types,
                       param_error* err) {
  const param_dtype dtype = gemm.dtype();
  switch (dtype) {
    case PARAM_DTYPE_F64:
      *types = {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, FillType::kF64};
      break;
    case PARAM_DTYPE_F32:
      *types = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, FillType::kF32};
      break;
    case PARAM_DTYPE_TF32:
      *types = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, FillType::kF32};
      break;
    case PARAM_DTYPE_F16:
      *types = {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, FillType::kF16};
      break;
    case PARAM_DTYPE_BF16:
      *types = {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, FillType::kBf16};
      break;
    case PARAM_DTYPE_F8E4M3:
      *types = {CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, FillType::kF8E4M3};
      break;
    case PARAM_DTYPE_F8E5M2:
      *types = {CUDA_R_8F_E5M2, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, FillType::kF8E5M2};
      break;
    case PARAM_DTYPE_I8:
      *types = {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, FillType::kI8};
      break;
    case PARAM_DTYPE_U8:
    case PARAM_DTYPE_I32:
    case PARAM_DTYPE_I64:
      return kit::Fail(err, kit::kUnimplemented, "cuda has no gemm of type %s",
                       kit::DtypeName(dtype));
  }
  if (IsF8(dtype) && (ctx.major() < 8 || (ctx.major() == 8 && ctx.minor() < 9))) {
    return kit::Fail(err, kit::kUnimplemented,
                     "%s needs compute capability 8.9 or later; %s has %s", kit::DtypeName(dtype),
                     ctx.properties.name, ctx.Capability().c_str());
  }
  if (dtype == PARAM_DTYPE_F8E5M2) {
    return kit::Fail(err, kit::kUnimplemented,
                     "cuBLASLt multiplies f8e5m2 with f8e4m3 only, not with itself");
  }
  if (dtype == PARAM_DTYPE_TF32 && Tf32IsOff()) {
    return kit::Fail(err, kit::kUnimplemented, "NVIDIA_TF32_OVERRIDE=0 switches tf32 off");
  }
  if (dtype == PARAM_DTYPE_I8 && (!IsInt32(gemm.alpha) || !IsInt32(gemm.beta))) {
    return kit::Fail(err, kit::kUnimplemented, "i8 takes whole numbers as alpha and beta only");
  }
  if (gemm.batch > std::numeric_limits<std::int32_t>::max()) {
    return kit::Fail(err, kit::kUnimplemented, "a batch of %lld is more than 2^31 - 1",
                     static_cast<long long>(gemm.batch));
  }
  return kit::kOk;
}

std::int32_t ResolveGemm(const kit::Gemm& gemm, const param_operand* operands, std::size_t count,
                         GemmPointers* out, param_error* err) {
  std::size_t sizes[3] = {};
  for (std::size_t i = 0; i < 3 && i < count; ++i) {
    if (operands[i].buffer == nullptr) {
      return kit::Fail(err, kit::kInvalidArgument, "gemm: operand %zu has no buffer", i);
    }
    sizes[i] = operands[i].buffer->bytes;
  }
  PARAM_KIT_TRY(kit::CheckGemmOperands(gemm, operands, count, sizes, err));
  char* at[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    if (operands[i].buffer->kind == PARAM_MEMORY_HOST) {
      return kit::Fail(err, kit::kInvalidArgument,
                       "gemm: operand %zu is in pageable host memory, out of the device's reach",
                       i);
    }
    at[i] = static_cast<char*>(operands[i].buffer->data) + operands[i].offset;
  }
  *out = {at[0], at[1], at[2]};
  return kit::kOk;
}

std::int32_t PrepareTrial(param_ctx& ctx, const kit::Gemm& gemm, const GemmTypes& types,
                          std::size_t workspace_bytes, GemmTrial* out, param_error* err) {
  constexpr std::size_t kSpare = std::size_t{256} << 20;  // for the libraries themselves
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  PARAM_CUDA_TRY(err, &ctx.lost, cudaMemGetInfo, &free_bytes, &total_bytes);
  std::size_t wanted = kSpare;
  for (const std::size_t part : {gemm.a.bytes, gemm.b.bytes, gemm.c.bytes, workspace_bytes}) {
    if (__builtin_add_overflow(wanted, part, &wanted)) return kit::kOk;
  }
  if (wanted > free_bytes) return kit::kOk;
  if (out->a.Allocate(gemm.a.bytes) != cudaSuccess ||
      out->b.Allocate(gemm.b.bytes) != cudaSuccess ||
      out->c.Allocate(gemm.c.bytes) != cudaSuccess ||
      out->workspace.Allocate(workspace_bytes) != cudaSuccess) {
    return kit::kOk;  // there was room a moment ago; somebody else took it
  }
  const std::size_t element = kit::DtypeSize(gemm.dtype());
  PARAM_CUDA_TRY(err, &ctx.lost, LaunchFill, out->a.data(), gemm.a.bytes / element, types.fill,
                 ctx.internal);
  PARAM_CUDA_TRY(err, &ctx.lost, LaunchFill, out->b.data(), gemm.b.bytes / element, types.fill,
                 ctx.internal);
  PARAM_CUDA_TRY(err, &ctx.lost, cudaMemsetAsync, out->c.data(), 0, gemm.c.bytes, ctx.internal);
  PARAM_CUDA_TRY(err, &ctx.lost, cudaStreamSynchronize, ctx.internal);
  out->there = true;
  return kit::kOk;
}

}  // namespace param::cuda
