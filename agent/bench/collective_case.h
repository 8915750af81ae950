#pragma once
// One case of benchmark "collective" on one rank: its buffers, its prepared operations, its check.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/backend/comm.h"
#include "agent/backend/device.h"
#include "agent/bench/collective_pattern.h"
#include "agent/bench/driver.h"
#include "agent/bench/fill.h"
#include "agent/bench/measure.h"
#include "proto/catalog/collective_math.h"

namespace param {

// What a case asks for, checked; the same answer on every rank.
struct CollectiveOrder {
  CollectiveRequest request;
  CollectivePattern pattern;
  std::string redop;
  bool in_place = false;
  std::int64_t inflight = 1;
  std::int64_t buffers = 1;
  bool barrier = true;
  Fill fill = Fill::kNormal;
  Injection injection;
};

// Errors: INVALID_ARGUMENT for what cannot be; UNIMPLEMENTED, which skips the case, for what would
// only repeat another (in_place where there is one buffer, a root where there is none).
absl::StatusOr<CollectiveOrder> OrderOf(const CaseContext& context);

// Made in steps, each of which a rank may fail and the ranks agree on: what may be refused, then
// what costs memory. Check and the iterations are collective.
class CollectiveCase final : public Operation {
 public:
  // Both are borrowed.
  CollectiveCase(const CaseContext& context, const CollectiveOrder& order);

  // UNIMPLEMENTED when this backend cannot do it.
  absl::Status CreateOps();
  // Buffers.
  absl::Status Allocate();

  // Runs once and compares; "" or what is wrong. `checked` counts elements.
  absl::StatusOr<std::string> Check(std::int64_t* checked);
  // Gives the inputs what they hold while the time is taken.
  absl::Status FillInputs();

  absl::Status Meet() override;
  absl::Status Enqueue() override;
  // A rank that is no peer of incast or multicast.
  bool idle() const override;
  bool together() const override { return true; }
  // Waits for what --inflight left under way.
  absl::Status Drain();

  const Device& device() const { return device_; }
  Stream& stream() { return stream_; }
  const CollectiveLayout& layout() const { return layout_; }
  absl::StatusOr<std::string> Info() const { return sets_.front().op.Info(); }

 private:
  // One set of buffers with the operation prepared for it.
  struct Set {
    CommOp op;
    Buffer a, b;  // source and destination; of operations on one buffer only a
    std::array<param_operand, 2> operands = {};
    param_request* pending = nullptr;
  };

  bool one_buffer() const { return OneBuffer(order_.request.op); }
  std::size_t element() const { return static_cast<std::size_t>(order_.request.element_bytes); }
  // Where this rank's own share begins in the whole, in elements.
  std::int64_t OwnShare() const;
  // Places of source and destination in a set's buffers.
  void PlaceOperands(Set& set) const;
  absl::StatusOr<CommOp> CreateOp() const;
  absl::Status FillSet(Set& set, bool pattern);
  absl::Status PoisonOutput(Set& set);
  absl::Status Inject(Set& set);
  absl::StatusOr<std::string> CheckSet(Set& set, std::int64_t* checked);
  absl::Span<const param_operand> operands(const Set& set) const;

  const CaseContext& context_;
  const CollectiveOrder& order_;
  CollectiveLayout layout_;
  Device device_;
  Stream stream_;
  std::vector<Set> sets_;
  std::vector<Buffer> workspaces_;
  CommOp barrier_;
  std::size_t next_ = 0;
};

// A timer whose end waits for what the case left under way. A case that waits in between must not
// wait for a stream that is held: with `in_flight` nothing is.
class DrainingTimer final : public Timer {
 public:
  DrainingTimer(Timer& timer, CollectiveCase& drained, bool in_flight)
      : timer_(timer), case_(drained), in_flight_(in_flight) {}
  absl::StatusOr<std::uint64_t> FlushCache() override { return timer_.FlushCache(); }
  absl::Status Begin() override {
    PARAM_RETURN_IF_ERROR(timer_.Begin());
    return in_flight_ ? timer_.LetGo() : absl::OkStatus();
  }
  absl::Status LetGo() override { return timer_.LetGo(); }
  absl::StatusOr<double> End() override {
    PARAM_RETURN_IF_ERROR(case_.Drain());
    return timer_.End();
  }

 private:
  Timer& timer_;
  CollectiveCase& case_;
  const bool in_flight_;
};

}  // namespace param
