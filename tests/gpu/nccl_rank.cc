#include "tests/gpu/nccl_rank.h"

#include <iostream>

namespace param::gpu_check {
namespace {

constexpr std::int64_t kCreateDeadlineNs = 60'000'000'000;
constexpr std::size_t kInfoBytes = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<NcclRank>> NcclRank::Open(const LoadedBackend& cuda,
                                                         const LoadedBackend& nccl, int rank,
                                                         int ranks, std::atomic<bool>* stop) {
  std::unique_ptr<NcclRank> self(new NcclRank());
  self->stop_ = stop;
  self->table_ = &*nccl.comm;
  param_host& host = self->host_;
  host.struct_size = sizeof(host);
  host.user = self.get();
  host.log = [](void*, std::int32_t level, const char* text) {
    if (level >= 2) std::cerr << text << "\n";
  };
  host.cancelled = [](void* user) {
    return std::int32_t{static_cast<NcclRank*>(user)->stop_->load() ? 1 : 0};
  };
  host.progress = [](void* user, const char* phase) {
    static_cast<NcclRank*>(user)->phases_ += std::string(phase) + " ";
  };
  host.rank = host.local_rank = rank;
  host.size = host.local_size = ranks;
  host.script = "";
  host.threads = 1;
  PARAM_ASSIGN_OR_RETURN(Device device, Device::Open(*cuda.device, host, rank));
  self->device_.emplace(std::move(device));
  PARAM_ASSIGN_OR_RETURN(self->stream_, self->device_->CreateStream());
  BackendError error;
  PARAM_RETURN_IF_ERROR(BackendStatus(
      self->table_->open(&host, &*cuda.device, self->device_->ctx(), &self->ctx_, &error), error));
  return self;
}

NcclRank::~NcclRank() {
  Abort();
  if (ctx_ != nullptr) table_->close(ctx_);
}

absl::Status NcclRank::Create(const std::uint8_t* id, int ranks, std::int64_t deadline_ns) {
  BackendError error;
  phases_.clear();
  return BackendStatus(
      table_->comm_create(ctx_, id, host_.rank, ranks, deadline_ns, &comm_, &error), error);
}

absl::Status NcclRank::Destroy() {
  BackendError error;
  param_comm* const comm = std::exchange(comm_, nullptr);
  return comm == nullptr ? absl::OkStatus()
                         : BackendStatus(table_->comm_destroy(ctx_, comm, &error), error);
}

absl::StatusOr<CommOp> NcclRank::Prepare(OpDesc& desc, param_comm* comm) {
  BackendError error;
  param_op* op = nullptr;
  PARAM_RETURN_IF_ERROR(BackendStatus(
      table_->op_create(ctx_, comm == nullptr ? comm_ : comm, &desc.desc(), &op, &error), error));
  return CommOp(*table_, ctx_, op);
}

absl::Status NcclRank::Enqueue(const CommOp& op, const std::vector<param_operand>& operands,
                               Buffer* workspace, param_request** request) {
  const std::size_t bytes = table_->op_workspace_bytes(ctx_, op.get());
  if (bytes > 0) {
    PARAM_ASSIGN_OR_RETURN(*workspace, device_->CreateBuffer(PARAM_MEMORY_DEVICE, bytes));
  }
  BackendError error;
  return BackendStatus(
      table_->op_enqueue(ctx_, op.get(), stream_.get(), operands.data(), operands.size(),
                         bytes > 0 ? workspace->get() : nullptr, request, &error),
      error);
}

absl::Status NcclRank::Run(OpDesc& desc, const std::vector<param_operand>& operands,
                           param_comm* comm) {
  PARAM_ASSIGN_OR_RETURN(const CommOp op, Prepare(desc, comm));
  Buffer workspace;
  PARAM_RETURN_IF_ERROR(Enqueue(op, operands, &workspace));
  return stream_.Synchronize();
}

absl::StatusOr<std::string> NcclRank::Info(const CommOp& op) {
  std::string text(kInfoBytes, '\0');
  BackendError error;
  PARAM_RETURN_IF_ERROR(
      BackendStatus(table_->op_info(ctx_, op.get(), text.data(), text.size(), &error), error));
  text.resize(text.find('\0'));
  return text;
}

absl::StatusOr<std::unique_ptr<NcclRanks>> NcclRanks::Open(const LoadedBackend& cuda,
                                                           const LoadedBackend& nccl, int ranks) {
  auto all = std::make_unique<NcclRanks>();
  for (int rank = 0; rank < ranks; ++rank) {
    PARAM_ASSIGN_OR_RETURN(std::unique_ptr<NcclRank> one,
                           NcclRank::Open(cuda, nccl, rank, ranks, &all->stop_), "GPU ", rank);
    all->ranks_.push_back(std::move(one));
  }
  return all;
}

absl::Status NcclRanks::OnAll(const std::function<absl::Status(NcclRank&)>& body) {
  std::vector<absl::Status> statuses(ranks_.size());
  std::atomic<bool> failed = false;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = body(*ranks_[i]);
      if (statuses[i].ok() || failed.exchange(true)) return;
      stop_ = true;
      for (const auto& rank : ranks_) rank->Abort();
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop_ = false;
  absl::Status worst;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    // What the others say is that they were aborted.
    const bool consequence = absl::IsAborted(statuses[i]) || absl::IsCancelled(statuses[i]);
    if (!statuses[i].ok() && (worst.ok() || !consequence)) {
      worst = Annotate(statuses[i], "rank ", i);
    }
  }
  return worst;
}

absl::Status NcclRanks::Connect() {
  std::uint8_t id[PARAM_COMM_ID_BYTES] = {};
  BackendError error;
  const NcclRank& first = *ranks_[0];
  PARAM_RETURN_IF_ERROR(BackendStatus(first.table().unique_id(first.ctx(), id, &error), error));
  return OnAll([&](NcclRank& rank) { return rank.Create(id, size(), kCreateDeadlineNs); });
}

absl::Status NcclRanks::Disconnect() {
  return OnAll([](NcclRank& rank) { return rank.Destroy(); });
}

}  // namespace param::gpu_check
