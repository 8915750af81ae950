#include "agent/bench/device_timer.h"

#include <utility>

namespace param {

absl::StatusOr<DeviceTimer> DeviceTimer::Create(const Device& device, Stream& stream) {
  PARAM_ASSIGN_OR_RETURN(Event begin, device.CreateEvent());
  PARAM_ASSIGN_OR_RETURN(Event end, device.CreateEvent());
  return DeviceTimer(stream, std::move(begin), std::move(end));
}

absl::Status DeviceTimer::Begin() {
  if (stream_->can_hold()) {
    PARAM_RETURN_IF_ERROR(stream_->Hold());
    held_ = true;
  }
  return begin_.Record(*stream_);
}

absl::Status DeviceTimer::LetGo() {
  if (!held_) return absl::OkStatus();
  held_ = false;
  return stream_->Release();
}

absl::StatusOr<double> DeviceTimer::End() {
  PARAM_RETURN_IF_ERROR(end_.Record(*stream_));
  PARAM_RETURN_IF_ERROR(LetGo());
  PARAM_RETURN_IF_ERROR(end_.Synchronize());
  PARAM_ASSIGN_OR_RETURN(const double nanoseconds, end_.ElapsedNsSince(begin_));
  return nanoseconds * 1e-9;
}

}  // namespace param
