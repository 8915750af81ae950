#pragma once
// The table "device" as C++: owners for its handles, absl::Status for its errors. An entry that the
// backend does not have is UNIMPLEMENTED. As with the table, one thread at a time calls into a
// device and what was made from it.
//
//   PARAM_ASSIGN_OR_RETURN(Device device, Device::Open(table, host, 0));
//   PARAM_ASSIGN_OR_RETURN(Stream stream, device.CreateStream());
//   PARAM_ASSIGN_OR_RETURN(Buffer a, device.CreateBuffer(PARAM_MEMORY_DEVICE, bytes));
//   PARAM_ASSIGN_OR_RETURN(Op op, device.CreateOp(gemm.desc()));
//   PARAM_RETURN_IF_ERROR(op.Enqueue(stream, {a.At(0), b.At(0), c.At(0)}, nullptr));
//
// Everything made from a device must be gone before the device; the table and the host structure
// outlive both.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "agent/backend/error.h"
#include "agent/backend/param_backend.h"
#include "proto/base/status.h"

namespace param {

// Owns one handle of a device context. Move-only; empty when default-made or moved from.
template <typename T, void (*param_device_v1::*Destroy)(param_ctx*, T*)>
class DeviceHandle {
 public:
  DeviceHandle() = default;
  DeviceHandle(const param_device_v1* table, param_ctx* ctx, T* raw)
      : table_(table), ctx_(ctx), raw_(raw) {}
  DeviceHandle(DeviceHandle&& other) noexcept
      : table_(other.table_), ctx_(other.ctx_), raw_(std::exchange(other.raw_, nullptr)) {}
  DeviceHandle& operator=(DeviceHandle&& other) noexcept {
    if (this != &other) {
      reset();
      table_ = other.table_;
      ctx_ = other.ctx_;
      raw_ = std::exchange(other.raw_, nullptr);
    }
    return *this;
  }
  DeviceHandle(const DeviceHandle&) = delete;
  DeviceHandle& operator=(const DeviceHandle&) = delete;
  ~DeviceHandle() { reset(); }

  T* get() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }
  void reset() {
    T* const raw = std::exchange(raw_, nullptr);
    if (raw != nullptr && table_->*Destroy != nullptr) (table_->*Destroy)(ctx_, raw);
  }

 protected:
  const param_device_v1* table_ = nullptr;
  param_ctx* ctx_ = nullptr;

 private:
  T* raw_ = nullptr;
};

// Memory of a device.
class Buffer : public DeviceHandle<param_buffer, &param_device_v1::buffer_destroy> {
 public:
  Buffer() = default;
  Buffer(const param_device_v1* table, param_ctx* ctx, param_buffer* raw, std::size_t bytes)
      : DeviceHandle(table, ctx, raw), bytes_(bytes) {}

  std::size_t bytes() const { return bytes_; }
  // A place in it, as an operand of an operation.
  param_operand At(std::size_t offset) const { return {get(), offset}; }
  // Blocking host copies, ordered after all work of the context.
  absl::Status Write(std::size_t offset, const void* from, std::size_t bytes);
  absl::Status Read(std::size_t offset, void* to, std::size_t bytes) const;
  // The backend's own pointer, or null where there is none.
  void* native() const;

 private:
  std::size_t bytes_ = 0;
};

class Event;

// An ordered queue of work.
class Stream : public DeviceHandle<param_stream, &param_device_v1::stream_destroy> {
 public:
  using DeviceHandle::DeviceHandle;
  absl::Status Synchronize();
  // What is queued after this waits for the event.
  absl::Status Wait(const Event& event);
  // Evicts the caches, in stream order; the bytes written for it.
  absl::StatusOr<std::uint64_t> FlushCache();
  // Holds what is queued after it until Release (see param_backend.h). can_hold() is false where
  // work runs at once: there both are no-ops, and launch cost is in the time anyway.
  bool can_hold() const { return table_->stream_hold != nullptr; }
  absl::Status Hold();
  absl::Status Release();
  void* native() const;
};

// A point in a stream, with its time.
class Event : public DeviceHandle<param_event, &param_device_v1::event_destroy> {
 public:
  using DeviceHandle::DeviceHandle;
  // Hot path: neither allocates nor waits.
  absl::Status Record(const Stream& stream) {
    if (table_->event_record == nullptr) return MissingEntry(table_->kind, "event_record");
    BackendError error;
    return BackendStatus(table_->event_record(ctx_, get(), stream.get(), &error), error);
  }
  absl::Status Synchronize() {
    if (table_->event_synchronize == nullptr) {
      return MissingEntry(table_->kind, "event_synchronize");
    }
    BackendError error;
    return BackendStatus(table_->event_synchronize(ctx_, get(), &error), error);
  }
  // Nanoseconds from `begin` to this; both complete.
  absl::StatusOr<double> ElapsedNsSince(const Event& begin) const;
};

// A prepared operation.
class Op : public DeviceHandle<param_op, &param_device_v1::op_destroy> {
 public:
  using DeviceHandle::DeviceHandle;
  // 0 where none is needed.
  std::size_t workspace_bytes() const;
  // `operands` by position of the descriptor's tensors; `workspace` may be null when none is
  // needed. Hot path: does not allocate, and returns before the work is done where there are
  // streams.
  absl::Status Enqueue(const Stream& stream, absl::Span<const param_operand> operands,
                       const Buffer* workspace) {
    if (table_->op_enqueue == nullptr) return MissingEntry(table_->kind, "op_enqueue");
    BackendError error;
    return BackendStatus(
        table_->op_enqueue(ctx_, get(), stream.get(), operands.data(), operands.size(),
                           workspace == nullptr ? nullptr : workspace->get(), &error),
        error);
  }
  // JSON of text values: what really runs. "{}" where the backend does not say.
  absl::StatusOr<std::string> Info() const;
};

// A rate and where it comes from.
struct PeakRate {
  double flops = 0;  // FLOP/s
  std::string how;   // "measured FMA loop, AVX2, 2 threads"
};

// An opened device.
class Device {
 public:
  // Opens device `index` and owns its context. Both arguments are kept by reference.
  static absl::StatusOr<Device> Open(const param_device_v1& table, const param_host& host,
                                     int index);
  // Over a context that somebody else owns and closes later.
  static Device Borrow(const param_device_v1& table, param_ctx* ctx);

  Device(Device&& other) noexcept;
  Device& operator=(Device&& other) noexcept;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const param_device_v1& table() const { return *table_; }
  param_ctx* ctx() const { return ctx_; }
  const char* kind() const { return table_->kind; }

  // RESOURCE_EXHAUSTED with the number of bytes when there is not so much.
  absl::StatusOr<Buffer> CreateBuffer(param_memory_kind kind, std::size_t bytes) const;
  absl::StatusOr<Stream> CreateStream() const;
  absl::StatusOr<Event> CreateEvent() const;
  // UNIMPLEMENTED with the reason when this device cannot do it: the case is to be skipped.
  absl::StatusOr<Op> CreateOp(const param_op_desc& desc) const;

  // JSON, see param_backend.h.
  absl::StatusOr<std::string> Clocks() const;
  absl::StatusOr<PeakRate> PeakFlops(param_dtype dtype) const;

 private:
  Device(const param_device_v1* table, param_ctx* ctx, bool owns)
      : table_(table), ctx_(ctx), owns_(owns) {}
  void Close();

  const param_device_v1* table_ = nullptr;
  param_ctx* ctx_ = nullptr;
  bool owns_ = false;
};

}  // namespace param
