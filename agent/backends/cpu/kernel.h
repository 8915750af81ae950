#pragma once
// One prepared matrix multiplication by one library.

#include <cstdint>
#include <memory>
#include <string>

#include "agent/backend/kit_gemm.h"

namespace param::cpu {

// One thread at a time.
class GemmKernel {
 public:
  virtual ~GemmKernel() = default;
  // Multiplies; complete when it returns. Does not allocate.
  virtual std::int32_t Run(const void* a, const void* b, void* c, param_error* err) = 0;
  virtual std::string library() const = 0;         // "oneDNN 2.6.3"
  virtual std::string implementation() const = 0;  // "sgemm", "matmul gemm:jit"
};

// Each: UNIMPLEMENTED with the reason when the library cannot do this here.
// The BLAS-like call of oneDNN; f32.
std::int32_t MakeSgemm(const kit::Gemm& gemm, std::unique_ptr<GemmKernel>* out, param_error* err);
// oneDNN's matmul primitive; f32, bf16, i8.
std::int32_t MakeMatmul(const kit::Gemm& gemm, std::unique_ptr<GemmKernel>* out, param_error* err);
// OpenBLAS; f64, f32.
std::int32_t MakeOpenblas(const kit::Gemm& gemm, std::unique_ptr<GemmKernel>* out,
                          param_error* err);

std::string OnednnVersion();    // "2.6.3"
std::string OpenblasVersion();  // its configuration text

// oneDNN's i8 sums pairs of products in 16 bits where the processor has no VNNI: they are exact
// only while every element lies in -64..64.
bool IsI8Exact();

// Prepares the best kernel for the descriptor's type and library. For f32 the two ways of oneDNN
// differ by up to an eighth, either way by shape: for all but long multiplications both are tried
// on scratch data, and `trial` says what was seen.
std::int32_t ChooseKernel(const kit::Gemm& gemm, const param_host& host, int threads,
                          std::unique_ptr<GemmKernel>* out, std::string* trial, param_error* err);

}  // namespace param::cpu
