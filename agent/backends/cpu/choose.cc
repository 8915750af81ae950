// Which kernel runs a multiplication.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "agent/backends/cpu/state.h"

namespace param::cpu {
namespace {

// A trial costs up to kRuns multiplications by each kernel, about a tenth of a second each at most;
// beyond that, and beyond this much scratch memory, sgemm is taken as it is.
constexpr double kMaxTrialFlopsPerThread = 5e9;
constexpr std::size_t kMaxTrialBytes = std::size_t{512} << 20;
constexpr int kRuns = 4;  // the first is a warm-up
// By less than this the other kernel does not win: it may be noise.
constexpr double kMargin = 0.98;

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};
using Scratch = std::unique_ptr<float, FreeDeleter>;

// Memory with ordinary numbers in it: zeros and denormals may take another time.
Scratch MakeScratch(std::size_t bytes) {
  const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
  Scratch memory(static_cast<float*>(std::aligned_alloc(4096, rounded)));
  if (memory == nullptr) throw std::bad_alloc();
  for (std::size_t i = 0; i < rounded / sizeof(float); ++i) {
    memory.get()[i] = static_cast<float>(i % 7) * 0.25f - 0.75f;
  }
  return memory;
}

bool IsTriable(const kit::Gemm& gemm, int threads) {
  return gemm.flops() <= kMaxTrialFlopsPerThread * threads &&
         gemm.a.bytes + gemm.b.bytes + gemm.c.bytes <= kMaxTrialBytes;
}

// Seconds of the fastest of some runs of each, taken in turn so that both see the same machine.
std::int32_t Race(const kit::Gemm& gemm, const param_host& host, GemmKernel* const kernels[2],
                  double seconds[2], param_error* err) {
  const Scratch a = MakeScratch(gemm.a.bytes);
  const Scratch b = MakeScratch(gemm.b.bytes);
  const Scratch c = MakeScratch(gemm.c.bytes);
  seconds[0] = seconds[1] = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    for (int i = 0; i < 2; ++i) {
      if (host.cancelled != nullptr && host.cancelled(host.user) != 0) {
        return kit::Fail(err, kit::kCancelled, "cancelled while kernels were tried");
      }
      const std::int64_t begin = MonotonicNs();
      PARAM_KIT_TRY(kernels[i]->Run(a.get(), b.get(), c.get(), err));
      const double took = static_cast<double>(MonotonicNs() - begin) * 1e-9;
      if (run > 0) seconds[i] = std::min(seconds[i], took);
    }
  }
  return kit::kOk;
}

std::int32_t ChooseOnednnF32(const kit::Gemm& gemm, const param_host& host, int threads,
                             std::unique_ptr<GemmKernel>* out, std::string* trial,
                             param_error* err) {
  PARAM_KIT_TRY(MakeSgemm(gemm, out, err));
  if (!IsTriable(gemm, threads)) {
    *trial = "none: a run takes too long";
    return kit::kOk;
  }
  std::unique_ptr<GemmKernel> matmul;
  param_error ignored = {};
  if (MakeMatmul(gemm, &matmul, &ignored) != kit::kOk) {
    *trial = std::string("none: ") + ignored.message;
    return kit::kOk;
  }
  GemmKernel* const kernels[2] = {out->get(), matmul.get()};
  double seconds[2];
  PARAM_KIT_TRY(Race(gemm, host, kernels, seconds, err));
  char text[96];
  std::snprintf(text, sizeof(text), "sgemm %.4g ms, matmul %.4g ms", seconds[0] * 1e3,
                seconds[1] * 1e3);
  *trial = text;
  if (seconds[1] < seconds[0] * kMargin) *out = std::move(matmul);
  return kit::kOk;
}

}  // namespace

std::int32_t ChooseKernel(const kit::Gemm& gemm, const param_host& host, int threads,
                          std::unique_ptr<GemmKernel>* out, std::string* trial, param_error* err) {
  const bool any = gemm.library == "auto";
  if (!any && gemm.library != "onednn" && gemm.library != "openblas") {
    return kit::Fail(err, kit::kUnimplemented, "library %s is not part of backend cpu",
                     gemm.library.c_str());
  }
  switch (gemm.dtype()) {
    case PARAM_DTYPE_F64:
      return gemm.library == "onednn" ? MakeMatmul(gemm, out, err) : MakeOpenblas(gemm, out, err);
    case PARAM_DTYPE_F32:
      if (gemm.library == "openblas") return MakeOpenblas(gemm, out, err);
      return ChooseOnednnF32(gemm, host, threads, out, trial, err);
    case PARAM_DTYPE_BF16:
    case PARAM_DTYPE_I8:
      return gemm.library == "openblas" ? MakeOpenblas(gemm, out, err) : MakeMatmul(gemm, out, err);
    case PARAM_DTYPE_TF32:
    case PARAM_DTYPE_F16:
    case PARAM_DTYPE_F8E4M3:
    case PARAM_DTYPE_F8E5M2:
    case PARAM_DTYPE_U8:
    case PARAM_DTYPE_I32:
    case PARAM_DTYPE_I64:
      break;
  }
  return kit::Fail(err, kit::kUnimplemented,
                   "backend cpu has no library that multiplies %s (it has f64, f32, bf16, i8)",
                   kit::DtypeName(gemm.dtype()));
}

}  // namespace param::cpu
