#pragma once
// The matrix multiplication, by cuBLASLt or cuBLAS. Row-major operands become the libraries'
// column-major ones by computing C^T = op(B)^T op(A)^T: a row-major matrix read by columns is its
// transpose, so the operands change places and the transpose flags stay as they are.

#include <memory>

#include "agent/backend/kit_gemm.h"
#include "agent/backends/cuda/context.h"
#include "agent/backends/cuda/kernels.h"

namespace param::cuda {

// What a type of ours is to the libraries.
struct GemmTypes {
  cudaDataType input, output, scale;
  cublasComputeType_t compute;
  FillType fill;
};

// alpha and beta in the type the libraries want them, for their lifetime.
class GemmScalars {
 public:
  // REQUIRES: CheckGemm accepted the descriptor.
  GemmScalars(const kit::Gemm& gemm, cudaDataType scale);
  const void* alpha() const { return &alpha_; }
  const void* beta() const { return &beta_; }

 private:
  union Scalar {
    double f64;
    float f32;
    std::int32_t i32;
  };
  static Scalar Convert(double value, cudaDataType scale);
  Scalar alpha_, beta_;
};

// UNIMPLEMENTED, with the reason, for what no library here can do on this device, whatever the
// shapes; else fills `types`.
std::int32_t CheckGemm(const param_ctx& ctx, const kit::Gemm& gemm, GemmTypes* types,
                       param_error* err);

// The operands of an enqueue, in place and reachable by the device.
struct GemmPointers {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
};
std::int32_t ResolveGemm(const kit::Gemm& gemm, const param_operand* operands, std::size_t count,
                         GemmPointers* out, param_error* err);

// Operands to try algorithms on. `there` is false when the device has no room for a second set.
struct GemmTrial {
  Scratch a, b, c, workspace;
  bool there = false;
};
// Fills a and b with spread values, c with zeros. An error is one of the device, not of room.
std::int32_t PrepareTrial(param_ctx& ctx, const kit::Gemm& gemm, const GemmTypes& types,
                          std::size_t workspace_bytes, GemmTrial* out, param_error* err);

// Both give UNIMPLEMENTED with the reason when the library has nothing for these shapes.
std::int32_t CreateLtGemm(param_ctx& ctx, const kit::Gemm& gemm, std::unique_ptr<param_op>* out,
                          param_error* err);
std::int32_t CreateBlasGemm(param_ctx& ctx, const kit::Gemm& gemm, std::unique_ptr<param_op>* out,
                            param_error* err);

}  // namespace param::cuda
