#pragma once
// What suites over communicators share: threads of this process as ranks.

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/contract/backend_fixture.h"
#include "tests/contract/collective_checks.h"

namespace param {

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
  const param_device_v1* device_table = nullptr;
  Exchanger* exchanger = nullptr;
  param_host host = {};
  std::optional<Device> device;
  param_ctx* ctx = nullptr;
  param_comm* comm = nullptr;

  const param_comm_v1& table() const { return *backend->comm; }

  absl::Status Open(int rank, int size, const char* script) {
    host = LonelyHost(script);
    host.user = this;
    host.rank = host.local_rank = rank;
    host.size = host.local_size = size;
    host.exchange = [](void* user, const void* mine, std::size_t bytes, void* all,
                       param_error* error) {
      auto* const self = static_cast<Rank*>(user);
      return self->exchanger->Exchange(self->host.rank, mine, bytes, all, error);
    };
    PARAM_ASSIGN_OR_RETURN(Device opened, Device::Open(*device_table, host, 0));
    device.emplace(std::move(opened));
    BackendError error;
    return BackendStatus(table().open(&host, device_table, device->ctx(), &ctx, &error), error);
  }

  absl::Status Create(const std::uint8_t* id, std::int64_t deadline_ns) {
    BackendError error;
    return BackendStatus(
        table().comm_create(ctx, id, host.rank, host.size, deadline_ns, &comm, &error), error);
  }

  // Runs one collective on operands of this rank.
  absl::Status Run(OpDesc& desc, const std::vector<param_operand>& operands,
                   bool with_request = false, const std::function<void()>& before = nullptr) {
    BackendError error;
    param_op* op = nullptr;
    PARAM_RETURN_IF_ERROR(
        BackendStatus(table().op_create(ctx, comm, &desc.desc(), &op, &error), error));
    if (before != nullptr) before();
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

  CollectiveReport Check() {
    return CheckCollectives({.table = &table(),
                             .ctx = ctx,
                             .comm = comm,
                             .device = &*device,
                             .rank = host.rank,
                             .size = host.size});
  }

  absl::Status Destroy() {
    BackendError error;
    param_comm* const gone = std::exchange(comm, nullptr);
    if (gone == nullptr) return absl::OkStatus();
    return BackendStatus(table().comm_destroy(ctx, gone, &error), error);
  }

  ~Rank() {
    if (ctx != nullptr) table().close(ctx);
  }
};

inline constexpr std::int64_t kLong = 60'000'000'000;

class CommTest : public ::testing::Test {
 protected:
  void Load(const std::string& name) {
    const Manifest& manifest = ManifestOf(name);
    const nlohmann::json probed = nlohmann::json::parse(RunProbe(manifest.object_path));
    if (!probed["usable"].get<bool>()) {
      GTEST_SKIP() << "installed, not usable: " << probed["reason"].get<std::string>();
    }
    absl::StatusOr<LoadedBackend> loaded = LoadBackend(manifest.object_path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    backend_ = *std::move(loaded);
    ASSERT_TRUE(backend_.comm);
    if (!backend_.device) LoadDeviceFor(manifest);
  }

  // A backend with the table "comm" alone works on the memory of another.
  void LoadDeviceFor(const Manifest& manifest) {
    for (const char* const name : {"cpu", "fake"}) {
      const auto& streams = manifest.streams;
      if (std::find(streams.begin(), streams.end(), name) == streams.end()) continue;
      absl::StatusOr<LoadedBackend> loaded = LoadBackend(ManifestOf(name).object_path);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      other_ = *std::move(loaded);
      return;
    }
    GTEST_SKIP() << "takes the memory of no device that threads of one process can share";
  }

  const param_device_v1* device_table() const {
    return backend_.device ? &*backend_.device : &*other_.device;
  }

  void MakeRanks(int size, const char* script = "") {
    exchanger_ = std::make_unique<Exchanger>(size);
    for (int i = 0; i < size; ++i) {
      auto rank = std::make_unique<Rank>();
      rank->backend = &backend_;
      rank->device_table = device_table();
      rank->exchanger = exchanger_.get();
      PARAM_ASSERT_OK(rank->Open(i, size, script));
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

  void Connect(int size, const char* script = "") {
    MakeRanks(size, script);
    if (HasFatalFailure()) return;
    ASSERT_THAT(OnAll([&](Rank& rank) { return rank.Create(id_, kLong); }),
                ::testing::Each(absl::OkStatus()));
  }

  // All checks on all ranks; what is wrong on any of them.
  std::vector<std::string> Check(int* ran = nullptr) {
    std::vector<CollectiveReport> reports(ranks_.size());
    (void)OnAll([&](Rank& rank) {
      reports[static_cast<std::size_t>(rank.host.rank)] = rank.Check();
      return absl::OkStatus();
    });
    std::vector<std::string> failures;
    for (CollectiveReport& report : reports) {
      failures.insert(failures.end(), report.failures.begin(), report.failures.end());
      if (ran != nullptr) *ran = report.ran;
    }
    for (const std::string& cannot : reports[0].unimplemented) {
      std::cout << "unimplemented: " << cannot << '\n';
    }
    return failures;
  }

  void TearDown() override {
    // Collective, so at once; where a test broke the communicator, it may say so.
    const std::vector<absl::Status> ended = OnAll([](Rank& rank) { return rank.Destroy(); });
    if (!broken_) {
      EXPECT_THAT(ended, ::testing::Each(absl::OkStatus()));
    }
    if (exchanger_ != nullptr) exchanger_->Close();
    ranks_.clear();
  }

  bool broken_ = false;  // the test ended a communicator the hard way
  LoadedBackend backend_;
  LoadedBackend other_;  // of the device, where backend_ has none
  std::unique_ptr<Exchanger> exchanger_;
  std::uint8_t id_[PARAM_COMM_ID_BYTES] = {};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace param
