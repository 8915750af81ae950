#include "agent/backend/comm.h"

#include <utility>

namespace param {
namespace {

constexpr std::size_t kInfoCapacity = 16 << 10;

}  // namespace

CommOp::CommOp(CommOp&& other) noexcept
    : table_(other.table_), ctx_(other.ctx_), raw_(std::exchange(other.raw_, nullptr)) {}

CommOp& CommOp::operator=(CommOp&& other) noexcept {
  if (this != &other) {
    Reset();
    table_ = other.table_;
    ctx_ = other.ctx_;
    raw_ = std::exchange(other.raw_, nullptr);
  }
  return *this;
}

void CommOp::Reset() {
  param_op* const raw = std::exchange(raw_, nullptr);
  if (raw != nullptr && table_->op_destroy != nullptr) table_->op_destroy(ctx_, raw);
}

std::size_t CommOp::workspace_bytes() const {
  return table_->op_workspace_bytes == nullptr ? 0 : table_->op_workspace_bytes(ctx_, raw_);
}

absl::Status CommOp::Wait(param_request* request) {
  if (table_->request_wait == nullptr) return MissingEntry(table_->kind, "request_wait");
  BackendError error;
  return BackendStatus(table_->request_wait(ctx_, request, &error), error);
}

absl::StatusOr<std::string> CommOp::Info() const {
  if (table_->op_info == nullptr) return std::string("{}");
  std::string json(kInfoCapacity, '\0');
  BackendError error;
  PARAM_RETURN_IF_ERROR(
      BackendStatus(table_->op_info(ctx_, raw_, json.data(), json.size(), &error), error));
  json.resize(json.find('\0') == std::string::npos ? json.size() : json.find('\0'));
  return json;
}

absl::StatusOr<CommOp> CommView::CreateOp(const param_op_desc& desc) const {
  if (table->op_create == nullptr) return MissingEntry(table->kind, "op_create");
  BackendError error;
  param_op* raw = nullptr;
  PARAM_RETURN_IF_ERROR(BackendStatus(table->op_create(ctx, comm, &desc, &raw, &error), error));
  return CommOp(table, ctx, raw);
}

absl::Status CommView::GroupBegin() const {
  if (table->group_begin == nullptr) return MissingEntry(table->kind, "group_begin");
  BackendError error;
  return BackendStatus(table->group_begin(ctx, &error), error);
}

absl::Status CommView::AsyncError() const {
  if (table->comm_async_error == nullptr) return absl::OkStatus();
  BackendError error;
  return BackendStatus(table->comm_async_error(ctx, comm, &error), error);
}

absl::Status CommView::GroupEnd() const {
  if (table->group_end == nullptr) return MissingEntry(table->kind, "group_end");
  BackendError error;
  return BackendStatus(table->group_end(ctx, &error), error);
}

}  // namespace param
