#pragma once
// A device's peak rates, each asked for once: a backend may have to measure them.

#include <map>
#include <optional>

#include "agent/backend/device.h"

namespace param {

// Of one device. Not thread safe.
class PeakCache {
 public:
  // Nothing where the device does not know.
  std::optional<PeakRate> Get(const Device& device, param_dtype dtype) {
    const auto [it, fresh] = known_.try_emplace(dtype);
    if (fresh) {
      absl::StatusOr<PeakRate> rate = device.PeakFlops(dtype);
      if (rate.ok() && rate->flops > 0) it->second = *std::move(rate);
    }
    return it->second;
  }

 private:
  std::map<param_dtype, std::optional<PeakRate>> known_;
};

}  // namespace param
