// gemm_bench M N K ROUNDS: the cpu backend's f32 GEMM against a bare dnnl_sgemm loop on the same
// data, alternating in one process. Prints the ratio of rates per round (1 = equal, above = ours is
// faster) and that of the bare loop against itself, which is the noise.
#include <dlfcn.h>
#include <dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/fill.h"

namespace param {
namespace {

struct Shape {
  std::int64_t m, n, k;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename Once>
double MedianSeconds(int iterations, const Once& once) {
  std::vector<double> times;
  for (int i = 0; i < iterations; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    once();
    times.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return Median(times);
}

param_host Host(int threads) {
  param_host host = {};
  host.struct_size = sizeof(host);
  host.log = [](void*, std::int32_t, const char*) {};
  host.cancelled = [](void*) -> std::int32_t { return 0; };
  host.size = host.local_size = 1;
  host.script = "";
  host.threads = threads;
  return host;
}

absl::Status Compare(const Shape& shape, int rounds) {
  PARAM_ASSIGN_OR_RETURN(const LoadedBackend backend,
                         LoadBackend(PARAM_BINARY_DIR "/lib/param/backends/cpu/cpu.so"));
  const param_host host = Host(static_cast<int>(std::thread::hardware_concurrency()));
  PARAM_ASSIGN_OR_RETURN(Device device, Device::Open(*backend.device, host, 0));
  PARAM_ASSIGN_OR_RETURN(Stream stream, device.CreateStream());
  const auto bytes = [](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::size_t>(rows * columns) * sizeof(float);
  };
  PARAM_ASSIGN_OR_RETURN(Buffer a,
                         device.CreateBuffer(PARAM_MEMORY_DEVICE, bytes(shape.m, shape.k)));
  PARAM_ASSIGN_OR_RETURN(Buffer b,
                         device.CreateBuffer(PARAM_MEMORY_DEVICE, bytes(shape.k, shape.n)));
  PARAM_ASSIGN_OR_RETURN(Buffer c,
                         device.CreateBuffer(PARAM_MEMORY_DEVICE, bytes(shape.m, shape.n)));
  FillElements(Fill::kNormal, PARAM_DTYPE_F32, 1, a.native(), a.bytes() / sizeof(float));
  FillElements(Fill::kNormal, PARAM_DTYPE_F32, 2, b.native(), b.bytes() / sizeof(float));
  OpDesc gemm("gemm");
  gemm.Bool("trans_a", false).Bool("trans_b", false).Float("alpha", 1).Float("beta", 0);
  gemm.String("library", "auto");
  gemm.Tensor("a", PARAM_DTYPE_F32, {1, shape.m, shape.k});
  gemm.Tensor("b", PARAM_DTYPE_F32, {1, shape.k, shape.n});
  gemm.Tensor("c", PARAM_DTYPE_F32, {1, shape.m, shape.n});
  PARAM_ASSIGN_OR_RETURN(Op op, device.CreateOp(gemm.desc()));
  PARAM_ASSIGN_OR_RETURN(const std::string info, op.Info());

  const param_operand operands[] = {a.At(0), b.At(0), c.At(0)};
  const auto ours = [&] {
    if (!op.Enqueue(stream, operands, nullptr).ok()) std::abort();
  };
  const auto* pa = static_cast<const float*>(a.native());
  const auto* pb = static_cast<const float*>(b.native());
  auto* pc = static_cast<float*>(c.native());
  const auto bare = [&] {
    if (dnnl_sgemm('N', 'N', shape.m, shape.n, shape.k, 1, pa, shape.k, pb, shape.n, 0, pc,
                   shape.n) != dnnl_success) {
      std::abort();
    }
  };
  const double flop = 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
  const int iterations = std::clamp(static_cast<int>(2e10 / flop), 2, 200);
  MedianSeconds(2, ours);
  MedianSeconds(2, bare);
  std::vector<double> ratio, noise;
  for (int i = 0; i < rounds; ++i) {
    const double first = MedianSeconds(iterations, bare);
    const double mine = MedianSeconds(iterations, ours);
    const double second = MedianSeconds(iterations, bare);
    ratio.push_back((first + second) / 2 / mine);
    noise.push_back(first / second);
  }
  const auto [low, high] = std::minmax_element(ratio.begin(), ratio.end());
  const auto [quiet, loud] = std::minmax_element(noise.begin(), noise.end());
  std::printf(
      "gemm f32 %ldx%ldx%ld  rate over bare dnnl_sgemm: median %.3f (%.3f to %.3f), n=%d; "
      "bare over itself %.3f to %.3f; %s\n",
      shape.m, shape.n, shape.k, Median(ratio), *low, *high, rounds, *quiet, *loud, info.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: gemm_bench M N K ROUNDS\n");
    return 2;
  }
  const param::Shape shape = {std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3])};
  const absl::Status status = param::Compare(shape, std::atoi(argv[4]));
  if (!status.ok()) {
    std::fprintf(stderr, "gemm_bench: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
