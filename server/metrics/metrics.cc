#include "server/metrics/metrics.h"

#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "proto/base/version.h"

namespace param {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

// Limits of series per family.
constexpr std::size_t kOne = 1;
constexpr std::size_t kFew = 64;        // label sets of ours
constexpr std::size_t kMany = 512;      // methods x codes, benchmarks x sources
constexpr std::size_t kResults = 2048;  // benchmarks x metrics x types

const Buckets& WaitBuckets() {
  static const auto* const buckets =
      new Buckets{0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 7200, 21600};
  return *buckets;
}
const Buckets& DurationBuckets() {
  static const auto* const buckets = new Buckets{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 7200};
  return *buckets;
}
const Buckets& WriteBuckets() {
  static const auto* const buckets =
      new Buckets{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5};
  return *buckets;
}

double Seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string Lower(absl::string_view text) { return absl::AsciiStrToLower(text); }

std::string DtypeOf(const CaseRecord& result) {
  const auto it = result.planned.params.find("dtype");
  const auto* text =
      it == result.planned.params.end() ? nullptr : std::get_if<std::string>(&it->second);
  return text == nullptr ? std::string() : *text;
}

}  // namespace

prometheus::Counter& ServerMetrics::Dropped(const char* family) {
  return dropped_series_.Add({{"family", family}});
}

BoundedFamily<prometheus::Counter> ServerMetrics::Counters(const char* name, const char* help,
                                                           std::size_t limit) {
  return {prometheus::BuildCounter().Name(name).Help(help).Register(registry_), Dropped(name),
          limit};
}

BoundedFamily<prometheus::Gauge> ServerMetrics::Gauges(const char* name, const char* help,
                                                       std::size_t limit) {
  return {prometheus::BuildGauge().Name(name).Help(help).Register(registry_), Dropped(name), limit};
}

BoundedFamily<prometheus::Histogram> ServerMetrics::Histograms(const char* name, const char* help,
                                                               std::size_t limit) {
  return {prometheus::BuildHistogram().Name(name).Help(help).Register(registry_), Dropped(name),
          limit};
}

prometheus::Gauge& ServerMetrics::OneGauge(const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add({});
}

ServerMetrics::ServerMetrics(const std::vector<std::string>& benchmarks, const Clock& clock)
    : clock_(clock),
      dropped_series_(prometheus::BuildCounter()
                          .Name("param_server_metrics_dropped_series_total")
                          .Help("Updates of series that were refused at the family's limit")
                          .Register(registry_)),
      jobs_submitted_(Counters("param_server_jobs_submitted_total", "Jobs accepted", kMany)),
      jobs_finished_(
          Counters("param_server_jobs_finished_total", "Jobs that ended, by final state", kMany)),
      jobs_(Gauges("param_server_jobs", "Jobs that have not ended, by state", kFew)),
      queue_oldest_(OneGauge("param_server_queue_oldest_timestamp_seconds",
                             "When the oldest waiting job was submitted; 0 when none waits")),
      queue_wait_(Histograms("param_server_queue_wait_seconds",
                             "From submission to the first placement", kFew)),
      job_duration_(Histograms("param_server_job_duration_seconds",
                               "From the last placement to the end of a job", kFew)),
      placement_failures_(Counters("param_server_placement_failures_total",
                                   "Times a job could not be placed, by reason", kFew)),
      result_value_(Gauges("param_server_result_value",
                           "Latest median over all ranks, in the metric's base unit", kResults)),
      result_time_(Gauges("param_server_result_last_timestamp_seconds",
                          "When result_value was last set, since the epoch", kResults)),
      db_write_(Histograms("param_server_db_write_duration_seconds",
                           "Time of one transaction, its fsync included", kOne)),
      db_size_(OneGauge("param_server_db_size_bytes", "Size of the database file")),
      db_wal_size_(OneGauge("param_server_db_wal_size_bytes", "Size of its write-ahead log")),
      db_errors_(Counters("param_server_db_errors_total", "Faults of the database", kFew)),
      rpc_handled_(Counters("param_server_rpc_handled_total", "Calls answered", kMany)),
      rpc_duration_(Histograms("param_server_rpc_duration_seconds",
                               "Time to answer a call; of streams, their length", kFew)),
      events_dropped_(Counters("param_server_events_dropped_total",
                               "Events that a slow reader did not get", kFew)) {
  prometheus::BuildGauge()
      .Name("param_server_build_info")
      .Help("What is running; always 1")
      .Register(registry_)
      .Add({{"version", std::string(Version())},
            {"revision", std::string(Revision())},
            {"compiler", std::string(Compiler())}})
      .Set(1);
  OneGauge("param_server_start_timestamp_seconds", "When the coordinator started, since the epoch")
      .Set(Seconds(absl::ToUnixNanos(clock.Wall())));
  for (const std::string& benchmark : benchmarks) {
    jobs_submitted_.Get({{"benchmark", benchmark}, {"source", "cli"}});
    for (const char* status : {"succeeded", "failed", "cancelled", "timed_out"}) {
      jobs_finished_.Get({{"benchmark", benchmark}, {"status", status}});
    }
    job_duration_.Get({{"benchmark", benchmark}}, DurationBuckets());
  }
  for (const char* state : {"queued", "starting", "running"}) jobs_.Get({{"state", state}});
  for (const char* reason : {"no_nodes", "backend", "no_wait"}) {
    placement_failures_.Get({{"reason", reason}});
  }
  for (const char* code : {"busy", "full", "io", "corrupt", "other"}) {
    db_errors_.Get({{"code", code}});
  }
  queue_wait_.Get({{"source", "cli"}}, WaitBuckets());
  db_write_.Get({}, WriteBuckets());
  events_dropped_.Get({{"sink", "watch"}});
}

