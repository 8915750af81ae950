#include "server/metrics/node_metrics.h"

#include <utility>

namespace param {
namespace {

using prometheus::MetricFamily;

// The states a node can have: all of them are exported, 0 where there is none.
constexpr absl::string_view kStates[] = {"ready", "busy", "draining", "drained", "lost"};

MetricFamily Gauge(const char* name, const char* help) {
  return {name, help, prometheus::MetricType::Gauge, {}};
}

void Add(MetricFamily* family, std::vector<prometheus::ClientMetric::Label> labels, double value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;
  family->metric.push_back(std::move(metric));
}

}  // namespace

void NodeMetrics::SetState(const std::string& node, absl::string_view state, bool up) {
  const MutexLock lock(mu_);
  Node& entry = nodes_[node];
  entry.state = std::string(state);
  entry.up = up;
}

void NodeMetrics::SetHeartbeat(const std::string& node, std::int64_t wall_ns) {
  const MutexLock lock(mu_);
  const auto it = nodes_.find(node);
  if (it != nodes_.end()) it->second.heartbeat_s = static_cast<double>(wall_ns) / 1e9;
}

void NodeMetrics::SetGemmRate(const std::string& node, const std::string& dtype,
                              double flop_per_second) {
  const MutexLock lock(mu_);
  const auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  auto& rates = it->second.gemm_rate;
  if (rates.size() < kMaxDtypes || rates.contains(dtype)) rates[dtype] = flop_per_second;
}

void NodeMetrics::Remove(const std::string& node) {
  const MutexLock lock(mu_);
  nodes_.erase(node);
}

std::vector<MetricFamily> NodeMetrics::Collect() const {
  MetricFamily by_state = Gauge("param_server_agents", "Agents by state");
  MetricFamily up = Gauge("param_server_agent_up", "1 while the agent of the node is connected");
  MetricFamily heartbeat = Gauge("param_server_agent_last_heartbeat_timestamp_seconds",
                                 "Last sign of life of the node's agent, since the epoch");
  MetricFamily rate = Gauge("param_server_gemm_flops_per_second",
                            "Latest median gemm rate of the node, all its ranks together, FLOP/s");
  const MutexLock lock(mu_);
  std::map<std::string, double> states;
  for (const absl::string_view state : kStates) states[std::string(state)] = 0;
  for (const auto& [name, node] : nodes_) states[node.state] += 1;
  for (const auto& [state, count] : states) Add(&by_state, {{"state", state}}, count);
  if (nodes_.size() > kMaxNodes) return {by_state};
  for (const auto& [name, node] : nodes_) {
    Add(&up, {{"node", name}}, node.up ? 1 : 0);
    if (node.heartbeat_s > 0) Add(&heartbeat, {{"node", name}}, node.heartbeat_s);
    for (const auto& [dtype, value] : node.gemm_rate) {
      Add(&rate, {{"node", name}, {"dtype", dtype}}, value);
    }
  }
  return {by_state, up, heartbeat, rate};
}

}  // namespace param
