// gemm by cuBLASLt: the algorithm is chosen here, by time among the library's best guesses, and
// recorded.

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "agent/backends/cuda/gemm.h"

namespace param::cuda {
namespace {

struct LtDelete {
  void operator()(cublasLtMatmulDescOpaque_t* desc) const { cublasLtMatmulDescDestroy(desc); }
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const {
    cublasLtMatrixLayoutDestroy(layout);
  }
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
using Desc = std::unique_ptr<cublasLtMatmulDescOpaque_t, LtDelete>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, LtDelete>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, LtDelete>;
using Candidates = std::vector<cublasLtMatmulHeuristicResult_t>;

constexpr int kCandidates = 8;
// No kernel loads more than 16 bytes at once.
constexpr std::uint32_t kAlignment = 16;
// A later guess must be this much faster than the first to be taken: noise must not choose.
constexpr float kFasterBy = 0.98F;
constexpr float kTuningBudgetMs = 500;

std::uint64_t MathOf(const cublasLtMatmulAlgo_t& algo) {
  std::uint64_t flags = 0;
  std::size_t written = 0;
  if (cublasLtMatmulAlgoCapGetAttribute(&algo, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags,
                                        sizeof(flags), &written) != CUBLAS_STATUS_SUCCESS) {
    return 0;
  }
  return flags;
}

std::string DescribeMath(std::uint64_t flags) {
  struct Name {
    std::uint64_t bit;
    const char* name;
  };
  constexpr Name kNames[] = {
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, "fma"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA, "hmma"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA, "imma"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA, "dmma"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F, "input f16"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF, "input bf16"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, "input tf32"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, "input f32"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F, "input f64"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I, "input i8"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3, "input f8e4m3"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2, "input f8e5m2"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F, "accumulate f16"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F, "accumulate f32"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F, "accumulate f64"},
      {CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I, "accumulate i32"},
  };
  std::string text;
  for (const Name& name : kNames) {
    if ((flags & name.bit) == 0) continue;
    text += text.empty() ? "" : ", ";
    text += name.name;
  }
  return text.empty() ? "not said" : text;
}

// f32 must be multiplied as f32, and tf32 on the tensor cores: anything else would be a number of
// another type. An algorithm that does not say is believed.
bool ComputesAs(param_dtype dtype, std::uint64_t flags) {
  const std::uint64_t how = flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_TYPE_MASK;
  if (how == 0) return true;
  if (dtype == PARAM_DTYPE_F32) return (how & CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA) != 0;
  if (dtype == PARAM_DTYPE_TF32) return (how & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0;
  return true;
}

template <typename T>
std::string ConfigOf(const cublasLtMatmulAlgo_t& algo, cublasLtMatmulAlgoConfigAttributes_t what) {
  T value = 0;
  std::size_t written = 0;
  if (cublasLtMatmulAlgoConfigGetAttribute(&algo, what, &value, sizeof(value), &written) !=
      CUBLAS_STATUS_SUCCESS) {
    return "?";
  }
  return std::to_string(value);
}

// What the library asks of shapes, for the message when it has nothing.
const char* Hint(const param_ctx& ctx, param_dtype dtype) {
  if (dtype == PARAM_DTYPE_F8E4M3) {
    return ctx.major() < 10 ? "; f8 wants trans_a off, trans_b on, and n and k multiples of 16"
                            : "; f8 wants dimensions that are multiples of 16";
  }
  if (dtype == PARAM_DTYPE_I8) {
    return "; i8 wants n and k multiples of 4, and on some devices trans_a off and trans_b on";
  }
  return "";
}

class LtGemm : public param_op {
 public:
  LtGemm(const kit::Gemm& gemm, const GemmTypes& types)
      : gemm_(gemm), types_(types), scalars_(gemm, types.scale) {}

  std::int32_t Prepare(param_ctx& ctx, param_error* err);

  std::size_t workspace_bytes() const override { return workspace_; }
  std::int32_t Enqueue(param_ctx& ctx, cudaStream_t stream, const param_operand* operands,
                       std::size_t count, param_buffer* workspace, param_error* err) override;
  std::string Info() const override;

 private:
  std::int32_t Describe(param_ctx& ctx, param_error* err);
  static std::int32_t MakeLayout(const kit::GemmMatrix& matrix, std::int64_t batch,
                                 cudaDataType type, Layout* out, param_error* err);
  // The library's guesses, best first, that compute in the right type; may be empty.
  std::int32_t Guess(param_ctx& ctx, std::uint32_t input_alignment, std::uint32_t output_alignment,
                     Candidates* out, std::string* why, param_error* err);
  std::int32_t Choose(param_ctx& ctx, const Candidates& candidates, param_error* err);
  std::int32_t TimeCandidate(param_ctx& ctx, const cublasLtMatmulHeuristicResult_t& candidate,
                             const GemmTrial& trial, float* ms, param_error* err);
  cublasStatus_t Run(param_ctx& ctx, cudaStream_t stream, const GemmPointers& at,
                     const cublasLtMatmulHeuristicResult_t& how, void* workspace,
                     std::size_t workspace_bytes) {
    return cublasLtMatmul(ctx.lt, desc_.get(), scalars_.alpha(), at.b, first_.get(), at.a,
                          second_.get(), scalars_.beta(), at.c, result_.get(), at.c, result_.get(),
                          &how.algo, workspace, workspace_bytes, stream);
  }

  kit::Gemm gemm_;
  GemmTypes types_;
  GemmScalars scalars_;
  Desc desc_;
  Layout first_, second_, result_;  // the library's A, B and C: our b, a and c
  cublasLtMatmulHeuristicResult_t chosen_ = {};
  // For operands at odd addresses, where the chosen one may not go.
  cublasLtMatmulHeuristicResult_t unaligned_ = {};
  bool has_unaligned_ = false;
  std::string chosen_by_ = "heuristic";
  std::size_t workspace_ = 0;
};

std::int32_t LtGemm::MakeLayout(const kit::GemmMatrix& matrix, std::int64_t batch,
                                cudaDataType type, Layout* out, param_error* err) {
  // By columns: as many rows as ours has columns.
  cublasLtMatrixLayout_t layout = nullptr;
  PARAM_CUDA_TRY(err, nullptr, cublasLtMatrixLayoutCreate, &layout, type,
                 static_cast<std::uint64_t>(matrix.cols), static_cast<std::uint64_t>(matrix.rows),
                 matrix.ld);
  out->reset(layout);
  if (batch > 1) {
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = matrix.batch_stride;
    PARAM_CUDA_TRY(err, nullptr, cublasLtMatrixLayoutSetAttribute, layout,
                   CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
    PARAM_CUDA_TRY(err, nullptr, cublasLtMatrixLayoutSetAttribute, layout,
                   CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride));
  }
  return kit::kOk;
}

std::int32_t LtGemm::Describe(param_ctx& ctx, param_error* err) {
  cublasLtMatmulDesc_t desc = nullptr;
  PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulDescCreate, &desc, types_.compute, types_.scale);
  desc_.reset(desc);
  const std::int32_t op_first = gemm_.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const std::int32_t op_second = gemm_.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulDescSetAttribute, desc, CUBLASLT_MATMUL_DESC_TRANSA,
                 &op_first, sizeof(op_first));
  PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulDescSetAttribute, desc, CUBLASLT_MATMUL_DESC_TRANSB,
                 &op_second, sizeof(op_second));
  if (gemm_.dtype() == PARAM_DTYPE_F8E4M3) {
    const void* const one = ctx.one;
    PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulDescSetAttribute, desc,
                   CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &one, sizeof(one));
    PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulDescSetAttribute, desc,
                   CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &one, sizeof(one));
  }
  PARAM_KIT_TRY(MakeLayout(gemm_.b, gemm_.batch, types_.input, &first_, err));
  PARAM_KIT_TRY(MakeLayout(gemm_.a, gemm_.batch, types_.input, &second_, err));
  return MakeLayout(gemm_.c, gemm_.batch, types_.output, &result_, err);
}

