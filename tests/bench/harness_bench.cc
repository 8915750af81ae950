// What the measuring loop costs per isolated iteration, over the clock calls that no loop can do
// without: the fake backend's no-op through Measure() against two reads of the monotonic clock.

#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/device_timer.h"
#include "agent/bench/measure.h"
#include "proto/base/clock.h"
#include "tests/fakes/thread_team.h"

namespace param {
namespace {

constexpr std::int64_t kIterations = 200'000;
constexpr int kRounds = 15;
constexpr double kBar = 150e-9;

class SilentReporter final : public CaseReporter {
 public:
  void VerifyBegins() override {}
  void WarmupBegins() override {}
  void TimedBegins() override {}
  void Samples(absl::string_view, absl::string_view, const std::map<std::string, std::string>&,
               absl::Span<const double>) override {}
  bool Cancelled() const override { return false; }
};

class Noop final : public Operation {
 public:
  Noop(Op op, Stream& stream) : op_(std::move(op)), stream_(stream) {}
  absl::Status Enqueue() override { return op_.Enqueue(stream_, {}, nullptr); }

 private:
  Op op_;
  Stream& stream_;
};

// Of this thread's own CPU time: what else the machine does is not the harness's cost.
double Now() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

// The fake backend, open.
class Bench {
 public:
  Bench()
      : backend_(
            OrDie(LoadBackend(std::string(PARAM_BINARY_DIR) + "/lib/param/backends/fake/fake.so"))),
        device_(OrDie(Device::Open(*backend_.device, Host(), 0))),
        stream_(OrDie(device_.CreateStream())),
        timer_(OrDie(DeviceTimer::Create(device_, stream_))),
        noop_(OrDie(device_.CreateOp(OpDesc("noop").desc())), stream_) {
    options_.iters = kIterations;
    options_.mode = "isolated";
  }

  // Seconds per iteration.
  double ThroughMeasure() {
    const double from = Now();
    benchmark::DoNotOptimize(
        OrDie(Measure(team_, timer_, noop_, options_, clock_, reporter_)).samples.data());
    return (Now() - from) / static_cast<double>(kIterations);
  }

  static double BareClock() {
    std::vector<double> samples;
    samples.reserve(kIterations);
    const double from = Now();
    for (std::int64_t i = 0; i < kIterations; ++i) {
      timespec begin = {};
      timespec end = {};
      clock_gettime(CLOCK_MONOTONIC, &begin);
      clock_gettime(CLOCK_MONOTONIC, &end);
      samples.push_back(static_cast<double>(end.tv_nsec - begin.tv_nsec));
    }
    benchmark::DoNotOptimize(samples.data());
    return (Now() - from) / static_cast<double>(kIterations);
  }

 private:
  static const param_host& Host() {
    static constexpr param_host kHost = [] {
      param_host host = {};
      host.struct_size = sizeof(host);
      host.size = host.local_size = host.threads = 1;
      host.script = "";
      return host;
    }();
    return kHost;
  }

  LoadedBackend backend_;
  Device device_;
  Stream stream_;
  DeviceTimer timer_;
  Noop noop_;
  SoloTeam team_;
  SystemClock clock_;
  SilentReporter reporter_;
  MeasureOptions options_;
};

void IsolatedIteration(benchmark::State& state) {
  Bench bench;
  for (auto _ : state) state.SetIterationTime(bench.ThroughMeasure());
}
BENCHMARK(IsolatedIteration)->UseManualTime()->Iterations(10)->Unit(benchmark::kNanosecond);

void TwoClockReads(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(Bench::BareClock());
}
BENCHMARK(TwoClockReads)->UseManualTime()->Iterations(10)->Unit(benchmark::kNanosecond);

// Both in turn, so that a machine that changes its speed changes both; the median of the
// differences.
double Difference() {
  Bench bench;
  std::vector<double> differences;
  for (int i = 0; i < kRounds; ++i) {
    const double bare = Bench::BareClock();
    differences.push_back(bench.ThroughMeasure() - bare);
  }
  std::sort(differences.begin(), differences.end());
  return differences[kRounds / 2];
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  const double difference = param::Difference();
  std::printf(
      "harness cost per isolated iteration over two clock reads: %.1f ns (bar %.0f ns, "
      "ratio %.2f)\n",
      difference * 1e9, param::kBar * 1e9, difference / param::kBar);
  return 0;
}
