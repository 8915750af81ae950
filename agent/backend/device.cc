#include "agent/backend/device.h"

namespace param {
namespace {

// More than any device has to say about itself.
constexpr std::size_t kTextCapacity = 64 * 1024;

// Makes one handle by `create`, which may be null: `call(out, error)` invokes it.
template <typename Raw, typename Call>
absl::StatusOr<Raw*> Create(const param_device_v1& table, bool present, const char* entry,
                            const Call& call) {
  if (!present) return MissingEntry(table.kind, entry);
  Raw* raw = nullptr;
  BackendError error;
  PARAM_RETURN_IF_ERROR(BackendStatus(call(&raw, &error), error));
  if (raw == nullptr) {
    return absl::InternalError(
        absl::StrCat("backend ", table.kind, ": ", entry, " succeeded without a handle"));
  }
  return raw;
}

// The text that `call(json, capacity, error)` writes; an end is put where the backend left none.
template <typename Call>
absl::StatusOr<std::string> ReadText(const Call& call) {
  std::string text(kTextCapacity, '\0');
  BackendError error;
  PARAM_RETURN_IF_ERROR(BackendStatus(call(text.data(), text.size(), &error), error));
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

}  // namespace

absl::Status Buffer::Write(std::size_t offset, const void* from, std::size_t bytes) {
  if (table_->buffer_write == nullptr) return MissingEntry(table_->kind, "buffer_write");
  BackendError error;
  return BackendStatus(table_->buffer_write(ctx_, get(), offset, from, bytes, &error), error);
}

absl::Status Buffer::Read(std::size_t offset, void* to, std::size_t bytes) const {
  if (table_->buffer_read == nullptr) return MissingEntry(table_->kind, "buffer_read");
  BackendError error;
  return BackendStatus(table_->buffer_read(ctx_, get(), offset, to, bytes, &error), error);
}

void* Buffer::native() const {
  return table_->buffer_native == nullptr ? nullptr : table_->buffer_native(ctx_, get());
}

absl::Status Stream::Synchronize() {
  if (table_->stream_synchronize == nullptr) {
    return MissingEntry(table_->kind, "stream_synchronize");
  }
  BackendError error;
  return BackendStatus(table_->stream_synchronize(ctx_, get(), &error), error);
}

absl::Status Stream::Wait(const Event& event) {
  if (table_->stream_wait_event == nullptr) return MissingEntry(table_->kind, "stream_wait_event");
  BackendError error;
  return BackendStatus(table_->stream_wait_event(ctx_, get(), event.get(), &error), error);
}

absl::StatusOr<std::uint64_t> Stream::FlushCache() {
  if (table_->cache_flush == nullptr) return MissingEntry(table_->kind, "cache_flush");
  BackendError error;
  std::uint64_t bytes = 0;
  PARAM_RETURN_IF_ERROR(BackendStatus(table_->cache_flush(ctx_, get(), &bytes, &error), error));
  return bytes;
}

absl::Status Stream::Hold() {
  if (!can_hold()) return absl::OkStatus();
  BackendError error;
  return BackendStatus(table_->stream_hold(ctx_, get(), &error), error);
}

absl::Status Stream::Release() {
  if (!can_hold() || table_->stream_release == nullptr) return absl::OkStatus();
  BackendError error;
  return BackendStatus(table_->stream_release(ctx_, get(), &error), error);
}

void* Stream::native() const {
  return table_->stream_native == nullptr ? nullptr : table_->stream_native(ctx_, get());
}

absl::StatusOr<double> Event::ElapsedNsSince(const Event& begin) const {
  if (table_->event_elapsed_ns == nullptr) return MissingEntry(table_->kind, "event_elapsed_ns");
  BackendError error;
  double ns = 0;
  PARAM_RETURN_IF_ERROR(
      BackendStatus(table_->event_elapsed_ns(ctx_, begin.get(), get(), &ns, &error), error));
  return ns;
}

std::size_t Op::workspace_bytes() const {
  return table_->op_workspace_bytes == nullptr ? 0 : table_->op_workspace_bytes(ctx_, get());
}

absl::StatusOr<std::string> Op::Info() const {
  if (table_->op_info == nullptr) return std::string("{}");
  return ReadText([this](char* json, std::size_t capacity, param_error* error) {
    return table_->op_info(ctx_, get(), json, capacity, error);
  });
}

absl::StatusOr<Device> Device::Open(const param_device_v1& table, const param_host& host,
                                    int index) {
  PARAM_ASSIGN_OR_RETURN(param_ctx* const ctx,
                         Create<param_ctx>(table, table.open != nullptr, "open",
                                           [&](param_ctx** out, param_error* error) {
                                             return table.open(&host, index, out, error);
                                           }));
  return Device(&table, ctx, true);
}

Device Device::Borrow(const param_device_v1& table, param_ctx* ctx) {
  return Device(&table, ctx, false);
}

Device::Device(Device&& other) noexcept
    : table_(other.table_), ctx_(other.ctx_), owns_(std::exchange(other.owns_, false)) {}

Device& Device::operator=(Device&& other) noexcept {
  if (this != &other) {
    Close();
    table_ = other.table_;
    ctx_ = other.ctx_;
    owns_ = std::exchange(other.owns_, false);
  }
  return *this;
}

Device::~Device() { Close(); }

void Device::Close() {
  if (std::exchange(owns_, false) && table_->close != nullptr) table_->close(ctx_);
}

absl::StatusOr<Buffer> Device::CreateBuffer(param_memory_kind kind, std::size_t bytes) const {
  PARAM_ASSIGN_OR_RETURN(
      param_buffer* const raw,
      Create<param_buffer>(*table_, table_->buffer_create != nullptr, "buffer_create",
                           [&](param_buffer** out, param_error* error) {
                             return table_->buffer_create(ctx_, kind, bytes, out, error);
                           }));
  return Buffer(table_, ctx_, raw, bytes);
}

absl::StatusOr<Stream> Device::CreateStream() const {
  PARAM_ASSIGN_OR_RETURN(
      param_stream* const raw,
      Create<param_stream>(*table_, table_->stream_create != nullptr, "stream_create",
                           [&](param_stream** out, param_error* error) {
                             return table_->stream_create(ctx_, out, error);
                           }));
  return Stream(table_, ctx_, raw);
}

absl::StatusOr<Event> Device::CreateEvent() const {
  PARAM_ASSIGN_OR_RETURN(
      param_event* const raw,
      Create<param_event>(*table_, table_->event_create != nullptr, "event_create",
                          [&](param_event** out, param_error* error) {
                            return table_->event_create(ctx_, out, error);
                          }));
  return Event(table_, ctx_, raw);
}

absl::StatusOr<Op> Device::CreateOp(const param_op_desc& desc) const {
  PARAM_ASSIGN_OR_RETURN(param_op* const raw,
                         Create<param_op>(*table_, table_->op_create != nullptr, "op_create",
                                          [&](param_op** out, param_error* error) {
                                            return table_->op_create(ctx_, &desc, out, error);
                                          }));
  return Op(table_, ctx_, raw);
}

absl::StatusOr<std::string> Device::Clocks() const {
  if (table_->clocks == nullptr) return MissingEntry(table_->kind, "clocks");
  return ReadText([this](char* json, std::size_t capacity, param_error* error) {
    return table_->clocks(ctx_, json, capacity, error);
  });
}

absl::StatusOr<PeakRate> Device::PeakFlops(param_dtype dtype) const {
  if (table_->peak_flops == nullptr) return MissingEntry(table_->kind, "peak_flops");
  PeakRate peak;
  PARAM_ASSIGN_OR_RETURN(
      peak.how, ReadText([&](char* how, std::size_t capacity, param_error* error) {
        return table_->peak_flops(ctx_, dtype, &peak.flops, how, capacity, error);
      }));
  return peak;
}

}  // namespace param