std::int32_t LtGemm::Guess(param_ctx& ctx, std::uint32_t input_alignment,
                           std::uint32_t output_alignment, Candidates* out, std::string* why,
                           param_error* err) {
  cublasLtMatmulPreference_t raw = nullptr;
  PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulPreferenceCreate, &raw);
  const Preference preference(raw);
  const std::size_t limit = WorkspaceLimit(ctx);
  PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulPreferenceSetAttribute, raw,
                 CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof(limit));
  const std::pair<cublasLtMatmulPreferenceAttributes_t, std::uint32_t> alignments[] = {
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, input_alignment},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, input_alignment},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, output_alignment},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, output_alignment},
  };
  for (const auto& [attribute, bytes] : alignments) {
    PARAM_CUDA_TRY(err, nullptr, cublasLtMatmulPreferenceSetAttribute, raw, attribute, &bytes,
                   sizeof(bytes));
  }
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results = {};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      ctx.lt, desc_.get(), first_.get(), second_.get(), result_.get(), result_.get(), raw,
      kCandidates, results.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) {
    // INVALID_VALUE too: it is how the library refuses some combinations of shape and type.
    *why = cuda::Describe("cublasLtMatmulAlgoGetHeuristic", status);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
      return kit::kOk;
    }
    return FailWith(err, "cublasLtMatmulAlgoGetHeuristic", status, &ctx.lost);
  }
  *why = "no algorithm was offered";
  for (int i = 0; i < count; ++i) {
    const auto& one = results[static_cast<std::size_t>(i)];
    if (one.state != CUBLAS_STATUS_SUCCESS) continue;
    if (ComputesAs(gemm_.dtype(), MathOf(one.algo))) {
      out->push_back(one);
    } else {
      *why = "only algorithms of other arithmetic were offered: " + DescribeMath(MathOf(one.algo));
    }
  }
  return kit::kOk;
}

