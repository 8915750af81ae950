// The peak rate of the processors, measured: fused multiply-adds in registers on every thread. It
// includes what the machine does to its clock under such work, which no data sheet does.

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <vector>

#include "agent/backends/cpu/machine.h"
#include "agent/backends/cpu/state.h"

namespace param::cpu {
namespace {

#if defined(__x86_64__)

constexpr int kAccumulators = 12;  // enough to hide a latency of 4 on two units, and to spare
// Short against a time slice, so that some rounds are not interrupted, and many, so that the clock
// settles as it does under long work.
constexpr int kRounds = 50;
constexpr double kRoundSeconds = 0.002;

// Twelve independent chains. In assembly, so that a debug build measures the same.
#define PARAM_FMA_LOOP(instruction, r)                                                         \
  asm volatile("vxorps %%" r "0, %%" r "0, %%" r                                               \
               "0\n"                                                                           \
               "vxorps %%" r "1, %%" r "1, %%" r                                               \
               "1\n"                                                                           \
               "vxorps %%" r "2, %%" r "2, %%" r                                               \
               "2\n"                                                                           \
               "vxorps %%" r "3, %%" r "3, %%" r                                               \
               "3\n"                                                                           \
               "vxorps %%" r "4, %%" r "4, %%" r                                               \
               "4\n"                                                                           \
               "vxorps %%" r "5, %%" r "5, %%" r                                               \
               "5\n"                                                                           \
               "vxorps %%" r "6, %%" r "6, %%" r                                               \
               "6\n"                                                                           \
               "vxorps %%" r "7, %%" r "7, %%" r                                               \
               "7\n"                                                                           \
               "vxorps %%" r "8, %%" r "8, %%" r                                               \
               "8\n"                                                                           \
               "vxorps %%" r "9, %%" r "9, %%" r                                               \
               "9\n"                                                                           \
               "vxorps %%" r "10, %%" r "10, %%" r                                             \
               "10\n"                                                                          \
               "vxorps %%" r "11, %%" r "11, %%" r                                             \
               "11\n"                                                                          \
               "vxorps %%" r "12, %%" r "12, %%" r                                             \
               "12\n"                                                                          \
               "1:\n" instruction " %%" r "12, %%" r "12, %%" r "0\n" instruction " %%" r      \
               "12, %%" r "12, %%" r "1\n" instruction " %%" r "12, %%" r "12, %%" r           \
               "2\n" instruction " %%" r "12, %%" r "12, %%" r "3\n" instruction " %%" r       \
               "12, %%" r "12, %%" r "4\n" instruction " %%" r "12, %%" r "12, %%" r           \
               "5\n" instruction " %%" r "12, %%" r "12, %%" r "6\n" instruction " %%" r       \
               "12, %%" r "12, %%" r "7\n" instruction " %%" r "12, %%" r "12, %%" r           \
               "8\n" instruction " %%" r "12, %%" r "12, %%" r "9\n" instruction " %%" r       \
               "12, %%" r "12, %%" r "10\n" instruction " %%" r "12, %%" r "12, %%" r          \
               "11\n"                                                                          \
               "dec %0\n"                                                                      \
               "jnz 1b\n"                                                                      \
               "vzeroupper\n"                                                                  \
               : "+r"(iterations)                                                              \
               :                                                                               \
               : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                 "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

void LoopAvx2F32(std::int64_t iterations) { PARAM_FMA_LOOP("vfmadd231ps", "ymm"); }
void LoopAvx2F64(std::int64_t iterations) { PARAM_FMA_LOOP("vfmadd231pd", "ymm"); }
void LoopAvx512F32(std::int64_t iterations) { PARAM_FMA_LOOP("vfmadd231ps", "zmm"); }
void LoopAvx512F64(std::int64_t iterations) { PARAM_FMA_LOOP("vfmadd231pd", "zmm"); }

#undef PARAM_FMA_LOOP

struct Loop {
  void (*run)(std::int64_t iterations) = nullptr;
  double flops_per_iteration = 0;
  const char* name = "";
};

Loop BestLoop(bool is_f64) {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    return {is_f64 ? LoopAvx512F64 : LoopAvx512F32, kAccumulators * 2.0 * (is_f64 ? 8 : 16),
            "AVX-512"};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {is_f64 ? LoopAvx2F64 : LoopAvx2F32, kAccumulators * 2.0 * (is_f64 ? 4 : 8), "AVX2"};
  }
  return {};
}

// Seconds that the slowest of `threads` needs for the iterations, begun together.
double TimeOnce(const Loop& loop, int threads, std::int64_t iterations) {
  std::barrier start(threads);
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  Parallel(threads, [&](int i) {
    start.arrive_and_wait();
    const std::int64_t begin = MonotonicNs();
    loop.run(iterations);
    seconds[static_cast<std::size_t>(i)] = static_cast<double>(MonotonicNs() - begin) * 1e-9;
  });
  return *std::max_element(seconds.begin(), seconds.end());
}

double MeasurePeak(const Loop& loop, int threads) {
  std::int64_t iterations = 100'000;
  const double guess = TimeOnce(loop, threads, iterations);
  iterations = std::max<std::int64_t>(
      1000, static_cast<std::int64_t>(static_cast<double>(iterations) * kRoundSeconds / guess));
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double seconds = TimeOnce(loop, threads, iterations);
    best = std::max(best,
                    static_cast<double>(iterations) * loop.flops_per_iteration * threads / seconds);
  }
  return best;
}

#endif

}  // namespace

std::int32_t PeakFlops(param_ctx* ctx, param_dtype dtype, double* out, char* how,
                       std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (dtype != PARAM_DTYPE_F32 && dtype != PARAM_DTYPE_F64) {
      return kit::Fail(err, kit::kUnimplemented, "no peak is measured for %s on processors",
                       kit::DtypeName(dtype));
    }
#if defined(__x86_64__)
    const Loop loop = BestLoop(dtype == PARAM_DTYPE_F64);
    if (loop.run != nullptr) {
      *out = MeasurePeak(loop, ctx->threads);
      return kit::PutText(std::string("measured FMA loop, ") + loop.name + ", " +
                              std::to_string(ctx->threads) +
                              (ctx->threads == 1 ? " thread" : " threads"),
                          how, capacity, err);
    }
#endif
    return kit::Fail(err, kit::kUnimplemented, "no loop for the peak of this processor");
  });
}

}  // namespace param::cpu
