#pragma once
// One GPU and its part in a communicator, for the checks of the nccl backend: a thread for each.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/backend/op_desc.h"

namespace param::gpu_check {

// A prepared collective.
class CommOp {
 public:
  CommOp(const param_comm_v1& table, param_ctx* ctx, param_op* raw)
      : table_(&table), ctx_(ctx), raw_(raw) {}
  CommOp(CommOp&& other) noexcept
      : table_(other.table_), ctx_(other.ctx_), raw_(std::exchange(other.raw_, nullptr)) {}
  CommOp& operator=(CommOp&&) = delete;
  ~CommOp() {
    if (raw_ != nullptr) table_->op_destroy(ctx_, raw_);
  }
  param_op* get() const { return raw_; }

 private:
  const param_comm_v1* table_;
  param_ctx* ctx_;
  param_op* raw_;
};

// Used by its own thread; Abort by any.
class NcclRank {
 public:
  // Opens GPU `rank`. The backends outlive it. `stop` is what the backend hears as cancelled.
  static absl::StatusOr<std::unique_ptr<NcclRank>> Open(const LoadedBackend& cuda,
                                                        const LoadedBackend& nccl, int rank,
                                                        int ranks, std::atomic<bool>* stop);
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;
  ~NcclRank();

  int rank() const { return host_.rank; }
  int ranks() const { return host_.size; }
  const Device& device() const { return *device_; }
  Stream& stream() { return stream_; }
  const param_comm_v1& table() const { return *table_; }
  param_ctx* ctx() const { return ctx_; }
  param_comm* comm() const { return comm_; }
  const std::string& phases() const { return phases_; }  // "bootstrap connect "

  // `ranks` of the communicator may be more than there are: then nobody comes.
  absl::Status Create(const std::uint8_t* id, int ranks, std::int64_t deadline_ns);
  absl::Status Destroy();
  void Abort() {
    if (comm_ != nullptr) table_->comm_abort(ctx_, comm_);
  }
  // Of another communicator than comm() where one is given.
  absl::StatusOr<CommOp> Prepare(OpDesc& desc, param_comm* comm = nullptr);
  // With the workspace it asks for, which `workspace` keeps.
  absl::Status Enqueue(const CommOp& op, const std::vector<param_operand>& operands,
                       Buffer* workspace, param_request** request = nullptr);
  // All of the above, and waits for the stream.
  absl::Status Run(OpDesc& desc, const std::vector<param_operand>& operands,
                   param_comm* comm = nullptr);
  absl::StatusOr<std::string> Info(const CommOp& op);

 private:
  NcclRank() = default;

  param_host host_ = {};
  std::atomic<bool>* stop_ = nullptr;
  const param_comm_v1* table_ = nullptr;
  std::optional<Device> device_;
  Stream stream_;
  param_ctx* ctx_ = nullptr;
  param_comm* comm_ = nullptr;
  std::string phases_;
};

// All GPUs of the machine.
class NcclRanks {
 public:
  static absl::StatusOr<std::unique_ptr<NcclRanks>> Open(const LoadedBackend& cuda,
                                                         const LoadedBackend& nccl, int ranks);
  int size() const { return static_cast<int>(ranks_.size()); }
  NcclRank& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  // Runs `body` on every rank at once. The first error, with its rank; the other ranks'
  // communicators are aborted then, since they may wait for the one that failed.
  absl::Status OnAll(const std::function<absl::Status(NcclRank&)>& body);
  // A new communicator of all ranks.
  absl::Status Connect();
  absl::Status Disconnect();

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::unique_ptr<NcclRank>> ranks_;
};

}  // namespace param::gpu_check
