#pragma once
// A device's peak rates, each asked for until it is answered: a backend may have to measure them.

#include <map>
#include <optional>

#include "agent/backend/device.h"

namespace param {

// Of one device. Not thread safe.
class PeakCache {
 public:
  // Nothing where the device does not know. An error that may pass is not remembered: the next case
  // asks again.
  std::optional<PeakRate> Get(const Device& device, param_dtype dtype) {
    const auto known = known_.find(dtype);
    if (known != known_.end()) return known->second;
    absl::StatusOr<PeakRate> rate = device.PeakFlops(dtype);
    if (!rate.ok() && !absl::IsUnimplemented(rate.status())) return std::nullopt;
    std::optional<PeakRate>& kept = known_[dtype];
    if (rate.ok() && rate->flops > 0) kept = *std::move(rate);
    return kept;
  }

 private:
  std::map<param_dtype, std::optional<PeakRate>> known_;
};

}  // namespace param
