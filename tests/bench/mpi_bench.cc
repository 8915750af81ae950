// mpi_bench PAIRS, on two ranks under mpirun: the mpi backend's prepared operations, in the
// measuring loop and in a bare one, against bare loops over the same MPI call on the same memory,
// alternating in one launch. Prints the ratio of median times per pair (1 = equal, below = ours is
// faster; the slowest rank's median; of bandwidths it is the inverse) and that of the bare loop
// against itself, which is the noise.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/device_timer.h"
#include "agent/bench/measure.h"
#include "proto/base/clock.h"

namespace param {
namespace {

constexpr std::int64_t kLong = 60'000'000'000;

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "mpi_bench: %s\n", value.status().ToString().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// "1.012 (0.998 to 1.034)": the median and what it lies between.
std::string Spread(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f (%.3f to %.3f)", Median(values), *low, *high);
  return text;
}

// Of all ranks' values.
double Slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

// What in a job the service carries.
class WorldTeam final : public Team {
 public:
  WorldTeam(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::StatusOr<std::vector<std::string>> Exchange(absl::string_view mine) override {
    const int bytes = static_cast<int>(mine.size());  // the loop's texts are equally long
    std::string all(mine.size() * static_cast<std::size_t>(size_), '\0');
    MPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < all.size(); at += mine.size()) {
      parts.push_back(all.substr(at, mine.size()));
    }
    return parts;
  }

 private:
  int rank_, size_;
};

class SilentReporter final : public CaseReporter {
 public:
  void VerifyBegins() override {}
  void WarmupBegins() override {}
  void TimedBegins() override {}
  void Samples(absl::string_view, absl::string_view, const std::map<std::string, std::string>&,
               absl::Span<const double>) override {}
  bool Cancelled() const override { return false; }
};

// The backend, open.
struct Backend {
  LoadedBackend cpu = OrDie(LoadBackend(PARAM_BINARY_DIR "/lib/param/backends/cpu/cpu.so"));
  LoadedBackend mpi = OrDie(LoadBackend(PARAM_BINARY_DIR "/lib/param/backends/mpi/mpi.so"));
  param_host host = {};
  std::optional<Device> device;
  param_ctx* ctx = nullptr;
  param_comm* comm = nullptr;

  absl::Status Open() {
    const auto variable = [](const char* name) {
      const char* const value = std::getenv(name);
      return value == nullptr ? 1 : std::atoi(value);
    };
    host.struct_size = sizeof(host);
    host.rank = variable("OMPI_COMM_WORLD_RANK");
    host.size = variable("OMPI_COMM_WORLD_SIZE");
    host.script = "";
    host.threads = 1;
    PARAM_ASSIGN_OR_RETURN(Device opened, Device::Open(*cpu.device, host, 0));
    device.emplace(std::move(opened));
    BackendError error;
    PARAM_RETURN_IF_ERROR(
        BackendStatus(mpi.comm->open(&host, &*cpu.device, device->ctx(), &ctx, &error), error));
    const std::uint8_t id[PARAM_COMM_ID_BYTES] = {};
    return BackendStatus(mpi.comm->comm_create(ctx, id, host.rank, host.size, kLong, &comm, &error),
                         error);
  }
};

class Prepared final : public Operation {
 public:
  Prepared(const Backend& backend, const param_op_desc& desc, const Buffer& src, const Buffer& dst)
      : backend_(backend), operands_{src.At(0), dst.At(0)} {
    BackendError error;
    const absl::Status made = BackendStatus(
        backend.mpi.comm->op_create(backend.ctx, backend.comm, &desc, &op_, &error), error);
    OrDie(made.ok() ? absl::StatusOr<int>(0) : absl::StatusOr<int>(made));
  }
  ~Prepared() override { backend_.mpi.comm->op_destroy(backend_.ctx, op_); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  absl::Status Enqueue() override {
    BackendError error;
    return BackendStatus(backend_.mpi.comm->op_enqueue(backend_.ctx, op_, nullptr, operands_, 2,
                                                       nullptr, nullptr, &error),
                         error);
  }

 private:
  const Backend& backend_;
  param_operand operands_[2];
  param_op* op_ = nullptr;
};

template <typename Once>
double BareMedian(std::int64_t iterations, const Once& once) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(iterations));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 5; ++i) once();
  for (std::int64_t i = 0; i < iterations; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    once();
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double>(end - begin).count());
  }
  return Slowest(Median(std::move(times)));
}

struct Shape {
  const char* name;
  std::int64_t bytes;  // of an operand
  std::int64_t iterations;
};

