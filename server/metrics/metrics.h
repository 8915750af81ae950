#pragma once
// Every metric of the coordinator, in one place.

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "server/core/observer.h"
#include "server/metrics/bounded_family.h"
#include "server/metrics/node_metrics.h"

namespace param {

// Names: param_server_ prefix, unit as suffix, _total on counters. Labels come from small sets or
// are bounded, never a job's id; sets known beforehand start at 0. Thread safe, every call is
// cheap.
class ServerMetrics final : public CoordinatorObserver {
 public:
  // `benchmarks`: ids of the catalogue. The clock outlives this.
  ServerMetrics(const std::vector<std::string>& benchmarks, const Clock& clock);
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // For one scrape.
  std::vector<prometheus::MetricFamily> Collect() const;

  void JobSubmitted(absl::string_view benchmark, absl::string_view source) override;
  void JobPlaced(const Job& job) override;
  void JobFinished(const Job& job) override;
  void CaseStored(const Job& job, const CaseRecord& result) override;
  void PlacementFailed(absl::string_view reason) override;
  void QueueState(int queued, int starting, int running, std::int64_t oldest_submitted_ns) override;
  void NodeState(const std::string& node, absl::string_view state, bool up) override;
  void NodeGone(const std::string& node) override;
  void Heartbeat(const std::string& node, std::int64_t wall_ns) override;
  void EventsDropped(absl::string_view sink, std::int64_t count) override;

  // A call was answered; `code` as CodeName() gives it.
  void RpcHandled(absl::string_view method, absl::string_view code, double seconds);
  // A transaction of the store; a fault of its database ("busy", "full", "io", "corrupt", "other").
  void DatabaseCommitted(double seconds);
  void DatabaseFault(absl::string_view kind);
  void DatabaseSizes(std::int64_t database_bytes, std::int64_t wal_bytes);

 private:
  template <typename T>
  using Bounded = BoundedFamily<T>;
  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;
  using Histogram = prometheus::Histogram;

  prometheus::Counter& Dropped(const char* family);
  Bounded<Counter> Counters(const char* name, const char* help, std::size_t limit);
  Bounded<Gauge> Gauges(const char* name, const char* help, std::size_t limit);
  Bounded<Histogram> Histograms(const char* name, const char* help, std::size_t limit);
  Gauge& OneGauge(const char* name, const char* help);
  void AddGemmRates(const CaseRecord& result, const std::string& dtype);

  const Clock& clock_;
  mutable prometheus::Registry registry_;  // Collect() of the library is not const
  prometheus::Family<Counter>& dropped_series_;

  Bounded<Counter> jobs_submitted_;
  Bounded<Counter> jobs_finished_;
  Bounded<Gauge> jobs_;
  Gauge& queue_oldest_;
  Bounded<Histogram> queue_wait_;
  Bounded<Histogram> job_duration_;
  Bounded<Counter> placement_failures_;
  Bounded<Gauge> result_value_;
  Bounded<Gauge> result_time_;
  Bounded<Histogram> db_write_;
  Gauge& db_size_;
  Gauge& db_wal_size_;
  Bounded<Counter> db_errors_;
  Bounded<Counter> rpc_handled_;
  Bounded<Histogram> rpc_duration_;
  Bounded<Counter> events_dropped_;
  NodeMetrics nodes_;
};

}  // namespace param
