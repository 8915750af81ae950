// The peak rate of a type, measured: the best run of a large square matrix multiplication.

#include <algorithm>
#include <memory>

#include "agent/backends/cuda/gemm.h"

namespace param::cuda {
namespace {

constexpr std::int64_t kSmall = 4096;
constexpr std::int64_t kLarge = 8192;
constexpr int kWarmup = 2;
constexpr int kRuns = 10;
// The larger square is 8 times the work; beyond this the smaller one has long filled the device.
constexpr float kEnlargeBelowMs = 60;

kit::Gemm Square(std::int64_t side, param_dtype dtype) {
  kit::Gemm gemm;
  gemm.m = gemm.n = gemm.k = side;
  // The layout that f8 and i8 need and that suits the others as well.
  gemm.trans_b = true;
  const auto matrix = [side](param_dtype type) {
    kit::GemmMatrix out;
    out.dtype = type;
    out.rows = out.cols = out.ld = side;
    out.bytes =
        static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * kit::DtypeSize(type);
    return out;
  };
  gemm.a = gemm.b = matrix(dtype);
  gemm.c = matrix(kit::GemmResultType(dtype));
  return gemm;
}

// The shortest of several runs, in milliseconds.
std::int32_t BestMs(param_ctx& ctx, const kit::Gemm& gemm, float* out, param_error* err) {
  GemmTypes types = {};
  PARAM_KIT_TRY(CheckGemm(ctx, gemm, &types, err));
  std::unique_ptr<param_op> op;
  PARAM_KIT_TRY(CreateLtGemm(ctx, gemm, &op, err));
  GemmTrial trial;
  PARAM_KIT_TRY(PrepareTrial(ctx, gemm, types, op->workspace_bytes(), &trial, err));
  if (!trial.there) {
    return kit::Fail(err, kit::kResourceExhausted, "no room on the device for a square of %lld",
                     static_cast<long long>(gemm.m));
  }
  param_buffer buffers[4] = {{PARAM_MEMORY_DEVICE, trial.a.data(), gemm.a.bytes},
                             {PARAM_MEMORY_DEVICE, trial.b.data(), gemm.b.bytes},
                             {PARAM_MEMORY_DEVICE, trial.c.data(), gemm.c.bytes},
                             {PARAM_MEMORY_DEVICE, trial.workspace.data(), op->workspace_bytes()}};
  const param_operand operands[3] = {{&buffers[0], 0}, {&buffers[1], 0}, {&buffers[2], 0}};
  *out = 0;
  for (int i = 0; i < kWarmup + kRuns; ++i) {
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventRecord, ctx.begin, ctx.internal);
    PARAM_KIT_TRY(op->Enqueue(ctx, ctx.internal, operands, 3, &buffers[3], err));
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventRecord, ctx.end, ctx.internal);
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventSynchronize, ctx.end);
    float ms = 0;
    PARAM_CUDA_TRY(err, &ctx.lost, cudaEventElapsedTime, &ms, ctx.begin, ctx.end);
    if (i >= kWarmup) *out = *out == 0 ? ms : std::min(*out, ms);
    if (ctx.host != nullptr && ctx.host->cancelled != nullptr &&
        ctx.host->cancelled(ctx.host->user) != 0) {
      return kit::Fail(err, kit::kCancelled, "cancelled while the peak was measured");
    }
  }
  return kit::kOk;
}

}  // namespace

std::int32_t PeakFlops(param_ctx* ctx, param_dtype dtype, double* out, char* how,
                       std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    std::int64_t side = kSmall;
    float ms = 0;
    PARAM_KIT_TRY(BestMs(*ctx, Square(side, dtype), &ms, err));
    double rate = Square(side, dtype).flops() / (static_cast<double>(ms) * 1e-3);
    if (ms < kEnlargeBelowMs) {
      float large_ms = 0;
      param_error ignored = {};
      const std::int32_t code = BestMs(*ctx, Square(kLarge, dtype), &large_ms, &ignored);
      const double large_rate =
          Square(kLarge, dtype).flops() / (static_cast<double>(large_ms) * 1e-3);
      // No room for it is no failure; the smaller square stands.
      if (code != kit::kOk && code != kit::kResourceExhausted) {
        return kit::Fail(err, static_cast<kit::Code>(code), "%s", ignored.message);
      }
      if (code == kit::kOk && large_rate > rate) {
        rate = large_rate;
        side = kLarge;
      }
    }
    *out = rate;
    const std::string side_text = std::to_string(side);
    return kit::PutText("measured: best of " + std::to_string(kRuns) + " runs of " + side_text +
                            "x" + side_text + "x" + side_text + " " + kit::DtypeName(dtype) +
                            ", cuBLASLt " + BlasVersion(cublasLtGetVersion()),
                        how, capacity, err);
  });
}

}  // namespace param::cuda
