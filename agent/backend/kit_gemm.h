#pragma once
// For authors of backends: the descriptor of "gemm", parsed and checked in one place, so that every
// backend refuses the same things with the same words. See param_backend.h for what it means.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "agent/backend/kit.h"

namespace param::kit {

// One operand, row-major as stored: batch x rows x cols, elements of a row adjacent.
struct GemmMatrix {
  param_dtype dtype = PARAM_DTYPE_F32;
  std::int64_t rows = 0, cols = 0;
  std::int64_t ld = 0;            // elements from a row to the next, >= cols
  std::int64_t batch_stride = 0;  // elements from a matrix to the next; 0 repeats one (a, b only)
  std::size_t bytes = 0;          // from the first byte to the last one touched
};

// C = alpha * op(A) * op(B) + beta * C.
struct Gemm {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 0;
  std::string library = "auto";
  GemmMatrix a, b, c;

  param_dtype dtype() const { return a.dtype; }
  // Multiplications and additions, as everybody counts them.
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
};

// The type of C that goes with a type of A and B.
inline param_dtype GemmResultType(param_dtype dtype) {
  switch (dtype) {
    case PARAM_DTYPE_I8:
      return PARAM_DTYPE_I32;
    case PARAM_DTYPE_F8E4M3:
    case PARAM_DTYPE_F8E5M2:
      return PARAM_DTYPE_BF16;
    case PARAM_DTYPE_F64:
    case PARAM_DTYPE_F32:
    case PARAM_DTYPE_TF32:
    case PARAM_DTYPE_F16:
    case PARAM_DTYPE_BF16:
    case PARAM_DTYPE_U8:
    case PARAM_DTYPE_I32:
    case PARAM_DTYPE_I64:
      return dtype;
  }
  return dtype;
}

namespace internal {

// (batch - 1) * batch_stride + (rows - 1) * ld + cols elements in bytes, or false on overflow.
inline bool GemmExtent(const GemmMatrix& matrix, std::int64_t batch, std::size_t* bytes) {
  std::int64_t outer = 0;
  std::int64_t inner = 0;
  std::int64_t total = 0;
  if (__builtin_mul_overflow(batch - 1, matrix.batch_stride, &outer) ||
      __builtin_mul_overflow(matrix.rows - 1, matrix.ld, &inner) ||
      __builtin_add_overflow(outer, inner, &total) ||
      __builtin_add_overflow(total, matrix.cols, &total) ||
      __builtin_mul_overflow(total, static_cast<std::int64_t>(DtypeSize(matrix.dtype)), &total)) {
    return false;
  }
  *bytes = static_cast<std::size_t>(total);
  return true;
}

inline std::int32_t ParseGemmMatrix(const param_op_desc& desc, std::size_t position,
                                    const char* name, GemmMatrix* out, std::int64_t* batch,
                                    param_error* err) {
  const param_tensor* t = nullptr;
  PARAM_KIT_TRY(GetTensor(desc, position, name, &t, err));
  if (t->rank != 3) {
    return Fail(err, kInvalidArgument, "gemm: tensor \"%s\" has %d dimensions, not 3", name,
                t->rank);
  }
  for (int i = 0; i < 3; ++i) {
    if (t->dims[i] < 1) {
      return Fail(err, kInvalidArgument, "gemm: dimension %d of \"%s\" is %lld", i, name,
                  static_cast<long long>(t->dims[i]));
    }
  }
  *batch = t->dims[0];
  out->dtype = t->dtype;
  out->rows = t->dims[1];
  out->cols = t->dims[2];
  out->ld = t->dims[1] == 1 && t->strides[1] < t->dims[2] ? t->dims[2] : t->strides[1];
  out->batch_stride = *batch == 1 ? 0 : t->strides[0];
  if (t->strides[2] != 1 || out->ld < out->cols || out->batch_stride < 0) {
    return Fail(err, kInvalidArgument,
                "gemm: \"%s\" of %lld x %lld has strides %lld, %lld, %lld; wanted are adjacent "
                "elements and rows that do not overlap",
                name, static_cast<long long>(out->rows), static_cast<long long>(out->cols),
                static_cast<long long>(t->strides[0]), static_cast<long long>(t->strides[1]),
                static_cast<long long>(t->strides[2]));
  }
  if (!GemmExtent(*out, *batch, &out->bytes)) {
    return Fail(err, kInvalidArgument, "gemm: \"%s\" has more bytes than can be addressed", name);
  }
  return kOk;
}

inline std::int32_t CheckGemmShapes(const Gemm& g, std::int64_t batch_b, std::int64_t batch_c,
                                    param_error* err) {
  const std::int64_t k_of_b = g.trans_b ? g.b.cols : g.b.rows;
  const std::int64_t n_of_b = g.trans_b ? g.b.rows : g.b.cols;
  if (k_of_b != g.k || n_of_b != g.n || g.c.rows != g.m || batch_b != g.batch ||
      batch_c != g.batch) {
    return Fail(err, kInvalidArgument,
                "gemm: shapes do not fit: a %lld x %lld x %lld%s, b %lld x %lld x %lld%s, "
                "c %lld x %lld x %lld",
                static_cast<long long>(g.batch), static_cast<long long>(g.a.rows),
                static_cast<long long>(g.a.cols), g.trans_a ? " transposed" : "",
                static_cast<long long>(batch_b), static_cast<long long>(g.b.rows),
                static_cast<long long>(g.b.cols), g.trans_b ? " transposed" : "",
                static_cast<long long>(batch_c), static_cast<long long>(g.c.rows),
                static_cast<long long>(g.c.cols));
  }
  if (g.batch > 1 && g.c.batch_stride < (g.m - 1) * g.c.ld + g.n) {
    return Fail(err, kInvalidArgument, "gemm: the matrices of \"c\" overlap");
  }
  if (g.b.dtype != g.a.dtype || g.c.dtype != GemmResultType(g.a.dtype)) {
    return Fail(err, kInvalidArgument, "gemm: types a %s, b %s, c %s; wanted are %s, %s, %s",
                DtypeName(g.a.dtype), DtypeName(g.b.dtype), DtypeName(g.c.dtype),
                DtypeName(g.a.dtype), DtypeName(g.a.dtype), DtypeName(GemmResultType(g.a.dtype)));
  }
  return kOk;
}

}  // namespace internal

// INVALID_ARGUMENT says what is wrong with the descriptor. Whether the type or the library is
// there is the backend's to say.
inline std::int32_t ParseGemm(const param_op_desc& desc, Gemm* out, param_error* err) {
  Gemm g;
  PARAM_KIT_TRY(CheckAttrs(desc, {"trans_a", "trans_b", "alpha", "beta", "library"}, err));
  PARAM_KIT_TRY(GetBool(desc, "trans_a", &g.trans_a, err));
  PARAM_KIT_TRY(GetBool(desc, "trans_b", &g.trans_b, err));
  PARAM_KIT_TRY(GetFloat(desc, "alpha", &g.alpha, err));
  PARAM_KIT_TRY(GetFloat(desc, "beta", &g.beta, err));
  PARAM_KIT_TRY(GetString(desc, "library", &g.library, err));
  if (!std::isfinite(g.alpha) || !std::isfinite(g.beta)) {
    return Fail(err, kInvalidArgument, "gemm: alpha and beta must be finite");
  }
  if (desc.tensor_count != 3) {
    return Fail(err, kInvalidArgument, "gemm: %zu tensors, not 3", desc.tensor_count);
  }
  std::int64_t batch_b = 0;
  std::int64_t batch_c = 0;
  PARAM_KIT_TRY(internal::ParseGemmMatrix(desc, 0, "a", &g.a, &g.batch, err));
  PARAM_KIT_TRY(internal::ParseGemmMatrix(desc, 1, "b", &g.b, &batch_b, err));
  PARAM_KIT_TRY(internal::ParseGemmMatrix(desc, 2, "c", &g.c, &batch_c, err));
  g.m = g.trans_a ? g.a.cols : g.a.rows;
  g.k = g.trans_a ? g.a.rows : g.a.cols;
  g.n = g.c.cols;
  PARAM_KIT_TRY(internal::CheckGemmShapes(g, batch_b, batch_c, err));
  *out = g;
  return kOk;
}

// Three operands are there, inside their buffers (of sizes as given) and aligned to their elements.
inline std::int32_t CheckGemmOperands(const Gemm& g, const param_operand* operands,
                                      std::size_t count, const std::size_t sizes[3],
                                      param_error* err) {
  if (count != 3) return Fail(err, kInvalidArgument, "gemm: %zu operands, not 3", count);
  const GemmMatrix* const matrices[3] = {&g.a, &g.b, &g.c};
  const char* const names[3] = {"gemm: a", "gemm: b", "gemm: c"};
  for (std::size_t i = 0; i < 3; ++i) {
    PARAM_KIT_TRY(CheckRange(names[i], operands[i].offset, matrices[i]->bytes, sizes[i], err));
    if (operands[i].offset % DtypeSize(matrices[i]->dtype) != 0) {
      return Fail(err, kInvalidArgument, "%s: offset %zu is not a multiple of the element size",
                  names[i], operands[i].offset);
    }
  }
  return kOk;
}

}  // namespace param::kit
