// Every backend with a table "comm", with threads of this process as ranks.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/contract/backend_fixture.h"

namespace param {
namespace {

using ::testing::Each;

// The service's exchange, between threads. Closing it ends what waits with UNAVAILABLE.
class Exchanger {
 public:
  explicit Exchanger(int ranks) : parts_(static_cast<std::size_t>(ranks)) {}

  std::int32_t Exchange(int rank, const void* mine, std::size_t bytes, void* all,
                        param_error* error) {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    const bool good = Round(lock, static_cast<std::size_t>(rank), mine, bytes, all);
    --inside_;
    changed_.notify_all();
    if (good) return 0;
    error->code = static_cast<std::int32_t>(absl::StatusCode::kUnavailable);
    std::snprintf(error->message, sizeof(error->message), "closed");
    return error->code;
  }

  // Waits until somebody is inside.
  void AwaitCaller() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ > 0; });
  }

  // Nobody is inside, nor comes in, when it returns.
  void Close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return inside_ == 0; });
  }

 private:
  bool Round(std::unique_lock<std::mutex>& lock, std::size_t rank, const void* mine,
             std::size_t bytes, void* all) {
    // A rank that is ahead waits until the others took the last round away.
    changed_.wait(lock, [&] { return closed_ || !leaving_; });
    if (closed_) return false;
    parts_[rank].assign(static_cast<const char*>(mine), bytes);
    if (++here_ == parts_.size()) {
      leaving_ = true;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return closed_ || leaving_; });
    if (!leaving_) return false;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      std::memcpy(static_cast<char*>(all) + i * bytes, parts_[i].data(), bytes);
    }
    if (--here_ == 0) leaving_ = false;
    changed_.notify_all();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> parts_;
  std::size_t here_ = 0;
  bool leaving_ = false;
  bool closed_ = false;
  int inside_ = 0;
};

// One rank: its host, its device, its communicator.
struct Rank {
  const LoadedBackend* backend = nullptr;
  Exchanger* exchanger = nullptr;
  param_host host = {};
  std::optional<Device> device;
  param_ctx* ctx = nullptr;
  param_comm* comm = nullptr;

  const param_comm_v1& table() const { return *backend->comm; }

  absl::Status Open(int rank, int size) {
    host = LonelyHost();
    host.user = this;
    host.rank = host.local_rank = rank;
    host.size = host.local_size = size;
    host.exchange = [](void* user, const void* mine, std::size_t bytes, void* all,
                       param_error* error) {
      auto* const self = static_cast<Rank*>(user);
      return self->exchanger->Exchange(self->host.rank, mine, bytes, all, error);
    };
    PARAM_ASSIGN_OR_RETURN(Device opened, Device::Open(*backend->device, host, 0));
    device.emplace(std::move(opened));
    BackendError error;
    return BackendStatus(table().open(&host, &*backend->device, device->ctx(), &ctx, &error),
                         error);
  }

  absl::Status Create(const std::uint8_t* id, std::int64_t deadline_ns) {
    BackendError error;
    return BackendStatus(
        table().comm_create(ctx, id, host.rank, host.size, deadline_ns, &comm, &error), error);
  }

  // Runs one collective on operands of this rank.
  absl::Status Run(OpDesc& desc, const std::vector<param_operand>& operands,
                   bool with_request = false) {
    BackendError error;
    param_op* op = nullptr;
    PARAM_RETURN_IF_ERROR(
        BackendStatus(table().op_create(ctx, comm, &desc.desc(), &op, &error), error));
    param_request* request = nullptr;
    absl::Status status =
        BackendStatus(table().op_enqueue(ctx, op, nullptr, operands.data(), operands.size(),
                                         nullptr, with_request ? &request : nullptr, &error),
                      error);
    if (status.ok() && with_request) {
      std::int32_t done = 0;
      status = BackendStatus(table().request_test(ctx, request, &done, &error), error);
      if (status.ok()) status = BackendStatus(table().request_wait(ctx, request, &error), error);
    }
    table().op_destroy(ctx, op);
    return status;
  }

