// Element types and reductions: MPI's own, and ours where it has none.

#include "agent/backends/mpi/state.h"

namespace param::mpi {
namespace {

using kit::RedOp;

// MPI gives its function no context, so there is one per type and reduction.
template <param_dtype Dtype, RedOp Redop>
void Combine(void* in, void* inout, int* count, MPI_Datatype*) {
  kit::Reduce(Redop, Dtype, inout, in, static_cast<std::size_t>(*count));
}

template <param_dtype Dtype>
MPI_User_function* FunctionFor(RedOp redop) {
  switch (redop) {
    case RedOp::kProd:
      return Combine<Dtype, RedOp::kProd>;
    case RedOp::kMin:
      return Combine<Dtype, RedOp::kMin>;
    case RedOp::kMax:
      return Combine<Dtype, RedOp::kMax>;
    case RedOp::kSum:
    case RedOp::kAvg:
      break;
  }
  return Combine<Dtype, RedOp::kSum>;
}

MPI_Op OwnReduction(RedOp redop) {
  switch (redop) {
    case RedOp::kProd:
      return MPI_PROD;
    case RedOp::kMin:
      return MPI_MIN;
    case RedOp::kMax:
      return MPI_MAX;
    case RedOp::kSum:
    case RedOp::kAvg:
      break;
  }
  return MPI_SUM;
}

}  // namespace

MPI_Datatype TypeOf(param_dtype dtype) {
  switch (dtype) {
    case PARAM_DTYPE_F64:
      return MPI_DOUBLE;
    case PARAM_DTYPE_F32:
    case PARAM_DTYPE_TF32:
      return MPI_FLOAT;
    case PARAM_DTYPE_F16:
    case PARAM_DTYPE_BF16:
      return MPI_UINT16_T;
    case PARAM_DTYPE_I8:
      return MPI_INT8_T;
    case PARAM_DTYPE_U8:
    case PARAM_DTYPE_F8E4M3:
    case PARAM_DTYPE_F8E5M2:
      return MPI_UINT8_T;
    case PARAM_DTYPE_I32:
      return MPI_INT32_T;
    case PARAM_DTYPE_I64:
      return MPI_INT64_T;
  }
  return MPI_DATATYPE_NULL;
}

std::int32_t ReductionFor(param_ctx* ctx, RedOp redop, param_dtype dtype, MPI_Op* out,
                          bool* is_user, param_error* err) {
  if (!kit::Reduce(redop, dtype, nullptr, nullptr, 0)) {
    return kit::Fail(err, kit::kUnimplemented,
                     "MPI has no %s, and there is no reduction of it here", kit::DtypeName(dtype));
  }
  *is_user = dtype == PARAM_DTYPE_F16 || dtype == PARAM_DTYPE_BF16;
  if (!*is_user) {
    *out = OwnReduction(redop);
    return kit::kOk;
  }
  const bool is_f16 = dtype == PARAM_DTYPE_F16;
  const RedOp combine = redop == RedOp::kAvg ? RedOp::kSum : redop;
  MPI_Op& made = ctx->reductions[is_f16 ? 0 : 1][static_cast<std::size_t>(combine)];
  if (made == MPI_OP_NULL) {
    MPI_User_function* const function =
        is_f16 ? FunctionFor<PARAM_DTYPE_F16>(combine) : FunctionFor<PARAM_DTYPE_BF16>(combine);
    const int code = MPI_Op_create(function, /*commute=*/1, &made);
    if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Op_create", code);
  }
  *out = made;
  return kit::kOk;
}

}  // namespace param::mpi
