#include "server/rpc/records.h"

#include <utility>

#include "proto/convert/values.h"

namespace param {
namespace {

template <typename Map>
std::map<std::string, std::string> TextMap(const Map& map) {
  return {map.begin(), map.end()};
}

v1::CaseStatus StatusToProto(line::CaseStatus status) {
  switch (status) {
    case line::CaseStatus::kPassed:
      return v1::PASSED;
    case line::CaseStatus::kWrong:
      return v1::WRONG;
    case line::CaseStatus::kSkipped:
      return v1::SKIPPED;
    case line::CaseStatus::kFailed:
      return v1::FAILED_CASE;
  }
  return v1::CASE_STATUS_UNSPECIFIED;
}

v1::JobState StateToProto(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return v1::QUEUED;
    case JobState::kStarting:
      return v1::STARTING;
    case JobState::kRunning:
      return v1::RUNNING;
    case JobState::kSucceeded:
      return v1::SUCCEEDED;
    case JobState::kFailed:
      return v1::FAILED;
    case JobState::kCancelled:
      return v1::CANCELLED;
    case JobState::kTimedOut:
      return v1::TIMED_OUT;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

void SummaryToProto(const Summary& from, v1::Summary* to) {
  to->set_n(from.n);
  to->set_min(from.min);
  to->set_p50(from.p50);
  to->set_p75(from.p75);
  to->set_p95(from.p95);
  to->set_p99(from.p99);
  to->set_max(from.max);
  to->set_mean(from.mean);
  to->set_stdev(from.stdev);
  to->set_ci95_low(from.ci95_low);
  to->set_ci95_high(from.ci95_high);
  to->set_slowest_rank(from.slowest_rank);
}

void SpecToProto(const JobSpec& from, v1::JobSpec* to) {
  to->set_benchmark(from.benchmark);
  to->mutable_params()->insert(from.params.begin(), from.params.end());
  to->set_nodes(from.nodes);
  to->set_ranks_per_node(from.ranks_per_node);
  to->set_backend(from.backend);
  to->mutable_node_names()->Assign(from.node_names.begin(), from.node_names.end());
  to->mutable_selector()->insert(from.selector.begin(), from.selector.end());
  to->set_priority(from.priority);
  to->set_timeout_ns(from.timeout_ns);
  to->set_retries(from.retries);
  to->set_name(from.name);
  to->set_no_wait(from.no_wait);
  to->mutable_phase_deadlines_ns()->insert(from.phase_deadlines_ns.begin(),
                                           from.phase_deadlines_ns.end());
  to->set_fake_script(from.fake_script);
  to->set_source(from.source);
}

void TimelineToProto(const Timeline& from, v1::Timeline* to) {
  to->set_submitted(from.submitted);
  to->set_placed(from.placed);
  to->set_spawned(from.spawned);
  to->set_rendezvous(from.rendezvous);
  to->set_comm_init(from.comm_init);
  to->set_warmup(from.warmup);
  to->set_first_timed(from.first_timed);
  to->set_finished(from.finished);
}

void FailureToProto(const Failure& from, v1::Failure* to) {
  to->set_code(from.code);
  to->set_phase(from.phase);
  to->set_node(from.node);
  to->set_rank(from.rank);
  to->set_cause(from.cause);
  to->set_address(from.address);
  to->set_error_number(from.error_number);
}

void KeyToProto(const AttemptKey& from, v1::AttemptKey* to) {
  to->set_job_id(from.job_id);
  to->set_attempt(from.attempt);
}

void ShareToProto(const CpuShare& from, v1::CpuShare* to) {
  to->mutable_cpus()->Assign(from.cpus.begin(), from.cpus.end());
  to->set_oversubscribed(from.oversubscribed);
}

BackendStatus BackendFromProto(const v1::BackendStatus& from) {
  BackendStatus to;
  to.name = from.name();
  to.installed = from.installed();
  to.loadable = from.loadable();
  to.usable = from.usable();
  to.reason = from.reason();
  to.devices = from.devices();
  to.tables.assign(from.tables().begin(), from.tables().end());
  to.benchmarks.assign(from.benchmarks().begin(), from.benchmarks().end());
  to.version = from.version();
  to.describe_json = from.describe_json();
  to.streams.assign(from.streams().begin(), from.streams().end());
  to.preference = from.preference();
  to.rank_per_device = from.rank_per_device();
  to.device_memory_bytes = from.device_memory_bytes();
  return to;
}

void BackendToProto(const BackendStatus& from, v1::BackendStatus* to) {
  to->set_name(from.name);
  to->set_installed(from.installed);
  to->set_loadable(from.loadable);
  to->set_usable(from.usable);
  to->set_reason(from.reason);
  to->set_devices(from.devices);
  to->mutable_tables()->Assign(from.tables.begin(), from.tables.end());
  to->mutable_benchmarks()->Assign(from.benchmarks.begin(), from.benchmarks.end());
  to->set_version(from.version);
  to->set_describe_json(from.describe_json);
  to->mutable_streams()->Assign(from.streams.begin(), from.streams.end());
  to->set_preference(from.preference);
  to->set_rank_per_device(from.rank_per_device);
  to->set_device_memory_bytes(from.device_memory_bytes);
}

void InventoryToProto(const Inventory& from, v1::Inventory* to) {
  to->set_hostname(from.hostname);
  to->set_boot_id(from.boot_id);
  to->set_kernel(from.kernel);
  to->set_cpu_model(from.cpu_model);
  to->set_governor(from.governor);
  to->set_cores(from.cores);
  to->set_sockets(from.sockets);
  to->set_numa_nodes(from.numa_nodes);
  to->set_memory_bytes(from.memory_bytes);
  to->mutable_cpus()->Assign(from.cpus.begin(), from.cpus.end());
  for (const Nic& nic : from.nics) {
    v1::Nic* out = to->add_nics();
    out->set_name(nic.name);
    out->set_driver(nic.driver);
    out->set_state(nic.state);
    out->set_speed_bits_per_second(nic.speed_bits_per_second);
  }
  for (const BackendStatus& backend : from.backends) BackendToProto(backend, to->add_backends());
  to->mutable_libraries()->insert(from.libraries.begin(), from.libraries.end());
}

void StartToProto(const StartAttempt& from, v1::StartAttempt* to) {
  KeyToProto(from.key, to->mutable_key());
  to->set_benchmark(from.benchmark);
  to->set_benchmark_version(from.benchmark_version);
  to->set_ranks(from.ranks);
  for (const RankPlace& place : from.places) {
    v1::RankPlace* out = to->add_places();
    out->set_rank(place.rank);
    out->set_local_rank(place.local_rank);
  }
  to->mutable_rank_nodes()->Assign(from.rank_nodes.begin(), from.rank_nodes.end());
  to->set_device_backend(from.device_backend);
  to->mutable_comm_backends()->Assign(from.comm_backends.begin(), from.comm_backends.end());
  to->set_launcher(from.launcher);
  for (const CaseRecord& record : from.cases) {
    v1::AssignedCase* out = to->add_cases();
    out->set_index(record.index);
    out->set_case_id(record.planned.id);
    ParamsToProto(record.planned.params, out->mutable_params());
  }
  to->mutable_phase_deadlines_ns()->insert(from.phase_deadlines_ns.begin(),
                                           from.phase_deadlines_ns.end());
  to->set_fake_script(from.fake_script);
  to->mutable_cpus()->Assign(from.cpus.begin(), from.cpus.end());
}

struct ToAgentVisitor {
  v1::ToAgent& out;
  void operator()(const StartAttempt& from) const { StartToProto(from, out.mutable_start()); }
  void operator()(const StopAttempt& from) const {
    KeyToProto(from.key, out.mutable_stop()->mutable_key());
    out.mutable_stop()->set_graceful(from.graceful);
    out.mutable_stop()->set_reason(from.reason);
  }
  void operator()(const ExchangeAll& from) const {
    KeyToProto(from.key, out.mutable_exchange()->mutable_key());
    out.mutable_exchange()->set_round(from.round);
    out.mutable_exchange()->mutable_data()->Assign(from.data.begin(), from.data.end());
  }
  void operator()(const EventsAck& from) const {
    v1::AckEntry* entry = out.mutable_ack()->add_entries();
    KeyToProto(from.key, entry->mutable_key());
    entry->set_rank(from.rank);
    entry->set_seq(from.seq);
  }
  void operator()(const ShareChanged& from) const {
    ShareToProto(from.share, out.mutable_cpu_share());
  }
};

struct EventVisitor {
  v1::JobEvent& out;
  void operator()(const Job& job) const { *out.mutable_job() = JobToProto(job); }
  void operator()(const std::shared_ptr<const CaseRecord>& record) const {
    *out.mutable_case_done() = CaseToProto(*record);
  }
  void operator()(const Progress& progress) const {
    out.mutable_progress()->set_phase(progress.phase);
    out.mutable_progress()->set_case_index(progress.case_index);
    out.mutable_progress()->set_samples(progress.samples);
  }
};

}  // namespace

v1::Job JobToProto(const Job& job) {
  v1::Job out;
  out.set_job_id(job.job_id);
  SpecToProto(job.spec, out.mutable_spec());
  out.set_benchmark_version(job.benchmark_version);
  out.set_state(StateToProto(job.state));
  out.set_reason(job.reason);
  out.set_owner(job.owner);
  out.mutable_nodes()->Assign(job.nodes.begin(), job.nodes.end());
  out.set_ranks(job.ranks);
  out.set_backend(job.backend);
  out.set_attempt(job.attempt);
  if (!job.failure.empty()) FailureToProto(job.failure, out.mutable_failure());
  TimelineToProto(job.timeline, out.mutable_timeline());
  out.set_cases_total(job.cases_total);
  out.set_cases_done(job.cases_done);
  out.set_oversubscribed(job.oversubscribed);
  return out;
}

JobSpec SpecFromProto(const v1::JobSpec& spec) {
  JobSpec out;
  out.benchmark = spec.benchmark();
  out.params = {spec.params().begin(), spec.params().end()};
  out.nodes = spec.nodes();
  out.ranks_per_node = spec.ranks_per_node();
  out.backend = spec.backend().empty() ? "auto" : spec.backend();
  out.node_names.assign(spec.node_names().begin(), spec.node_names().end());
  out.selector = TextMap(spec.selector());
  out.priority = spec.priority();
  out.timeout_ns = spec.timeout_ns();
  out.retries = spec.retries();
  out.name = spec.name();
  out.no_wait = spec.no_wait();
  out.phase_deadlines_ns = {spec.phase_deadlines_ns().begin(), spec.phase_deadlines_ns().end()};
  out.fake_script = spec.fake_script();
  out.source = spec.source().empty() ? "cli" : spec.source();
  return out;
}

v1::CaseResult CaseToProto(const CaseRecord& record) {
  v1::CaseResult out;
  out.set_case_index(record.index);
  out.set_case_id(record.planned.id);
  ParamsToProto(record.planned.params, out.mutable_params());
  out.set_set_row(record.planned.set_row);
  out.set_application(record.planned.application);
  if (!record.ended) return out;
  out.set_status(StatusToProto(record.status));
  out.set_reason(record.reason);
  out.mutable_info()->insert(record.info.begin(), record.info.end());
  for (const Measurement& from : record.measurements) {
    v1::Measurement* to = out.add_measurements();
    to->set_rank(from.rank);
    to->set_metric(from.metric);
    to->set_unit(from.unit);
    to->mutable_labels()->insert(from.labels.begin(), from.labels.end());
    SummaryToProto(from.summary, to->mutable_summary());
  }
  for (const RankStatus& from : record.ranks) {
    v1::RankStatus* to = out.add_ranks();
    to->set_rank(from.rank);
    to->set_node(from.node);
    to->set_status(StatusToProto(from.status));
    to->set_reason(from.reason);
  }
  return out;
}

v1::JobEvent EventToProto(const JobEvent& event) {
  v1::JobEvent out;
  out.set_seq(event.seq);
  out.set_job_id(event.job_id);
  out.set_time_ns(event.time_ns);
  std::visit(EventVisitor{out}, event.kind);
  return out;
}

v1::SampleBlob SamplesToProto(const SampleBlob& blob) {
  v1::SampleBlob out;
  out.set_case_index(blob.case_index);
  out.set_rank(blob.rank);
  out.set_metric(blob.metric);
  out.mutable_labels()->insert(blob.labels.begin(), blob.labels.end());
  out.mutable_values()->Assign(blob.values.begin(), blob.values.end());
  return out;
}

v1::Node NodeToProto(const NodeView& view) {
  v1::Node out;
  out.set_name(view.name);
  out.set_state(view.state);
  out.set_reason(view.reason);
  out.mutable_labels()->insert(view.labels.begin(), view.labels.end());
  InventoryToProto(view.inventory, out.mutable_inventory());
  out.set_job_id(view.job_id);
  out.set_last_seen_ns(view.last_seen_ns);
  out.set_agent_version(view.agent_version);
  out.set_address(view.address);
  out.mutable_cpus()->Assign(view.share.cpus.begin(), view.share.cpus.end());
  out.set_oversubscribed(view.share.oversubscribed);
  return out;
}

absl::StatusOr<JobState> StateFromProto(v1::JobState state) {
  for (const JobState each :
       {JobState::kQueued, JobState::kStarting, JobState::kRunning, JobState::kSucceeded,
        JobState::kFailed, JobState::kCancelled, JobState::kTimedOut}) {
    if (StateToProto(each) == state) return each;
  }
  return absl::InvalidArgumentError(absl::StrCat("state ", static_cast<int>(state), " is unknown"));
}

Inventory InventoryFromProto(const v1::Inventory& from) {
  Inventory to;
  to.hostname = from.hostname();
  to.boot_id = from.boot_id();
  to.kernel = from.kernel();
  to.cpu_model = from.cpu_model();
  to.governor = from.governor();
  to.cores = from.cores();
  to.sockets = from.sockets();
  to.numa_nodes = from.numa_nodes();
  to.memory_bytes = from.memory_bytes();
  to.cpus.assign(from.cpus().begin(), from.cpus().end());
  for (const v1::Nic& nic : from.nics()) {
    to.nics.push_back(Nic{nic.name(), nic.driver(), nic.state(), nic.speed_bits_per_second()});
  }
  for (const v1::BackendStatus& backend : from.backends()) {
    to.backends.push_back(BackendFromProto(backend));
  }
  to.libraries = TextMap(from.libraries());
  return to;
}

Registration RegistrationFromProto(const v1::Register& message, std::string address) {
  Registration out;
  out.node = message.node();
  out.protocol = message.protocol();
  out.version = message.version();
  out.instance = message.instance();
  out.address = std::move(address);
  out.inventory = InventoryFromProto(message.inventory());
  out.inventory_json = InventoryJson(message.inventory());
  out.labels = TextMap(message.labels());
  for (const v1::AttemptKey& key : message.running()) out.running.push_back(KeyFromProto(key));
  return out;
}

AttemptKey KeyFromProto(const v1::AttemptKey& key) {
  return AttemptKey{key.job_id(), key.attempt()};
}

v1::ToAgent WelcomeToProto(const Welcome& welcome) {
  v1::ToAgent out;
  v1::Registered* to = out.mutable_registered();
  to->set_heartbeat_period_ns(welcome.heartbeat_period_ns);
  to->set_lease_ns(welcome.lease_ns);
  ShareToProto(welcome.share, to->mutable_share());
  for (const AttemptKey& key : welcome.unknown) KeyToProto(key, to->add_unknown());
  return out;
}

v1::ToAgent ToAgentToProto(const ToAgent& message) {
  v1::ToAgent out;
  std::visit(ToAgentVisitor{out}, message);
  return out;
}

}  // namespace param
