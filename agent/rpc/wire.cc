#include "agent/rpc/wire.h"

#include <utility>

#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/convert/values.h"

namespace param::agent {
namespace {

v1::AttemptKey KeyToWire(const AttemptKey& key) {
  v1::AttemptKey wire;
  wire.set_job_id(key.job_id);
  wire.set_attempt(key.attempt);
  return wire;
}

AttemptKey KeyFromWire(const v1::AttemptKey& wire) { return {wire.job_id(), wire.attempt()}; }

void BackendToWire(const BackendStatus& status, v1::BackendStatus* wire) {
  wire->set_name(status.name);
  wire->set_installed(status.installed);
  wire->set_loadable(status.loadable);
  wire->set_usable(status.usable);
  wire->set_reason(status.reason);
  wire->set_devices(status.devices);
  for (const std::string& table : status.tables) wire->add_tables(table);
  for (const std::string& bench : status.benchmarks) wire->add_benchmarks(bench);
  wire->set_version(status.version);
  wire->set_describe_json(status.describe_json);
  wire->mutable_streams()->Assign(status.streams.begin(), status.streams.end());
  wire->set_preference(status.preference);
  wire->set_rank_per_device(status.rank_per_device);
  wire->set_device_memory_bytes(status.device_memory_bytes);
  wire->set_launcher(status.launcher);
}

void InventoryToWire(const Inventory& inventory, v1::Inventory* wire) {
  wire->set_hostname(inventory.hostname);
  wire->set_boot_id(inventory.boot_id);
  wire->set_kernel(inventory.kernel);
  wire->set_cpu_model(inventory.cpu_model);
  wire->set_cores(inventory.cores);
  wire->set_sockets(inventory.sockets);
  wire->set_numa_nodes(inventory.numa_nodes);
  wire->set_memory_bytes(inventory.memory_bytes);
  wire->set_governor(inventory.governor);
  for (const Nic& nic : inventory.nics) {
    v1::Nic* const each = wire->add_nics();
    each->set_name(nic.name);
    each->set_driver(nic.driver);
    each->set_speed_bits_per_second(nic.speed_bits_per_second);
    each->set_state(nic.state);
  }
  for (const BackendStatus& backend : inventory.backends) {
    BackendToWire(backend, wire->add_backends());
  }
  for (const auto& [name, version] : inventory.libraries) {
    (*wire->mutable_libraries())[name] = version;
  }
  for (const int cpu : inventory.cpus) wire->add_cpus(cpu);
  for (const NetAddress& address : inventory.addresses) {
    v1::NetAddress* const each = wire->add_addresses();
    each->set_interface(address.interface);
    each->set_address(address.address);
    each->set_prefix(address.prefix);
  }
  wire->set_network_id(inventory.network_id);
}

// One overload per kind of UpMessage.
void Fill(const Heartbeat& heartbeat, v1::FromAgent* wire) {
  wire->mutable_heartbeat()->set_time_ns(heartbeat.time_ns);
  wire->mutable_heartbeat()->set_spool_bytes(heartbeat.spool_bytes);
}
void Fill(const RankEvents& events, v1::FromAgent* wire) {
  v1::RankEvents* const list = wire->mutable_events();
  for (const RankEvent& event : events.events) {
    v1::RankEvent* const each = list->add_events();
    *each->mutable_key() = KeyToWire(event.key);
    each->set_rank(event.rank);
    each->set_seq(event.seq);
    each->set_time_ns(event.time_ns);
    each->set_line(event.line);
  }
}
void Fill(const ExchangePart& part, v1::FromAgent* wire) {
  v1::ExchangePart* const out = wire->mutable_exchange();
  *out->mutable_key() = KeyToWire(part.key);
  out->set_round(part.round);
  for (const int rank : part.ranks) out->add_ranks(rank);
  for (const std::string& data : part.data) out->add_data(data);
}
void Fill(const AttemptEnded& ended, v1::FromAgent* wire) {
  *wire->mutable_attempt_ended()->mutable_key() = KeyToWire(ended.key);
}
void Fill(const Inventory& inventory, v1::FromAgent* wire) {
  InventoryToWire(inventory, wire->mutable_inventory());
}
void Fill(const StartDaemon& wanted, v1::FromAgent* wire) {
  v1::StartDaemon* const out = wire->mutable_start_daemon();
  *out->mutable_key() = KeyToWire(wanted.key);
  // What a foreign launcher says: a message with anything but UTF-8 would end the connection, again
  // and again. What is changed by it is refused where the daemon is to start.
  out->set_host(ValidUtf8(wanted.host));
  for (const std::string& arg : wanted.args) out->add_args(ValidUtf8(arg));
}
void Fill(const DaemonEnded& ended, v1::FromAgent* wire) {
  v1::DaemonEnded* const out = wire->mutable_daemon_ended();
  *out->mutable_key() = KeyToWire(ended.key);
  out->set_host(ValidUtf8(ended.host));
  out->set_exit_code(ended.exit_code);
  out->set_cause(ValidUtf8(ended.cause));
}

LaunchPlan PlanFromWire(const v1::LaunchPlan& wire) {
  LaunchPlan plan;
  for (const v1::LaunchHost& host : wire.hosts()) {
    plan.hosts.push_back({host.host(), host.node(), host.slots()});
  }
  plan.head_addresses.assign(wire.head_addresses().begin(), wire.head_addresses().end());
  plan.interface = wire.interface();
  plan.yield_when_idle = wire.yield_when_idle();
  return plan;
}

CpuShare ShareFromWire(const v1::CpuShare& wire) {
  return {.cpus = {wire.cpus().begin(), wire.cpus().end()},
          .oversubscribed = wire.oversubscribed()};
}

Registered RegisteredFromWire(const v1::Registered& wire) {
  Registered registered{.heartbeat_period = absl::Nanoseconds(wire.heartbeat_period_ns()),
                        .lease = absl::Nanoseconds(wire.lease_ns()),
                        .share = ShareFromWire(wire.share()),
                        .unknown = {}};
  for (const v1::AttemptKey& key : wire.unknown()) registered.unknown.push_back(KeyFromWire(key));
  return registered;
}

absl::StatusOr<StartAttempt> StartFromWire(const v1::StartAttempt& wire) {
  StartAttempt start;
  start.key = KeyFromWire(wire.key());
  start.benchmark = wire.benchmark();
  start.benchmark_version = wire.benchmark_version();
  start.ranks = wire.ranks();
  for (const v1::RankPlace& place : wire.places()) {
    start.places.push_back({place.rank(), place.local_rank()});
  }
  start.rank_nodes.assign(wire.rank_nodes().begin(), wire.rank_nodes().end());
  start.device_backend = wire.device_backend();
  start.comm_backends.assign(wire.comm_backends().begin(), wire.comm_backends().end());
  start.launcher = wire.launcher();
  for (const v1::AssignedCase& each : wire.cases()) {
    line::AssignedCase& one = start.cases.emplace_back();
    one.index = each.index();
    one.id = each.case_id();
    PARAM_ASSIGN_OR_RETURN(one.params, ParamsFromProto(each.params()), "case ", each.case_id());
  }
  for (const auto& [phase, ns] : wire.phase_deadlines_ns()) start.phase_deadlines_ns[phase] = ns;
  start.fake_script = wire.fake_script();
  start.cpus.assign(wire.cpus().begin(), wire.cpus().end());
  start.plan = PlanFromWire(wire.plan());
  return start;
}

}  // namespace

v1::FromAgent ToWire(const Register& hello) {
  v1::FromAgent message;
  v1::Register* const wire = message.mutable_register_();
  wire->set_node(hello.node);
  wire->set_protocol(hello.protocol);
  wire->set_version(hello.version);
  wire->set_instance(hello.instance);
  InventoryToWire(hello.inventory, wire->mutable_inventory());
  for (const auto& [key, value] : hello.labels) (*wire->mutable_labels())[key] = value;
  for (const AttemptKey& key : hello.running) *wire->add_running() = KeyToWire(key);
  return message;
}

v1::FromAgent ToWire(const UpMessage& message) {
  v1::FromAgent wire;
  std::visit([&wire](const auto& each) { Fill(each, &wire); }, message);
  return wire;
}

absl::StatusOr<DownMessage> FromWire(const v1::ToAgent& message) {
  switch (message.kind_case()) {
    case v1::ToAgent::kRegistered:
      return RegisteredFromWire(message.registered());
    case v1::ToAgent::kStart: {
      PARAM_ASSIGN_OR_RETURN(StartAttempt start, StartFromWire(message.start()));
      return start;
    }
    case v1::ToAgent::kStop:
      return StopAttempt{KeyFromWire(message.stop().key()), message.stop().graceful(),
                         message.stop().reason()};
    case v1::ToAgent::kExchange:
      return ExchangeAll{KeyFromWire(message.exchange().key()),
                         message.exchange().round(),
                         {message.exchange().data().begin(), message.exchange().data().end()}};
    case v1::ToAgent::kAck: {
      EventsAck ack;
      for (const v1::AckEntry& entry : message.ack().entries()) {
        ack.entries.push_back({KeyFromWire(entry.key()), entry.rank(), entry.seq()});
      }
      return ack;
    }
    case v1::ToAgent::kHeartbeat:
      return HeartbeatReply{message.heartbeat().time_ns()};
    case v1::ToAgent::kCpuShare:
      return ShareFromWire(message.cpu_share());
    case v1::ToAgent::kStartDaemon:
      return StartDaemon{
          KeyFromWire(message.start_daemon().key()),
          message.start_daemon().host(),
          {message.start_daemon().args().begin(), message.start_daemon().args().end()}};
    case v1::ToAgent::kDaemonEnded:
      return DaemonEnded{KeyFromWire(message.daemon_ended().key()), message.daemon_ended().host(),
                         message.daemon_ended().exit_code(), message.daemon_ended().cause()};
    case v1::ToAgent::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a message of a kind that this agent does not know");
}

}  // namespace param::agent
