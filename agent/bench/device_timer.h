#pragma once
// Time by a device's own events.

#include "agent/backend/device.h"
#include "agent/bench/measure.h"

namespace param {

// Marks on one stream. Where the device can hold its stream, everything between the marks is queued
// before it starts, so that what the host needs to launch is not in the time.
class DeviceTimer final : public Timer {
 public:
  // The stream is borrowed.
  static absl::StatusOr<DeviceTimer> Create(const Device& device, Stream& stream);

  absl::StatusOr<std::uint64_t> FlushCache() override { return stream_->FlushCache(); }
  absl::Status Begin() override;
  absl::Status LetGo() override;
  absl::StatusOr<double> End() override;

 private:
  DeviceTimer(Stream& stream, Event begin, Event end)
      : stream_(&stream), begin_(std::move(begin)), end_(std::move(end)) {}

  Stream* stream_;
  Event begin_;
  Event end_;
  bool held_ = false;
};

}  // namespace param
