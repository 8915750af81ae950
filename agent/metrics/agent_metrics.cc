#include "agent/metrics/agent_metrics.h"

#include <algorithm>
#include <iterator>

#include "proto/base/version.h"

namespace param {
namespace {

constexpr absl::string_view kStatuses[] = {"succeeded", "failed", "cancelled", "timed_out"};
constexpr absl::string_view kReasons[] = {"start", "lost", "refused", "timeout"};
constexpr char kOther[] = "other";

template <std::size_t kCount>
std::string OneOf(const absl::string_view (&known)[kCount], absl::string_view text) {
  const bool found = std::find(std::begin(known), std::end(known), text) != std::end(known);
  return found ? std::string(text) : kOther;
}

const prometheus::Histogram::BucketBoundaries& DurationBuckets() {
  static const auto* const buckets =
      new prometheus::Histogram::BucketBoundaries{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 7200};
  return *buckets;
}

}  // namespace

AgentMetrics::AgentMetrics(const AgentFacts& facts, const std::vector<std::string>& benchmarks)
    : benchmarks_(benchmarks.begin(), benchmarks.end()),
      attempts_(prometheus::BuildCounter()
                    .Name("param_agent_attempts_total")
                    .Help("Attempts that ended on this node")
                    .Register(registry_)),
      durations_(prometheus::BuildHistogram()
                     .Name("param_agent_attempt_duration_seconds")
                     .Help("From assignment to the end of an attempt on this node")
                     .Register(registry_)),
      reconnects_(prometheus::BuildCounter()
                      .Name("param_agent_reconnects_total")
                      .Help("Attempts to connect to the coordinator, by what led to them")
                      .Register(registry_)),
      connected_(OneGauge("param_agent_coordinator_connected", "1 while connected")),
      spool_results_(OneGauge("param_agent_spool_results",
                              "Events on disk that the coordinator has not taken over")),
      spool_bytes_(OneGauge("param_agent_spool_bytes", "Size of those events on disk")),
      workers_(OneGauge("param_agent_workers", "Workers that run now")) {
  prometheus::BuildGauge()
      .Name("param_agent_info")
      .Help("The node; always 1")
      .Register(registry_)
      .Add({{"node", facts.node},
            {"cpu_model", facts.cpu_model},
            {"gpu_model", facts.gpu_model},
            {"driver", facts.driver}})
      .Set(1);
  prometheus::BuildGauge()
      .Name("param_agent_build_info")
      .Help("What is running; always 1")
      .Register(registry_)
      .Add({{"version", std::string(Version())},
            {"revision", std::string(Revision())},
            {"compiler", std::string(Compiler())}})
      .Set(1);
  for (const std::string& benchmark : benchmarks_) {
    for (const absl::string_view status : kStatuses) {
      attempts_.Add({{"benchmark", benchmark}, {"status", std::string(status)}});
    }
    durations_.Add({{"benchmark", benchmark}}, DurationBuckets());
  }
  for (const absl::string_view reason : kReasons) {
    reconnects_.Add({{"reason", std::string(reason)}});
  }
}

prometheus::Gauge& AgentMetrics::OneGauge(const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add({});
}

std::string AgentMetrics::Known(absl::string_view benchmark) const {
  return benchmarks_.contains(benchmark) ? std::string(benchmark) : kOther;
}

std::vector<prometheus::MetricFamily> AgentMetrics::Collect() const { return registry_.Collect(); }

void AgentMetrics::AttemptEnded(absl::string_view benchmark, absl::string_view status,
                                double seconds) {
  const std::string known = Known(benchmark);
  attempts_.Add({{"benchmark", known}, {"status", OneOf(kStatuses, status)}}).Increment();
  durations_.Add({{"benchmark", known}}, DurationBuckets()).Observe(seconds);
}

void AgentMetrics::SetConnected(bool connected) { connected_.Set(connected ? 1 : 0); }

void AgentMetrics::Reconnected(absl::string_view reason) {
  reconnects_.Add({{"reason", OneOf(kReasons, reason)}}).Increment();
}

void AgentMetrics::SetSpool(std::int64_t results, std::int64_t bytes) {
  spool_results_.Set(static_cast<double>(results));
  spool_bytes_.Set(static_cast<double>(bytes));
}

void AgentMetrics::SetWorkers(int running) { workers_.Set(running); }

}  // namespace param