// Milliseconds of one run, or a negative number when this algorithm does not run.
std::int32_t LtGemm::TimeCandidate(param_ctx& ctx, const cublasLtMatmulHeuristicResult_t& candidate,
                                   const GemmTrial& trial, float* ms, param_error* err) {
  const GemmPointers at = {trial.a.data(), trial.b.data(), trial.c.data()};
  *ms = -1;
  int runs = 1;
  // The first round loads the kernel and says how long one run is; the second is the measurement.
  for (int round = 0; round < 2; ++round) {
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventRecord, ctx.begin, ctx.internal);
    for (int i = 0; i < runs; ++i) {
      const cublasStatus_t status =
          Run(ctx, ctx.internal, at, candidate, trial.workspace.data(), candidate.workspaceSize);
      if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
        *ms = -1;
        return kit::kOk;
      }
      if (status != CUBLAS_STATUS_SUCCESS)
        return FailWith(err, "cublasLtMatmul", status, &ctx.lost);
    }
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventRecord, ctx.end, ctx.internal);
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventSynchronize, ctx.end);
    float elapsed = 0;
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventElapsedTime, &elapsed, ctx.begin, ctx.end);
    *ms = elapsed / static_cast<float>(runs);
    if (*ms > kTuningBudgetMs / 4) break;
    runs = std::clamp(static_cast<int>(10.0F / std::max(*ms, 0.01F)), 3, 50);
  }
  return kit::kOk;
}

std::int32_t LtGemm::Choose(param_ctx& ctx, const Candidates& candidates, param_error* err) {
  chosen_ = candidates.front();
  std::size_t most = 0;
  for (const auto& one : candidates) most = std::max(most, one.workspaceSize);
  GemmTrial trial;
  PARAM_KIT_TRY(PrepareTrial(ctx, gemm_, types_, most, &trial, err));
  if (!trial.there) {
    chosen_by_ = "heuristic, no room to time algorithms";
    return kit::kOk;
  }
  float best = -1;
  float spent = 0;
  int timed = 0;
  for (const auto& one : candidates) {
    const bool cancelled = ctx.host != nullptr && ctx.host->cancelled != nullptr &&
                           ctx.host->cancelled(ctx.host->user) != 0;
    if (cancelled || spent > kTuningBudgetMs) break;
    float ms = 0;
    PARAM_KIT_TRY(TimeCandidate(ctx, one, trial, &ms, err));
    if (ms < 0) continue;
    ++timed;
    spent += std::max(2 * ms, 10.0F);
    if (best < 0 || ms < best * kFasterBy) {
      best = ms;
      chosen_ = one;
    }
  }
  if (timed == 0) {
    return kit::Fail(err, kit::kUnimplemented, "cuBLASLt offered %zu algorithms and ran none",
                     candidates.size());
  }
  chosen_by_ = "time, of " + std::to_string(timed);
  return kit::kOk;
}

