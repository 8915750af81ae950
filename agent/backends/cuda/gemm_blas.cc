// gemm by cuBLAS: the call that most programs make. The library chooses the algorithm by itself and
// does not say which.

#include "agent/backends/cuda/gemm.h"

namespace param::cuda {
namespace {

class BlasGemm : public param_op {
 public:
  BlasGemm(const kit::Gemm& gemm, const GemmTypes& types, std::size_t workspace)
      : gemm_(gemm), types_(types), scalars_(gemm, types.scale), workspace_(workspace) {}

  std::size_t workspace_bytes() const override { return workspace_; }

  std::int32_t Enqueue(param_ctx& ctx, cudaStream_t stream, const param_operand* operands,
                       std::size_t count, param_buffer* workspace, param_error* err) override {
    GemmPointers pointers;
    PARAM_KIT_TRY(ResolveGemm(gemm_, operands, count, &pointers, err));
    if (workspace == nullptr || workspace->bytes < workspace_ ||
        workspace->kind == PARAM_MEMORY_HOST) {
      return kit::Fail(err, kit::kInvalidArgument, "gemm: needs %zu bytes of workspace",
                       workspace_);
    }
    return Run(ctx, stream, pointers, workspace->data, err);
  }

  std::int32_t Run(param_ctx& ctx, cudaStream_t stream, const GemmPointers& at, void* workspace,
                   param_error* err) {
    PARAM_CUDA_TRY(err, &ctx.lost, cublasSetStream, ctx.blas, stream);
    // After the stream: setting that resets this.
    PARAM_CUDA_TRY(err, &ctx.lost, cublasSetWorkspace, ctx.blas, workspace, workspace_);
    const cublasOperation_t op_b = gemm_.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_a = gemm_.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (gemm_.batch == 1) {
      PARAM_CUDA_TRY(err, &ctx.lost, cublasGemmEx_64, ctx.blas, op_b, op_a, gemm_.n, gemm_.m,
                     gemm_.k, scalars_.alpha(), at.b, types_.input, gemm_.b.ld, at.a, types_.input,
                     gemm_.a.ld, scalars_.beta(), at.c, types_.output, gemm_.c.ld, types_.compute,
                     CUBLAS_GEMM_DEFAULT);
    } else {
      PARAM_CUDA_TRY(err, &ctx.lost, cublasGemmStridedBatchedEx_64, ctx.blas, op_b, op_a, gemm_.n,
                     gemm_.m, gemm_.k, scalars_.alpha(), at.b, types_.input, gemm_.b.ld,
                     gemm_.b.batch_stride, at.a, types_.input, gemm_.a.ld, gemm_.a.batch_stride,
                     scalars_.beta(), at.c, types_.output, gemm_.c.ld, gemm_.c.batch_stride,
                     gemm_.batch, types_.compute, CUBLAS_GEMM_DEFAULT);
    }
    return kit::kOk;
  }

  std::string Info() const override {
    return kit::JsonObject()
        .Text("library", "cuBLAS " + BlasVersion(cublasLtGetVersion()))
        .Text("implementation", gemm_.batch == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx")
        .Text("chosen_by", "library")
        .Text("workspace_bytes", std::to_string(workspace_))
        .Done();
  }

 private:
  kit::Gemm gemm_;
  GemmTypes types_;
  GemmScalars scalars_;
  std::size_t workspace_;
};

}  // namespace

std::int32_t CreateBlasGemm(param_ctx& ctx, const kit::Gemm& gemm, std::unique_ptr<param_op>* out,
                            param_error* err) {
  GemmTypes types = {};
  PARAM_KIT_TRY(CheckGemm(ctx, gemm, &types, err));
  if (gemm.dtype() == PARAM_DTYPE_F8E4M3) {
    return kit::Fail(err, kit::kUnimplemented, "cuBLAS has no f8 gemm; cuBLASLt has");
  }
  if (gemm.dtype() == PARAM_DTYPE_TF32) {
    // It may fall back to f32 and would not say so.
    return kit::Fail(err, kit::kUnimplemented,
                     "cublas only allows tf32, it does not say what it used; take cublaslt");
  }
  if (ctx.blas == nullptr) PARAM_CUDA_TRY(err, &ctx.lost, cublasCreate, &ctx.blas);
  // What the compute type says, whatever the environment or a later default would allow.
  PARAM_CUDA_TRY(err, &ctx.lost, cublasSetMathMode, ctx.blas, CUBLAS_DEFAULT_MATH);
  auto made = std::make_unique<BlasGemm>(gemm, types, WorkspaceLimit(ctx));
  // cuBLAS says only when called what it cannot do: call it once, so that the case is skipped
  // before anything is measured. This loads its kernel too.
  GemmTrial trial;
  PARAM_KIT_TRY(PrepareTrial(ctx, gemm, types, made->workspace_bytes(), &trial, err));
  if (trial.there) {
    PARAM_KIT_TRY(made->Run(ctx, ctx.internal, {trial.a.data(), trial.b.data(), trial.c.data()},
                            trial.workspace.data(), err));
    PARAM_CUDA_TRY(err, &ctx.lost, cudaStreamSynchronize, ctx.internal);
  }
  *out = std::move(made);
  return kit::kOk;
}

}  // namespace param::cuda