std::vector<prometheus::MetricFamily> ServerMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  std::vector<prometheus::MetricFamily> of_nodes = nodes_.Collect();
  std::move(of_nodes.begin(), of_nodes.end(), std::back_inserter(families));
  return families;
}

void ServerMetrics::JobSubmitted(absl::string_view benchmark, absl::string_view source) {
  Counter* const counter =
      jobs_submitted_.Get({{"benchmark", std::string(benchmark)}, {"source", std::string(source)}});
  if (counter != nullptr) counter->Increment();
}

void ServerMetrics::JobPlaced(const Job& job) {
  Histogram* const waits = queue_wait_.Get({{"source", job.spec.source}}, WaitBuckets());
  if (waits != nullptr) waits->Observe(Seconds(job.timeline.placed - job.timeline.submitted));
}

void ServerMetrics::JobFinished(const Job& job) {
  Counter* const finished = jobs_finished_.Get(
      {{"benchmark", job.spec.benchmark}, {"status", Lower(JobStateName(job.state))}});
  if (finished != nullptr) finished->Increment();
  if (job.timeline.placed == 0) return;  // it never ran
  Histogram* const durations =
      job_duration_.Get({{"benchmark", job.spec.benchmark}}, DurationBuckets());
  if (durations != nullptr) {
    durations->Observe(Seconds(job.timeline.finished - job.timeline.placed));
  }
}

void ServerMetrics::CaseStored(const Job& job, const CaseRecord& result) {
  if (result.status != line::CaseStatus::kPassed) return;  // a wrong number is no measurement
  const std::string dtype = DtypeOf(result);
  const double now_s = Seconds(absl::ToUnixNanos(clock_.Wall()));
  for (const Measurement& m : result.measurements) {
    if (m.rank != -1 || !m.labels.empty() || !std::isfinite(m.summary.p50)) continue;
    const prometheus::Labels labels = {
        {"benchmark", job.spec.benchmark}, {"metric", m.metric}, {"dtype", dtype}};
    if (Gauge* const value = result_value_.Get(labels)) value->Set(m.summary.p50);
    if (Gauge* const time = result_time_.Get(labels)) time->Set(now_s);
  }
  if (job.spec.benchmark == "gemm") AddGemmRates(result, dtype);
}

void ServerMetrics::AddGemmRates(const CaseRecord& result, const std::string& dtype) {
  std::map<int, const std::string*> node_of_rank;
  for (const RankStatus& rank : result.ranks) node_of_rank[rank.rank] = &rank.node;
  std::map<std::string, double> rates;
  for (const Measurement& m : result.measurements) {
    const auto node = node_of_rank.find(m.rank);
    if (node == node_of_rank.end() || m.metric != "flops" || !m.labels.empty()) continue;
    if (std::isfinite(m.summary.p50)) rates[*node->second] += m.summary.p50;
  }
  for (const auto& [node, rate] : rates) nodes_.SetGemmRate(node, dtype, rate);
}

void ServerMetrics::PlacementFailed(absl::string_view reason) {
  Counter* const counter = placement_failures_.Get({{"reason", std::string(reason)}});
  if (counter != nullptr) counter->Increment();
}

void ServerMetrics::QueueState(int queued, int starting, int running,
                               std::int64_t oldest_submitted_ns) {
  const std::pair<const char*, int> counts[] = {
      {"queued", queued}, {"starting", starting}, {"running", running}};
  for (const auto& [state, count] : counts) {
    if (Gauge* const gauge = jobs_.Get({{"state", state}})) gauge->Set(count);
  }
  queue_oldest_.Set(Seconds(oldest_submitted_ns));
}

void ServerMetrics::NodeState(const std::string& node, absl::string_view state, bool up) {
  nodes_.SetState(node, state, up);
}
void ServerMetrics::NodeGone(const std::string& node) { nodes_.Remove(node); }
void ServerMetrics::Heartbeat(const std::string& node, std::int64_t wall_ns) {
  nodes_.SetHeartbeat(node, wall_ns);
}

void ServerMetrics::EventsDropped(absl::string_view sink, std::int64_t count) {
  Counter* const counter = events_dropped_.Get({{"sink", std::string(sink)}});
  if (counter != nullptr) counter->Increment(static_cast<double>(count));
}

void ServerMetrics::RpcHandled(absl::string_view method, absl::string_view code, double seconds) {
  const std::string name(method);
  Counter* const handled = rpc_handled_.Get({{"method", name}, {"code", Lower(code)}});
  if (handled != nullptr) handled->Increment();
  Histogram* const durations = rpc_duration_.Get({{"method", name}}, WriteBuckets());
  if (durations != nullptr) durations->Observe(seconds);
}

void ServerMetrics::DatabaseCommitted(double seconds) {
  if (Histogram* const writes = db_write_.Get({}, WriteBuckets())) writes->Observe(seconds);
}

void ServerMetrics::DatabaseFault(absl::string_view kind) {
  if (Counter* const errors = db_errors_.Get({{"code", std::string(kind)}})) errors->Increment();
}

void ServerMetrics::DatabaseSizes(std::int64_t database_bytes, std::int64_t wal_bytes) {
  db_size_.Set(static_cast<double>(database_bytes));
  db_wal_size_.Set(static_cast<double>(wal_bytes));
}

}  // namespace param