std::int32_t LtGemm::Prepare(param_ctx& ctx, param_error* err) {
  PARAM_KIT_TRY(Describe(ctx, err));
  Candidates candidates;
  std::string why;
  PARAM_KIT_TRY(Guess(ctx, kAlignment, kAlignment, &candidates, &why, err));
  if (candidates.empty()) {
    return kit::Fail(err, kit::kUnimplemented,
                     "cuBLASLt has no %s gemm of %lld x %lld x %lld (m x n x k), trans_a %s, "
                     "trans_b %s on compute capability %s: %s%s",
                     kit::DtypeName(gemm_.dtype()), static_cast<long long>(gemm_.m),
                     static_cast<long long>(gemm_.n), static_cast<long long>(gemm_.k),
                     gemm_.trans_a ? "on" : "off", gemm_.trans_b ? "on" : "off",
                     ctx.Capability().c_str(), why.c_str(), Hint(ctx, gemm_.dtype()));
  }
  PARAM_KIT_TRY(Choose(ctx, candidates, err));
  Candidates unaligned;
  PARAM_KIT_TRY(Guess(ctx, static_cast<std::uint32_t>(kit::DtypeSize(gemm_.a.dtype)),
                      static_cast<std::uint32_t>(kit::DtypeSize(gemm_.c.dtype)), &unaligned, &why,
                      err));
  workspace_ = chosen_.workspaceSize;
  if (!unaligned.empty()) {
    unaligned_ = unaligned.front();
    has_unaligned_ = true;
    workspace_ = std::max(workspace_, unaligned_.workspaceSize);
  }
  return kit::kOk;
}

std::int32_t LtGemm::Enqueue(param_ctx& ctx, cudaStream_t stream, const param_operand* operands,
                             std::size_t count, param_buffer* workspace, param_error* err) {
  GemmPointers at;
  PARAM_KIT_TRY(ResolveGemm(gemm_, operands, count, &at, err));
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(at.a) |
                              reinterpret_cast<std::uintptr_t>(at.b) |
                              reinterpret_cast<std::uintptr_t>(at.c);
  const bool aligned = bits % kAlignment == 0;
  if (!aligned && !has_unaligned_) {
    return kit::Fail(err, kit::kInvalidArgument,
                     "gemm: operands of this operation must be aligned to %u bytes", kAlignment);
  }
  const cublasLtMatmulHeuristicResult_t& how = aligned ? chosen_ : unaligned_;
  if (how.workspaceSize > 0 && (workspace == nullptr || workspace->bytes < how.workspaceSize ||
                                workspace->kind == PARAM_MEMORY_HOST)) {
    return kit::Fail(err, kit::kInvalidArgument, "gemm: needs %zu bytes of workspace", workspace_);
  }
  const cublasStatus_t status = Run(
      ctx, stream, at, how, how.workspaceSize > 0 ? workspace->data : nullptr, how.workspaceSize);
  if (status != CUBLAS_STATUS_SUCCESS) return FailWith(err, "cublasLtMatmul", status, &ctx.lost);
  return kit::kOk;
}

std::string LtGemm::Info() const {
  const cublasLtMatmulAlgo_t& algo = chosen_.algo;
  const std::string id = ConfigOf<std::int32_t>(algo, CUBLASLT_ALGO_CONFIG_ID);
  return kit::JsonObject()
      .Text("library", "cuBLASLt " + BlasVersion(cublasLtGetVersion()))
      .Text("implementation", "cublasLtMatmul algorithm " + id)
      .Text("algorithm", id)
      .Text("tile", ConfigOf<std::uint32_t>(algo, CUBLASLT_ALGO_CONFIG_TILE_ID))
      .Text("stages", ConfigOf<std::uint32_t>(algo, CUBLASLT_ALGO_CONFIG_STAGES_ID))
      .Text("split_k", ConfigOf<std::int32_t>(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM))
      .Text("cluster", ConfigOf<std::uint16_t>(algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID))
      .Text("math", DescribeMath(MathOf(algo)))
      .Text("workspace_bytes", std::to_string(chosen_.workspaceSize))
      .Text("chosen_by", chosen_by_)
      .Done();
}

}  // namespace

std::int32_t CreateLtGemm(param_ctx& ctx, const kit::Gemm& gemm, std::unique_ptr<param_op>* out,
                          param_error* err) {
  GemmTypes types = {};
  PARAM_KIT_TRY(CheckGemm(ctx, gemm, &types, err));
  auto made = std::make_unique<LtGemm>(gemm, types);
  PARAM_KIT_TRY(made->Prepare(ctx, err));
  *out = std::move(made);
  return kit::kOk;
}

}  // namespace param::cuda
