#pragma once
// The peer: a loop around cublasLtMatmul as anybody would write it, in an object of its own.

#include <stddef.h>
#include <stdint.h>

// C = A * op(B) on device memory, row-major, the library's first guess of an algorithm with 32 MiB
// of workspace, timed with an event before and after each of `iterations` runs, after two warm-ups.
struct bare_gemm {
  int32_t dtype;  // a param_dtype
  int32_t trans_b;
  int64_t m, n, k;
  const void* a;
  const void* b;
  void* c;
  int32_t iterations;
  double* ns;  // one per iteration
};

// 0, or 1 with the reason.
typedef int32_t (*bare_gemm_run_fn)(const bare_gemm* gemm, char* why, size_t capacity);
#define BARE_GEMM_RUN "bare_gemm_run"
