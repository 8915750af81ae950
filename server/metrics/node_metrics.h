#pragma once
// What is exported per node, made anew for each scrape from a small table: a node that leaves takes
// its series with it.

#include <prometheus/metric_family.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/sync.h"

namespace param {

// Thread safe.
class NodeMetrics {
 public:
  // Above this many nodes only the sums are exported.
  static constexpr std::size_t kMaxNodes = 512;
  static constexpr std::size_t kMaxDtypes = 16;  // per node

  void SetState(const std::string& node, absl::string_view state, bool up);
  void SetHeartbeat(const std::string& node, std::int64_t wall_ns);
  // FLOP/s of all ranks of the node together. Ignored for nodes that are not known.
  void SetGemmRate(const std::string& node, const std::string& dtype, double flop_per_second);
  void Remove(const std::string& node);

  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Node {
    std::string state;
    bool up = false;
    double heartbeat_s = 0;
    std::map<std::string, double> gemm_rate;  // by dtype
  };
  mutable Mutex mu_;
  std::map<std::string, Node> nodes_ PARAM_GUARDED_BY(mu_);
};

}  // namespace param
