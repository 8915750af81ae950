// General matrix multiplication: the first benchmark of the catalogue.

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/catalog/problem_sets.h"
#include "proto/catalog/spec.h"
#include "proto/catalog/values.h"

namespace param {

const BenchmarkSpec& GemmSpec();

namespace {

constexpr double kLargestDimension = 2147483647;  // 2^31 - 1: what every library's int takes

constexpr absl::string_view kDtypes[] = {"f64",  "f32",    "tf32",   "f16",
                                         "bf16", "f8e4m3", "f8e5m2", "i8"};
constexpr absl::string_view kLibraries[] = {"auto", "onednn", "openblas", "cublas", "cublaslt"};

constexpr ParamSpec kParams[] = {
    {"m",
     ParamType::kInt,
     ParamRole::kCase,
     "1024",
     1,
     kLargestDimension,
     {},
     "rows of op(A) and C"},
    {"n",
     ParamType::kInt,
     ParamRole::kCase,
     "1024",
     1,
     kLargestDimension,
     {},
     "columns of op(B) and C"},
    {"k",
     ParamType::kInt,
     ParamRole::kCase,
     "1024",
     1,
     kLargestDimension,
     {},
     "columns of op(A), rows of op(B): what is summed over"},
    {"batch",
     ParamType::kInt,
     ParamRole::kCase,
     "1",
     1,
     kLargestDimension,
     {},
     "independent products of that shape in one operation"},
    {"dtype", ParamType::kChoice, ParamRole::kCase, "f32", 0, 0, kDtypes,
     "element type of A and B; it decides that of C"},
    {"trans_a",
     ParamType::kBool,
     ParamRole::kCase,
     "false",
     0,
     0,
     {},
     "A is stored transposed, as K rows of M"},
    {"trans_b",
     ParamType::kBool,
     ParamRole::kCase,
     "false",
     0,
     0,
     {},
     "B is stored transposed, as N rows of K"},
    {"alpha", ParamType::kFloat, ParamRole::kCase, "1", -1e6, 1e6, {}, "factor of the product"},
    {"beta",
     ParamType::kFloat,
     ParamRole::kCase,
     "0",
     -1e6,
     1e6,
     {},
     "factor of what C held before; 0 means that C is not read"},
    {"library", ParamType::kChoice, ParamRole::kCase, "auto", 0, 0, kLibraries,
     "which library computes; auto takes the fastest that the backend has for the case"},
};

constexpr absl::string_view kExamples[] = {
    "--nodes 4",
    "--m 4096 --n 4096 --k 4096 --dtype f32,bf16",
    "--m 256:4096:x2 --n 1024 --k 1024 --iters 100",
    "--set deepbench-server --backend cuda --dtype f16",
};

constexpr absl::string_view kDescription = R"(
Each rank computes C(M,N) = alpha * op(A)(M,K) * op(B)(K,N) + beta * C(M,N) on its own, `batch` times
per iteration, with dense row-major matrices. op is the identity, or the transposition with
`--trans-a`, `--trans-b`. A sample is the time of one such operation; filling, verification, choice of
the algorithm and restoring C are outside.

**Types.** `dtype` is the type of A and B. C has the same type, but for `i8` (C is i32) and for
`f8e4m3` and `f8e5m2` (C is bf16). `tf32` stores f32 and multiplies with ten mantissa bits. Sums are
kept in f64 for `f64`, in i32 for `i8`, else in f32. Random `i8` inputs keep to -63..63: processors
without VNNI add pairs of products in 16 bits, which larger ones overflow. What a backend or a library cannot do is SKIPPED
with its reason, never done in another type.

**Formulas.** FLOP = 2 * M * N * K * batch: a multiplication and an addition per term, alpha and beta
not counted. Ideal bytes = batch * (itemsize(A) * (M*K + K*N) + itemsize(C) * M*N * (1, or 2 with
beta)): each matrix read or written once, so caches can make the true traffic smaller or larger. The
peak is that of the device for the type, measured or from its data sheet as the rank reports.

**Verification.** Sampled elements of C are compared with a reference of higher precision, computed on
the host; the tolerance follows from the type and K. A failed check makes the case WRONG.

**Memory.** On the device: A + B + C, and C once more with beta (each sample starts from the same C).
On the host: as much again, for filling and for the reference. Both count for a CPU, whose device
memory is the host's. A job whose ranks cannot fit is rejected.

**Pipelined with beta.** In mode `pipelined` only the first iteration of a batch starts from the original
C; each further one starts from what the one before left. With |beta| >= 1 the values of C grow over a
batch, and may overflow in narrow types.

**Problem sets.** They list M, N and K as published. DeepBench's published numbers come from
column-major calls. Here the library is called row-major with the published M, N, K and op letters:
the matrices have the same sizes but lie the other way round, which to the library is the problem with
M and N exchanged. FLOP and bytes are the same, the call is not: skinny shapes above all may take
another kernel than DeepBench's call takes and run at quite another rate. Compare a row with the same
row measured here, not with DeepBench's published times.
)";

double Dimension(const Params& params, absl::string_view name) {
  return static_cast<double>(IntParam(params, name, 1));
}

std::int64_t InputBytes(absl::string_view dtype) {
  if (dtype == "f64") return 8;
  if (dtype == "f32" || dtype == "tf32") return 4;
  if (dtype == "f16" || dtype == "bf16") return 2;
  return 1;
}

std::int64_t OutputBytes(absl::string_view dtype) {
  if (dtype == "i8") return 4;
  if (dtype == "f8e4m3" || dtype == "f8e5m2") return 2;
  return InputBytes(dtype);
}

double Flop(const Params& params) {
  return 2 * Dimension(params, "m") * Dimension(params, "n") * Dimension(params, "k") *
         Dimension(params, "batch");
}

double IdealBytes(const Params& params) {
  const std::string dtype = TextParam(params, "dtype", "f32");
  const double m = Dimension(params, "m");
  const double n = Dimension(params, "n");
  const double k = Dimension(params, "k");
  const double passes = FloatParam(params, "beta", 0) == 0 ? 1 : 2;
  return Dimension(params, "batch") * (static_cast<double>(InputBytes(dtype)) * (m * k + k * n) +
                                       static_cast<double>(OutputBytes(dtype)) * m * n * passes);
}

double PeakOf(const Scalars& scalars) {
  const auto it = scalars.find("peak");
  return it != scalars.end() && std::isfinite(it->second) && it->second > 0
             ? it->second
             : std::numeric_limits<double>::quiet_NaN();
}

constexpr MetricSpec kMetrics[] = {
    {"time", "s", false, "time of one operation, one sample per iteration and rank"},
    {"flops", "FLOP/s", true, "2 * M * N * K * batch / time, per rank",
     [](const Params& params, const Scalars&, double time_s) { return Flop(params) / time_s; }},
    {"bandwidth", "B/s", true, "ideal bytes / time, per rank",
     [](const Params& params, const Scalars&, double time_s) {
       return IdealBytes(params) / time_s;
     }},
    {"peak", "FLOP/s", true, "what the device can do at most with this type, where known",
     [](const Params&, const Scalars& scalars, double) { return PeakOf(scalars); }},
    {"efficiency", "1", true, "flops / peak, where the peak is known",
     [](const Params& params, const Scalars& scalars, double time_s) {
       return Flop(params) / time_s / PeakOf(scalars);
     }},
};

// rows * columns * batch * itemsize; the error names the parameters that make it too large.
absl::StatusOr<std::int64_t> MatrixBytes(const Params& params, absl::string_view rows,
                                         absl::string_view columns, std::int64_t itemsize) {
  std::int64_t bytes = itemsize;
  for (const absl::string_view factor : {rows, columns, absl::string_view("batch")}) {
    if (__builtin_mul_overflow(bytes, IntParam(params, factor, 1), &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", rows, " x --", columns, " x --batch: ", IntParam(params, rows, 1),
                       " x ", IntParam(params, columns, 1), " x ", IntParam(params, "batch", 1),
                       " elements of ", itemsize, " B are more than 2^63 bytes"));
    }
  }
  return bytes;
}