// Runs `pairs` rounds of bare, ours in the measuring loop, ours in the bare loop, bare.
template <typename Bare>
absl::Status Compare(Backend& backend, const Shape& shape, const param_op_desc& desc,
                     const Buffer& src, const Buffer& dst, int pairs, const Bare& bare) {
  WorldTeam team(backend.host.rank, backend.host.size);
  PARAM_ASSIGN_OR_RETURN(Stream stream, backend.device->CreateStream());
  PARAM_ASSIGN_OR_RETURN(DeviceTimer timer, DeviceTimer::Create(*backend.device, stream));
  Prepared operation(backend, desc, src, dst);
  MeasureOptions options;
  options.iters = shape.iterations;
  options.warmup = 5;
  options.mode = "isolated";
  SystemClock clock;
  SilentReporter reporter;
  std::vector<double> looped, called, noise, bare_time;
  for (int i = 0; i < pairs; ++i) {
    const double first = BareMedian(shape.iterations, bare);
    MPI_Barrier(MPI_COMM_WORLD);
    PARAM_ASSIGN_OR_RETURN(Measurement measured,
                           Measure(team, timer, operation, options, clock, reporter));
    const double loop = Slowest(Median(std::move(measured.samples)));
    absl::Status failed;
    const double call = BareMedian(shape.iterations, [&] { failed.Update(operation.Enqueue()); });
    PARAM_RETURN_IF_ERROR(failed);
    const double second = BareMedian(shape.iterations, bare);
    const double peer = (first + second) / 2;
    looped.push_back(loop / peer);
    called.push_back(call / peer);
    noise.push_back(first / second);
    bare_time.push_back(peer);
  }
  if (backend.host.rank != 0) return absl::OkStatus();
  std::printf(
      "mpi %s %ld B, %d ranks, p50 over the bare call's: measuring loop %s, ABI alone %s; "
      "bare over itself %s, %.3f us; n=%d\n",
      shape.name, shape.bytes, backend.host.size, Spread(looped).c_str(), Spread(called).c_str(),
      Spread(noise).c_str(), Median(bare_time) * 1e6, pairs);
  return absl::OkStatus();
}

absl::Status Run(Backend& backend, int pairs) {
  MPI_Comm bare_comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &bare_comm);
  for (const auto& [bytes, iterations] :
       {std::pair<std::int64_t, std::int64_t>{8, 20000}, {16 << 20, 10}}) {
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
    const auto room = static_cast<std::size_t>(bytes);
    PARAM_ASSIGN_OR_RETURN(Buffer src, backend.device->CreateBuffer(PARAM_MEMORY_DEVICE, room));
    PARAM_ASSIGN_OR_RETURN(Buffer dst, backend.device->CreateBuffer(PARAM_MEMORY_DEVICE, room));
    std::fill_n(static_cast<float*>(src.native()), count, 1.0F);
    std::fill_n(static_cast<float*>(dst.native()), count, 0.0F);
    const int n = static_cast<int>(count);
    OpDesc all_reduce("all_reduce");
    all_reduce.String("redop", "sum");
    all_reduce.Tensor("src", PARAM_DTYPE_F32, {count}).Tensor("dst", PARAM_DTYPE_F32, {count});
    PARAM_RETURN_IF_ERROR(Compare(
        backend, {"all_reduce", bytes, iterations}, all_reduce.desc(), src, dst, pairs,
        [&] { MPI_Allreduce(src.native(), dst.native(), n, MPI_FLOAT, MPI_SUM, bare_comm); }));
    OpDesc all_to_all("all_to_all");
    all_to_all.Tensor("src", PARAM_DTYPE_F32, {count}).Tensor("dst", PARAM_DTYPE_F32, {count});
    const int share = n / backend.host.size;
    PARAM_RETURN_IF_ERROR(Compare(
        backend, {"all_to_all", bytes, iterations}, all_to_all.desc(), src, dst, pairs, [&] {
          MPI_Alltoall(src.native(), share, MPI_FLOAT, dst.native(), share, MPI_FLOAT, bare_comm);
        }));
  }
  MPI_Comm_free(&bare_comm);
  BackendError error;
  PARAM_RETURN_IF_ERROR(
      BackendStatus(backend.mpi.comm->comm_destroy(backend.ctx, backend.comm, &error), error));
  backend.mpi.comm->close(backend.ctx);
  return absl::OkStatus();
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: mpirun -n 2 mpi_bench PAIRS\n");
    return 2;
  }
  param::Backend backend;
  absl::Status status = backend.Open();
  if (status.ok()) status = param::Run(backend, std::atoi(argv[1]));
  if (status.ok()) return 0;
  std::fprintf(stderr, "mpi_bench: %s\n", status.ToString().c_str());
  return 1;
}
