#pragma once
// Every metric of the agent, in one place.

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace param {

// What agent_info says.
struct AgentFacts {
  std::string node, cpu_model, gpu_model, driver;
};

// Names: param_agent_ prefix, as in server/metrics. Thread safe, every call is cheap. Labels are
// bounded: an unknown benchmark, status or reason counts as "other".
class AgentMetrics {
 public:
  // `benchmarks`: ids of the catalogue.
  AgentMetrics(const AgentFacts& facts, const std::vector<std::string>& benchmarks);
  AgentMetrics(const AgentMetrics&) = delete;
  AgentMetrics& operator=(const AgentMetrics&) = delete;

  // For one scrape.
  std::vector<prometheus::MetricFamily> Collect() const;

  // This node's part of an attempt ended. status: succeeded | failed | cancelled | timed_out.
  void AttemptEnded(absl::string_view benchmark, absl::string_view status, double seconds);
  void SetConnected(bool connected);
  // reason: start | lost | refused | timeout
  void Reconnected(absl::string_view reason);
  // What waits on disk for the coordinator.
  void SetSpool(std::int64_t results, std::int64_t bytes);
  void SetWorkers(int running);

 private:
  std::string Known(absl::string_view benchmark) const;
  prometheus::Gauge& OneGauge(const char* name, const char* help);

  const std::set<std::string, std::less<>> benchmarks_;
  mutable prometheus::Registry registry_;  // Collect() of the library is not const
  prometheus::Family<prometheus::Counter>& attempts_;
  prometheus::Family<prometheus::Histogram>& durations_;
  prometheus::Family<prometheus::Counter>& reconnects_;
  prometheus::Gauge& connected_;
  prometheus::Gauge& spool_results_;
  prometheus::Gauge& spool_bytes_;
  prometheus::Gauge& workers_;
};

}  // namespace param