absl::StatusOr<Footprint> GemmFootprint(const Params& params, int /*ranks*/) {
  const std::string dtype = TextParam(params, "dtype", "f32");
  PARAM_ASSIGN_OR_RETURN(const std::int64_t a, MatrixBytes(params, "m", "k", InputBytes(dtype)));
  PARAM_ASSIGN_OR_RETURN(const std::int64_t b, MatrixBytes(params, "k", "n", InputBytes(dtype)));
  PARAM_ASSIGN_OR_RETURN(const std::int64_t c, MatrixBytes(params, "m", "n", OutputBytes(dtype)));
  const std::int64_t restored = FloatParam(params, "beta", 0) == 0 ? 0 : c;
  std::int64_t total = a;
  for (const std::int64_t more : {b, c, restored}) {
    if (__builtin_add_overflow(total, more, &total)) {
      return absl::InvalidArgumentError(
          "--m, --n, --k, --batch: the matrices together are more than 2^63 bytes");
    }
  }
  return Footprint{total, total};
}

}  // namespace

const BenchmarkSpec& GemmSpec() {
  static const auto* const spec = new BenchmarkSpec{"gemm",
                                                    1,
                                                    "dense matrix multiplication on each rank",
                                                    kDescription,
                                                    kParams,
                                                    kMetrics,
                                                    GemmFootprint,
                                                    ProblemSetsOf("gemm"),
                                                    kExamples};
  return *spec;
}

}  // namespace param
