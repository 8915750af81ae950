#pragma once
// The table "comm" as C++: a communicator that somebody else owns, and operations prepared on it.
// An entry that the backend does not have is UNIMPLEMENTED. As with the table, one thread at a time
// calls into a context.

#include <string>

#include "absl/types/span.h"
#include "agent/backend/device.h"
#include "agent/backend/error.h"
#include "agent/backend/param_backend.h"
#include "proto/base/status.h"

namespace param {

// A prepared collective, or a send or receive. Move-only; empty when default-made or moved from.
// The communicator outlives it.
class CommOp {
 public:
  CommOp() = default;
  CommOp(const param_comm_v1* table, param_ctx* ctx, param_op* raw)
      : table_(table), ctx_(ctx), raw_(raw) {}
  CommOp(CommOp&& other) noexcept;
  CommOp& operator=(CommOp&& other) noexcept;
  CommOp(const CommOp&) = delete;
  CommOp& operator=(const CommOp&) = delete;
  ~CommOp() { Reset(); }

  explicit operator bool() const { return raw_ != nullptr; }
  // 0 where none is needed.
  std::size_t workspace_bytes() const;

  // Runs it: complete in stream order, or when it returns where there are no streams. Hot path:
  // does not allocate. `operands` by position of the descriptor's tensors; `workspace` may be null
  // when none is needed.
  absl::Status Enqueue(const Stream& stream, absl::Span<const param_operand> operands,
                       const Buffer* workspace) {
    return Issue(stream, operands, workspace, nullptr);
  }
  // Starts it and returns; UNIMPLEMENTED where the library cannot go on meanwhile.
  absl::Status Start(const Stream& stream, absl::Span<const param_operand> operands,
                     const Buffer* workspace, param_request** request) {
    return Issue(stream, operands, workspace, request);
  }
  // Ends what Start began; the request is gone after it, whatever it returns.
  absl::Status Wait(param_request* request);

  // JSON of text values: what really runs. "{}" where the backend does not say.
  absl::StatusOr<std::string> Info() const;

 private:
  absl::Status Issue(const Stream& stream, absl::Span<const param_operand> operands,
                     const Buffer* workspace, param_request** request) {
    if (table_->op_enqueue == nullptr) return MissingEntry(table_->kind, "op_enqueue");
    BackendError error;
    return BackendStatus(
        table_->op_enqueue(ctx_, raw_, stream.get(), operands.data(), operands.size(),
                           workspace == nullptr ? nullptr : workspace->get(), request, &error),
        error);
  }
  void Reset();

  const param_comm_v1* table_ = nullptr;
  param_ctx* ctx_ = nullptr;
  param_op* raw_ = nullptr;
};

// Borrowed: a table, its context and a communicator of it.
struct CommView {
  const param_comm_v1* table = nullptr;
  param_ctx* ctx = nullptr;
  param_comm* comm = nullptr;
  int rank = 0;
  int size = 1;

  const char* kind() const { return table->kind; }
  // UNIMPLEMENTED with the reason when this library cannot do it: the case is to be skipped.
  absl::StatusOr<CommOp> CreateOp(const param_op_desc& desc) const;
  // What is enqueued between the two is one; see param_backend.h.
  absl::Status GroupBegin() const;
  absl::Status GroupEnd() const;
  // What went wrong while nobody waited for it: to be asked before a number is believed, since the
  // wait for a stream of a broken communicator may end well.
  absl::Status AsyncError() const;
};

}  // namespace param
