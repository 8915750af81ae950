// One rank of the mpi backend's tests: mpi_ranks SCENARIO, started by mpirun (see mpi_test.py), or
// alone where the scenario is about that. Prints what it sees; exit status 0 when all is as it
// should be, 1 when not.

#include <mpi.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/backend/load_backend.h"
#include "agent/backend/manifest.h"
#include "agent/backend/op_desc.h"
#include "agent/backend/probe.h"
#include "proto/base/status.h"
#include "tests/contract/collective_checks.h"
#include "tests/contract/collective_model.h"

namespace param {
namespace {

constexpr char kBackends[] = PARAM_BINARY_DIR "/lib/param/backends";
constexpr std::int64_t kLong = 60'000'000'000;

int FromEnvironment(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

// What is wrong, on this rank.
class Complaints {
 public:
  void Add(const std::string& what) {
    std::fprintf(stderr, "mpi_ranks: %s\n", what.c_str());
    ++count_;
  }
  void Ok(const char* what, const absl::Status& status) {
    if (!status.ok()) Add(absl::StrCat(what, ": ", status.ToString()));
  }
  // Fails with this code and these words.
  void Fails(const char* what, const absl::Status& status, absl::StatusCode code,
             const std::string& words) {
    if (status.code() == code && std::string(status.message()).find(words) != std::string::npos) {
      return;
    }
    Add(absl::StrCat(what, ": expected ", absl::StatusCodeToString(code), " \"", words, "\", got ",
                     status.ToString()));
  }
  int count() const { return count_; }

 private:
  int count_ = 0;
};

// A rank: host, device, the table's context.
struct Rank {
  LoadedBackend devices, mpi;
  param_host host = {};
  std::optional<Device> device;
  param_ctx* ctx = nullptr;
  std::atomic<bool> cancelled{false};

  const param_comm_v1& table() const { return *mpi.comm; }

  absl::Status Load() {
    const InstalledBackends installed = FindBackends({std::string(kBackends)});
    const Manifest* const manifest = installed.Find("mpi");
    const Manifest* device_manifest = installed.Find("cpu");
    if (device_manifest == nullptr) device_manifest = installed.Find("fake");
    if (manifest == nullptr || device_manifest == nullptr) return absl::NotFoundError("a backend");
    PARAM_ASSIGN_OR_RETURN(mpi, LoadBackend(manifest->object_path));
    PARAM_ASSIGN_OR_RETURN(devices, LoadBackend(device_manifest->object_path));
    host.struct_size = sizeof(host);
    host.user = this;
    host.log = [](void*, std::int32_t, const char* text) { std::fprintf(stderr, "%s\n", text); };
    host.cancelled = [](void* user) -> std::int32_t {
      return static_cast<Rank*>(user)->cancelled.load() ? 1 : 0;
    };
    host.progress = [](void*, const char*) {};
    host.rank = host.local_rank = FromEnvironment("OMPI_COMM_WORLD_RANK", 0);
    host.size = host.local_size = FromEnvironment("OMPI_COMM_WORLD_SIZE", 1);
    host.script = "";
    host.threads = 1;
    PARAM_ASSIGN_OR_RETURN(Device opened, Device::Open(*devices.device, host, 0));
    device.emplace(std::move(opened));
    return absl::OkStatus();
  }

  absl::StatusOr<param_ctx*> Open() {
    BackendError error;
    param_ctx* made = nullptr;
    PARAM_RETURN_IF_ERROR(
        BackendStatus(table().open(&host, &*devices.device, device->ctx(), &made, &error), error));
    return made;
  }

  absl::Status Begin() {
    PARAM_RETURN_IF_ERROR(Load());
    PARAM_ASSIGN_OR_RETURN(ctx, Open());
    return absl::OkStatus();
  }

  // Carried by MPI itself where in a job the service does it.
  absl::StatusOr<param_comm*> Create(std::int32_t rank, std::int32_t size, int color,
                                     std::int64_t deadline_ns = kLong) {
    std::uint8_t id[PARAM_COMM_ID_BYTES] = {};
    BackendError error;
    if (host.rank == 0) {
      PARAM_RETURN_IF_ERROR(BackendStatus(table().unique_id(ctx, id, &error), error));
    }
    MPI_Bcast(id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    id[0] = static_cast<std::uint8_t>(color);
    param_comm* made = nullptr;
    PARAM_RETURN_IF_ERROR(
        BackendStatus(table().comm_create(ctx, id, rank, size, deadline_ns, &made, &error), error));
    return made;
  }

  absl::StatusOr<param_op*> CreateOp(param_comm* comm, const param_op_desc& desc) {
    BackendError error;
    param_op* op = nullptr;
    PARAM_RETURN_IF_ERROR(BackendStatus(table().op_create(ctx, comm, &desc, &op, &error), error));
    return op;
  }

  absl::StatusOr<param_op*> Barrier(param_comm* comm) {
    OpDesc desc("barrier");
    return CreateOp(comm, desc.desc());
  }

  absl::Status Run(param_op* op, const std::vector<param_operand>& operands = {},
                   param_request** request = nullptr) {
    BackendError error;
    return BackendStatus(table().op_enqueue(ctx, op, nullptr, operands.data(), operands.size(),
                                            nullptr, request, &error),
                         error);
  }
};

// Leaves without MPI_Finalize and without waiting for anybody.
[[noreturn]] void Leave(int code) {
  std::fflush(nullptr);
  _exit(code);
}

template <typename T>
T OrLeave(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "mpi_ranks: %s\n", value.status().ToString().c_str());
  Leave(1);
}

void OrLeave(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "mpi_ranks: %s\n", status.ToString().c_str());
  Leave(1);
}

// ---- what works
// ----------------------------------------------------------------------------------

void CheckComm(Rank& rank, param_comm* comm, std::int32_t own, std::int32_t size,
               Complaints& complaints) {
  CommUnderTest under;
  under.table = &rank.table();
  under.ctx = rank.ctx;
  under.comm = comm;
  under.device = &*rank.device;
  under.rank = own;
  under.size = size;
  const CollectiveReport report = CheckCollectives(under);
  for (const std::string& failure : report.failures) complaints.Add(failure);
  for (const std::string& text : report.unimplemented) complaints.Add("unimplemented: " + text);
  if (report.ran < 1000) complaints.Add(absl::StrCat("only ", report.ran, " operations ran"));
  // Out of step with the others: nothing collective may follow.
  if (!report.failures.empty()) Leave(1);
  if (own == 0) std::printf("%d operations on %d ranks\n", report.ran, size);
}

CollectiveCase AllReduce(param_dtype dtype, kit::RedOp redop, std::size_t n) {
  CollectiveCase c;
  c.kind = kit::CollectiveKind::kAllReduce;
  c.dtype = dtype;
  c.redop = redop;
  c.n = n;
  return c;
}

void CheckInfo(Rank& rank, param_comm* comm, Complaints& complaints) {
  const CaseDesc desc(AllReduce(PARAM_DTYPE_BF16, kit::RedOp::kAvg, 1), rank.host.rank,
                      rank.host.size);
  param_op* const op = OrLeave(rank.CreateOp(comm, desc.desc()));
  std::string text(4096, '\0');
  BackendError error;
  complaints.Ok(
      "op_info",
      BackendStatus(rank.table().op_info(rank.ctx, op, text.data(), text.size(), &error), error));
  rank.table().op_destroy(rank.ctx, op);
  const nlohmann::json info = nlohmann::json::parse(text.c_str(), nullptr, false);
  if (!info.is_object() || info.value("implementation", "") != "MPI_Allreduce" ||
      info.value("reduction", "") != "user-defined (MPI has no bf16)" ||
      info.value("average", "").find("sum") == std::string::npos ||
      info.value("library", "").find("MPI") == std::string::npos ||
      info.value("mca btl", "") != "self,vader,tcp" ||
      info.value("mca mpi_yield_when_idle", "") == "") {
    complaints.Add(absl::StrCat("op_info: ", text.c_str()));
  }
}

void CheckRefusals(Rank& rank, param_comm* comm, Complaints& complaints) {
  const auto refused = [&](const char* what, const CollectiveCase& c, absl::StatusCode code,
                           const std::string& words) {
    const CaseDesc desc(c, rank.host.rank, rank.host.size);
    complaints.Fails(what, rank.CreateOp(comm, desc.desc()).status(), code, words);
  };
  const auto size = static_cast<std::size_t>(rank.host.size);
  refused("a sum of f8", AllReduce(PARAM_DTYPE_F8E4M3, kit::RedOp::kSum, 1),
          absl::StatusCode::kUnimplemented, "f8e4m3");
  refused("a sum of 2^31 elements",
          AllReduce(PARAM_DTYPE_F32, kit::RedOp::kSum, std::size_t{1} << 31),
          absl::StatusCode::kUnimplemented, "2147483647");
  if (size > 1) {
    CollectiveCase uneven;
    uneven.kind = kit::CollectiveKind::kAllToAllV;
    uneven.in_place = true;
    uneven.n = 1;
    uneven.matrix.assign(size * size, 1);
    for (std::size_t to = 0; to < size; ++to) uneven.matrix[to] = 2;  // rank 0 sends more
    uneven.matrix[0] = 1;
    refused("in place with uneven counts", uneven, absl::StatusCode::kUnimplemented,
            "send_counts differ");
  }
  BackendError error;
  complaints.Fails("a group's end without its beginning",
                   BackendStatus(rank.table().group_end(rank.ctx, &error), error),
                   absl::StatusCode::kFailedPrecondition, "no group");
  param_op* const barrier = OrLeave(rank.Barrier(comm));
  complaints.Fails("an operand too much", rank.Run(barrier, {{nullptr, 0}}),
                   absl::StatusCode::kInvalidArgument, "1 operands, not 0");
  rank.table().op_destroy(rank.ctx, barrier);
}

void CheckIds(Rank& rank, Complaints& complaints) {
  std::uint8_t ids[2][PARAM_COMM_ID_BYTES] = {};
  BackendError error;
  for (auto& id : ids) {
    complaints.Ok("unique_id", BackendStatus(rank.table().unique_id(rank.ctx, id, &error), error));
  }
  if (std::memcmp(ids[0], ids[1], sizeof(ids[0])) == 0) complaints.Add("two ids are the same");
}

// A communicator has the ranks that it should have, in their order.
void CheckMembers(Rank& rank, param_comm* comm, std::int32_t size,
                  const std::vector<std::int32_t>& expected, Complaints& complaints) {
  OpDesc desc("all_gather");
  desc.Tensor("src", PARAM_DTYPE_I32, {1}).Tensor("dst", PARAM_DTYPE_I32, {size});
  param_op* const op = OrLeave(rank.CreateOp(comm, desc.desc()));
  Buffer mine = OrLeave(rank.device->CreateBuffer(PARAM_MEMORY_DEVICE, sizeof(std::int32_t)));
  const Buffer all = OrLeave(
      rank.device->CreateBuffer(PARAM_MEMORY_DEVICE, expected.size() * sizeof(std::int32_t)));
  OrLeave(mine.Write(0, &rank.host.rank, sizeof(std::int32_t)));
  OrLeave(rank.Run(op, {mine.At(0), all.At(0)}));
  std::vector<std::int32_t> got(expected.size());
  OrLeave(all.Read(0, got.data(), got.size() * sizeof(std::int32_t)));
  if (got != expected) complaints.Add("a communicator has other ranks than it should");
  rank.table().op_destroy(rank.ctx, op);
}

// Half of the world by split, both halves by create, one rank without any.
void CheckGroups(Rank& rank, param_comm* world, Complaints& complaints) {
  BackendError error;
  const int half = rank.host.rank % 2;
  const std::int32_t in_half = (rank.host.size + 1 - half) / 2;
  // From behind: the last rank of the world becomes the first.
  const std::int32_t own = in_half - 1 - rank.host.rank / 2;
  param_comm* split = nullptr;
  complaints.Ok(
      "comm_split",
      BackendStatus(rank.table().comm_split(rank.ctx, world, half, -rank.host.rank, &split, &error),
                    error));
  if (split == nullptr) Leave(1);
  std::vector<std::int32_t> members;
  for (std::int32_t i = in_half - 1; i >= 0; --i) members.push_back(2 * i + half);
  CheckMembers(rank, split, in_half, members, complaints);
  param_comm* const made = OrLeave(rank.Create(own, in_half, /*color=*/half));
  CheckMembers(rank, made, in_half, members, complaints);
  param_comm* none = made;
  complaints.Ok(
      "comm_split without a color",
      BackendStatus(rank.table().comm_split(rank.ctx, world, -1, 0, &none, &error), error));
  if (none != nullptr) complaints.Add("a communicator for color -1");
  for (param_comm* const comm : {split, made}) {
    complaints.Ok("comm_destroy",
                  BackendStatus(rank.table().comm_destroy(rank.ctx, comm, &error), error));
  }
}

int Checks() {
  Rank rank;
  Complaints complaints;
  OrLeave(rank.Begin());
  param_comm* const comm = OrLeave(rank.Create(rank.host.rank, rank.host.size, 0));
  CheckComm(rank, comm, rank.host.rank, rank.host.size, complaints);
  CheckIds(rank, complaints);
  CheckInfo(rank, comm, complaints);
  CheckRefusals(rank, comm, complaints);
  if (rank.host.size > 1) CheckGroups(rank, comm, complaints);
  complaints.Fails("a rank outside the job", rank.Create(5, 2, 0).status(),
                   absl::StatusCode::kInvalidArgument, "rank 5 of 2");
  BackendError error;
  complaints.Ok("comm_async_error",
                BackendStatus(rank.table().comm_async_error(rank.ctx, comm, &error), error));
  complaints.Ok("comm_destroy",
                BackendStatus(rank.table().comm_destroy(rank.ctx, comm, &error), error));
  // MPI is closed with the last context, once.
  param_ctx* const second = OrLeave(rank.Open());
  rank.table().close(rank.ctx);
  int closed = 0;
  MPI_Finalized(&closed);
  if (closed != 0) complaints.Add("MPI was closed while a context was open");
  rank.table().close(second);
  MPI_Finalized(&closed);
  if (closed == 0) complaints.Add("MPI was not closed with the last context");
  complaints.Fails("opening again", rank.Open().status(), absl::StatusCode::kFailedPrecondition,
                   "cannot be opened again");
  return complaints.count() == 0 ? 0 : 1;
}

// More elements than 32 bits count, 2 GiB on each of two ranks: by hand.
int Huge() {
  Rank rank;
  OrLeave(rank.Begin());
  param_comm* const comm = OrLeave(rank.Create(rank.host.rank, rank.host.size, 0));
  constexpr std::size_t kBytes = std::size_t{1} << 31;
  OpDesc desc("broadcast");
  desc.Int("root", 0).Tensor("data", PARAM_DTYPE_U8, {static_cast<std::int64_t>(kBytes)});
  param_op* const op = OrLeave(rank.CreateOp(comm, desc.desc()));
  const Buffer data = OrLeave(rank.device->CreateBuffer(PARAM_MEMORY_DEVICE, kBytes));
  auto* const bytes = static_cast<unsigned char*>(data.native());
  for (std::size_t i = 0; i < kBytes; ++i) {
    bytes[i] = rank.host.rank == 0 ? static_cast<unsigned char>(i * 31 + i / 257) : 0;
  }
  OrLeave(rank.Run(op, {data.At(0)}));
  for (std::size_t i = 0; i < kBytes; ++i) {
    if (bytes[i] == static_cast<unsigned char>(i * 31 + i / 257)) continue;
    std::fprintf(stderr, "mpi_ranks: element %zu is wrong\n", i);
    Leave(1);
  }
  rank.table().op_destroy(rank.ctx, op);
  BackendError error;
  OrLeave(BackendStatus(rank.table().comm_destroy(rank.ctx, comm, &error), error));
  rank.table().close(rank.ctx);
  return 0;
}

// ---- what goes wrong
// ------------------------------------------------------------------------------

int WrongWorld() {
  Rank rank;
  OrLeave(rank.Load());
  ++rank.host.size;
  const absl::StatusOr<param_ctx*> ctx = rank.Open();
  std::printf("%s\n", ctx.status().ToString().c_str());
  return ctx.ok() ? 1 : 0;
}

// The last rank does not come to make the communicator; or the job is cancelled meanwhile.
int Missing(bool cancel) {
  Rank rank;
  OrLeave(rank.Begin());
  if (rank.host.rank == rank.host.size - 1) {
    // Takes part in the broadcast of the id, then in nothing until mpirun ends it.
    std::uint8_t id[PARAM_COMM_ID_BYTES];
    MPI_Bcast(id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    while (true) pause();
  }
  rank.cancelled.store(cancel);
  const absl::StatusOr<param_comm*> comm =
      rank.Create(rank.host.rank, rank.host.size, 0, cancel ? kLong : 300'000'000);
  std::printf("%s\n", comm.status().ToString().c_str());
  rank.table().close(rank.ctx);  // must not wait for the missing rank
  std::printf("closed\n");
  Leave(comm.ok() ? 1 : 0);
}

// The last rank ends while the others wait for it.
int Exits() {
  Rank rank;
  OrLeave(rank.Begin());
  param_op* const op =
      OrLeave(rank.Barrier(OrLeave(rank.Create(rank.host.rank, rank.host.size, 0))));
  OrLeave(rank.Run(op));
  if (rank.host.rank == rank.host.size - 1) Leave(7);
  std::printf("waiting\n");
  std::fflush(stdout);
  const absl::Status status = rank.Run(op);
  std::printf("came back: %s\n", status.ToString().c_str());
  Leave(0);
}

double CpuSeconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns when the clock's thread has worked that long. MPI waits by working: a thread that has
// done so for long is inside of it.
void AwaitWork(clockid_t clock, double seconds) {
  const double begin = CpuSeconds(clock);
  while (CpuSeconds(clock) - begin < seconds) std::this_thread::yield();
}
constexpr double kInsideMpi = 0.02;

// An abort while rank 0 waits for the last rank, in a blocking call or for a request.
int Abort(bool with_request) {
  Rank rank;
  OrLeave(rank.Begin());
  param_comm* const comm = OrLeave(rank.Create(rank.host.rank, rank.host.size, 0));
  param_op* const op = OrLeave(rank.Barrier(comm));
  OrLeave(rank.Run(op));
  if (rank.host.rank != 0) {
    while (true) pause();
  }
  std::atomic<bool> entering{false};
  clockid_t clock = 0;
  pthread_getcpuclockid(pthread_self(), &clock);
  std::thread aborter([&] {
    entering.wait(false);
    AwaitWork(clock, kInsideMpi);
    rank.table().comm_abort(rank.ctx, comm);
  });
  param_request* request = nullptr;
  absl::Status status;
  if (with_request) OrLeave(rank.Run(op, {}, &request));
  entering.store(true);
  entering.notify_all();
  BackendError error;
  status = with_request ? BackendStatus(rank.table().request_wait(rank.ctx, request, &error), error)
                        : rank.Run(op);
  aborter.join();
  std::printf("ended: %s\n", status.ToString().c_str());
  std::printf("next: %s\n", rank.Run(op).ToString().c_str());
  std::printf("asynchronous: %s\n",
              BackendStatus(rank.table().comm_async_error(rank.ctx, comm, &error), error)
                  .ToString()
                  .c_str());
  OrLeave(BackendStatus(rank.table().comm_destroy(rank.ctx, comm, &error), error));
  rank.table().close(rank.ctx);
  int closed = 0;
  MPI_Finalized(&closed);
  std::printf("finalized: %d\n", closed);
  Leave(0);
}

int Probe() {
  const InstalledBackends installed = FindBackends({std::string(kBackends)});
  const Manifest* const manifest = installed.Find("mpi");
  if (manifest == nullptr) return 1;
  std::printf("%s\n", RunProbe(manifest->object_path).c_str());
  return 0;
}

int Main(const std::string& scenario) {
  if (scenario == "checks") return Checks();
  if (scenario == "huge") return Huge();
  if (scenario == "wrong_world") return WrongWorld();
  if (scenario == "missing") return Missing(/*cancel=*/false);
  if (scenario == "cancel") return Missing(/*cancel=*/true);
  if (scenario == "exits") return Exits();
  if (scenario == "abort") return Abort(/*with_request=*/false);
  if (scenario == "abort_request") return Abort(/*with_request=*/true);
  if (scenario == "probe") return Probe();
  std::fprintf(stderr, "mpi_ranks: no scenario \"%s\"\n", scenario.c_str());
  return 2;
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) { return param::Main(argc == 2 ? argv[1] : ""); }
