// OpenBLAS's dgemm and sgemm.

#include <cblas.h>

#include <limits>

#include "agent/backends/cpu/kernel.h"

namespace param::cpu {
namespace {

blasint Narrow(std::int64_t value) { return static_cast<blasint>(value); }

class Openblas final : public GemmKernel {
 public:
  explicit Openblas(const kit::Gemm& gemm) : g_(gemm) {}

  std::int32_t Run(const void* a, const void* b, void* c, param_error*) override {
    if (g_.dtype() == PARAM_DTYPE_F64) {
      RunAll<double>(a, b, c, cblas_dgemm);
    } else {
      RunAll<float>(a, b, c, cblas_sgemm);
    }
    return kit::kOk;
  }
  std::string library() const override { return OpenblasVersion(); }
  std::string implementation() const override {
    return std::string(g_.dtype() == PARAM_DTYPE_F64 ? "dgemm " : "sgemm ") +
           openblas_get_corename();
  }

 private:
  template <typename T, typename Call>
  void RunAll(const void* a, const void* b, void* c, Call call) {
    const auto* one_a = static_cast<const T*>(a);
    const auto* one_b = static_cast<const T*>(b);
    auto* one_c = static_cast<T*>(c);
    for (std::int64_t i = 0; i < g_.batch; ++i) {
      call(CblasRowMajor, g_.trans_a ? CblasTrans : CblasNoTrans,
           g_.trans_b ? CblasTrans : CblasNoTrans, Narrow(g_.m), Narrow(g_.n), Narrow(g_.k),
           static_cast<T>(g_.alpha), one_a, Narrow(g_.a.ld), one_b, Narrow(g_.b.ld),
           static_cast<T>(g_.beta), one_c, Narrow(g_.c.ld));
      one_a += g_.a.batch_stride;
      one_b += g_.b.batch_stride;
      one_c += g_.c.batch_stride;
    }
  }

  kit::Gemm g_;
};

}  // namespace

// "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64".
std::string OpenblasVersion() { return openblas_get_config(); }

std::int32_t MakeOpenblas(const kit::Gemm& gemm, std::unique_ptr<GemmKernel>* out,
                          param_error* err) {
  if (gemm.dtype() != PARAM_DTYPE_F64 && gemm.dtype() != PARAM_DTYPE_F32) {
    return kit::Fail(err, kit::kUnimplemented, "OpenBLAS multiplies f64 and f32, not %s",
                     kit::DtypeName(gemm.dtype()));
  }
  constexpr std::int64_t kMax = std::numeric_limits<blasint>::max();
  for (const std::int64_t size : {gemm.m, gemm.n, gemm.k, gemm.a.ld, gemm.b.ld, gemm.c.ld}) {
    if (size > kMax) {
      return kit::Fail(err, kit::kUnimplemented, "OpenBLAS takes dimensions up to %lld, not %lld",
                       static_cast<long long>(kMax), static_cast<long long>(size));
    }
  }
  *out = std::make_unique<Openblas>(gemm);
  return kit::kOk;
}

}  // namespace param::cpu
