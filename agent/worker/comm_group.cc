#include "agent/worker/comm_group.h"

#include <array>
#include <cstring>
#include <utility>

#include "agent/backend/error.h"

namespace param {
namespace {

// Longer than the service's deadline for the phase, which comes first and says more.
constexpr std::int64_t kCreateDeadlineNs = 600'000'000'000;

}  // namespace

absl::StatusOr<CommGroup> CommGroup::Create(const LoadedBackend& backend, const param_host& host,
                                            const Device& device, Team& team) {
  if (!backend.comm.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("backend ", backend.name, " is no communication backend"));
  }
  const param_comm_v1& table = *backend.comm;
  if (table.open == nullptr || table.unique_id == nullptr || table.comm_create == nullptr) {
    return MissingEntry(table.kind, "open, unique_id or comm_create");
  }
  BackendError error;
  param_ctx* ctx = nullptr;
  PARAM_RETURN_IF_ERROR(
      BackendStatus(table.open(&host, &device.table(), device.ctx(), &ctx, &error), error),
      backend.name, ": open");
  CommGroup group(table, ctx);
  PARAM_RETURN_IF_ERROR(group.Connect(team), backend.name);
  return group;
}

absl::Status CommGroup::Connect(Team& team) {
  std::array<std::uint8_t, PARAM_COMM_ID_BYTES> id = {};
  BackendError error;
  absl::Status made;
  if (team.rank() == 0) {
    made = BackendStatus(table_->unique_id(ctx_, id.data(), &error), error);
  }
  if (!made.ok()) return Annotate(made, "unique id");
  const absl::string_view mine(reinterpret_cast<const char*>(id.data()), id.size());
  PARAM_ASSIGN_OR_RETURN(const std::string common, team.Broadcast(0, mine), "unique id");
  if (common.size() != id.size()) {
    return absl::InternalError(absl::StrCat("a unique id of ", common.size(), " bytes"));
  }
  std::memcpy(id.data(), common.data(), id.size());
  rank_ = team.rank();
  size_ = team.size();
  return Annotate(BackendStatus(table_->comm_create(ctx_, id.data(), team.rank(), team.size(),
                                                    kCreateDeadlineNs, &comm_, &error),
                                error),
                  "create communicator");
}

CommGroup::CommGroup(CommGroup&& other) noexcept
    : table_(other.table_),
      ctx_(std::exchange(other.ctx_, nullptr)),
      comm_(std::exchange(other.comm_, nullptr)),
      rank_(other.rank_),
      size_(other.size_) {}

CommGroup::~CommGroup() {
  if (comm_ != nullptr && table_->comm_abort != nullptr) table_->comm_abort(ctx_, comm_);
  if (ctx_ != nullptr && table_->close != nullptr) table_->close(ctx_);
}

absl::Status CommGroup::Close() {
  param_comm* const comm = std::exchange(comm_, nullptr);
  if (comm == nullptr || table_->comm_destroy == nullptr) return absl::OkStatus();
  BackendError error;
  return BackendStatus(table_->comm_destroy(ctx_, comm, &error), error);
}

}  // namespace param