  ~Rank() {
    BackendError error;
    if (comm != nullptr) {
      EXPECT_TRUE(BackendStatus(table().comm_destroy(ctx, comm, &error), error).ok());
    }
    if (ctx != nullptr) table().close(ctx);
  }
};

constexpr std::int64_t kLong = 60'000'000'000;

class CommContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string& path = ManifestOf(GetParam()).object_path;
    const nlohmann::json probed = nlohmann::json::parse(RunProbe(path));
    if (!probed["usable"].get<bool>()) {
      GTEST_SKIP() << "installed, not usable: " << probed["reason"].get<std::string>();
    }
    absl::StatusOr<LoadedBackend> loaded = LoadBackend(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    backend_ = *std::move(loaded);
    ASSERT_TRUE(backend_.device && backend_.comm)
        << "threads as ranks need the device of the same backend";
  }

  void MakeRanks(int size) {
    exchanger_ = std::make_unique<Exchanger>(size);
    for (int i = 0; i < size; ++i) {
      auto rank = std::make_unique<Rank>();
      rank->backend = &backend_;
      rank->exchanger = exchanger_.get();
      PARAM_ASSERT_OK(rank->Open(i, size));
      ranks_.push_back(std::move(rank));
    }
    BackendError error;
    ASSERT_EQ(backend_.comm->unique_id(ranks_[0]->ctx, id_, &error), 0) << error.message;
  }

  // Runs `body` on every rank at once; the statuses, by rank.
  std::vector<absl::Status> OnAll(const std::function<absl::Status(Rank&)>& body) {
    std::vector<absl::Status> statuses(ranks_.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      threads.emplace_back([&, i] { statuses[i] = body(*ranks_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  void Connect(int size) {
    MakeRanks(size);
    if (HasFatalFailure()) return;
    ASSERT_THAT(OnAll([&](Rank& rank) { return rank.Create(id_, kLong); }), Each(absl::OkStatus()));
  }

  void TearDown() override {
    if (exchanger_ != nullptr) exchanger_->Close();
    ranks_.clear();
  }

  LoadedBackend backend_;
  std::unique_ptr<Exchanger> exchanger_;
  std::uint8_t id_[PARAM_COMM_ID_BYTES] = {};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

INSTANTIATE_TEST_SUITE_P(Installed, CommContract, ::testing::ValuesIn(NamesWith("comm")),
                         [](const auto& test) { return test.param; });

// A buffer of this rank that holds `values`.
template <typename T>
absl::StatusOr<Buffer> BufferOf(Rank& rank, const std::vector<T>& values) {
  PARAM_ASSIGN_OR_RETURN(Buffer buffer,
                         rank.device->CreateBuffer(PARAM_MEMORY_DEVICE, values.size() * sizeof(T)));
  PARAM_RETURN_IF_ERROR(buffer.Write(0, values.data(), values.size() * sizeof(T)));
  return buffer;
}

template <typename T>
absl::Status ExpectContents(const Buffer& buffer, const std::vector<T>& expected) {
  std::vector<T> got(expected.size());
  PARAM_RETURN_IF_ERROR(buffer.Read(0, got.data(), got.size() * sizeof(T)));
  return got == expected ? absl::OkStatus() : absl::DataLossError("wrong contents");
}

// Rank r gives r * 3 + i % 7 at index i: sums are exact in every order.
template <typename T>
std::vector<T> InputOf(int rank, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(rank * 3 + int(i % 7));
  return values;
}

template <typename T>
absl::Status SumAndCheck(Rank& rank, param_dtype dtype, std::size_t count, bool in_place) {
  OpDesc desc("all_reduce");
  desc.String("redop", "sum").Tensor("src", dtype, {static_cast<std::int64_t>(count)});
  desc.Tensor("dst", dtype, {static_cast<std::int64_t>(count)});
  PARAM_ASSIGN_OR_RETURN(Buffer src, BufferOf(rank, InputOf<T>(rank.host.rank, count)));
  PARAM_ASSIGN_OR_RETURN(Buffer dst, BufferOf(rank, std::vector<T>(count)));
  const Buffer& result = in_place ? src : dst;
  PARAM_RETURN_IF_ERROR(rank.Run(desc, {src.At(0), result.At(0)}));
  std::vector<T> expected(count);
  for (int r = 0; r < rank.host.size; ++r) {
    const std::vector<T> input = InputOf<T>(r, count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<T>(expected[i] + input[i]);
  }
  return ExpectContents(result, expected);
}

TEST_P(CommContract, UniqueIdsDiffer) {
  MakeRanks(1);
  std::uint8_t other[PARAM_COMM_ID_BYTES] = {};
  BackendError error;
  ASSERT_EQ(backend_.comm->unique_id(ranks_[0]->ctx, other, &error), 0) << error.message;
  EXPECT_NE(std::memcmp(id_, other, sizeof(other)), 0);
}

TEST_P(CommContract, AllReduceSumsOverRanks) {
  Connect(3);
  EXPECT_THAT(OnAll([](Rank& r) { return SumAndCheck<float>(r, PARAM_DTYPE_F32, 50'001, false); }),
              Each(absl::OkStatus()));
  EXPECT_THAT(
      OnAll([](Rank& r) { return SumAndCheck<std::int32_t>(r, PARAM_DTYPE_I32, 1, false); }),
      Each(absl::OkStatus()));
}

TEST_P(CommContract, AllReduceWorksInPlace) {
  Connect(2);
  EXPECT_THAT(OnAll([](Rank& r) { return SumAndCheck<float>(r, PARAM_DTYPE_F32, 20'000, true); }),
              Each(absl::OkStatus()));
}

TEST_P(CommContract, BroadcastGivesEveryRankTheRootsData) {
  Connect(3);
  EXPECT_THAT(OnAll([](Rank& rank) -> absl::Status {
                OpDesc desc("broadcast");
                desc.Int("root", 1).Tensor("data", PARAM_DTYPE_I32, {10});
                PARAM_ASSIGN_OR_RETURN(Buffer data,
                                       BufferOf(rank, InputOf<std::int32_t>(rank.host.rank, 10)));
                PARAM_RETURN_IF_ERROR(rank.Run(desc, {data.At(0)}));
                return ExpectContents(data, InputOf<std::int32_t>(1, 10));
              }),
              Each(absl::OkStatus()));
}

TEST_P(CommContract, ABarrierEndsOnAllRanks) {
  Connect(4);
  EXPECT_THAT(OnAll([](Rank& rank) {
                OpDesc desc("barrier");
                return rank.Run(desc, {});
              }),
              Each(absl::OkStatus()));
}

TEST_P(CommContract, ARequestCompletes) {
  Connect(2);
  EXPECT_THAT(OnAll([](Rank& rank) {
                OpDesc desc("barrier");
                return rank.Run(desc, {}, /*with_request=*/true);
              }),
              Each(absl::OkStatus()));
}

TEST_P(CommContract, CreateEndsAtItsDeadlineWhenARankIsMissing) {
  MakeRanks(2);
  EXPECT_EQ(ranks_[0]->Create(id_, 20'000'000).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(CommContract, ARankOutsideTheJobIsAnError) {
  MakeRanks(1);
  BackendError error;
  param_comm* comm = nullptr;
  EXPECT_EQ(backend_.comm->comm_create(ranks_[0]->ctx, id_, 5, 2, kLong, &comm, &error),
            static_cast<std::int32_t>(absl::StatusCode::kInvalidArgument));
}

TEST_P(CommContract, AbortEndsWhatIsInFlight) {
  Connect(2);
  absl::Status ended;
  std::thread alone([&] {
    OpDesc desc("barrier");
    ended = ranks_[0]->Run(desc, {});
  });
  exchanger_->AwaitCaller();
  backend_.comm->comm_abort(ranks_[0]->ctx, ranks_[0]->comm);
  alone.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kAborted);
  BackendError error;
  EXPECT_NE(backend_.comm->comm_async_error(ranks_[0]->ctx, ranks_[0]->comm, &error), 0);
}

TEST_P(CommContract, AnUnknownCollectiveIsUnimplemented) {
  Connect(1);
  OpDesc desc("no_such_collective");
  EXPECT_EQ(ranks_[0]->Run(desc, {}).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace param
