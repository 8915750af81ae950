// The JSON view of nodes, the coordinator and the catalogue: see json.h.

#include <map>
#include <nlohmann/json.hpp>

#include "proto/convert/json.h"

namespace param {
namespace {

template <typename Repeated>
Json ListJson(const Repeated& list) {
  Json out = Json::array();
  for (const auto& value : list) out.push_back(value);
  return out;
}

Json SortedText(const google::protobuf::Map<std::string, std::string>& map) {
  Json out = Json::object();
  for (const auto& [key, value] : std::map<std::string, std::string>(map.begin(), map.end())) {
    out[key] = value;
  }
  return out;
}

Json BackendJson(const v1::BackendStatus& backend) {
  // The backend's own description is JSON text; what does not parse is passed on as text.
  Json description = Json::parse(backend.describe_json(), nullptr, false);
  if (description.is_discarded()) description = backend.describe_json();
  return {{"name", backend.name()},
          {"installed", backend.installed()},
          {"loadable", backend.loadable()},
          {"usable", backend.usable()},
          {"reason", backend.reason()},
          {"devices", backend.devices()},
          {"tables", ListJson(backend.tables())},
          {"benchmarks", ListJson(backend.benchmarks())},
          {"version", backend.version()},
          {"description", std::move(description)}};
}

Json InventoryJson(const v1::Inventory& inventory) {
  Json nics = Json::array();
  for (const v1::Nic& nic : inventory.nics()) {
    nics.push_back({{"name", nic.name()},
                    {"driver", nic.driver()},
                    {"speed", nic.speed_bits_per_second() / 8},
                    {"state", nic.state()}});
  }
  Json backends = Json::array();
  for (const v1::BackendStatus& backend : inventory.backends()) {
    backends.push_back(BackendJson(backend));
  }
  return {{"hostname", inventory.hostname()},
          {"boot_id", inventory.boot_id()},
          {"kernel", inventory.kernel()},
          {"cpu_model", inventory.cpu_model()},
          {"cores", inventory.cores()},
          {"sockets", inventory.sockets()},
          {"numa_nodes", inventory.numa_nodes()},
          {"memory", inventory.memory_bytes()},
          {"governor", inventory.governor()},
          {"cpus", ListJson(inventory.cpus())},
          {"nics", std::move(nics)},
          {"backends", std::move(backends)},
          {"libraries", SortedText(inventory.libraries())}};
}

absl::string_view TypeName(ParamType type) {
  switch (type) {
    case ParamType::kInt:
      return "int";
    case ParamType::kBytes:
      return "bytes";
    case ParamType::kFloat:
      return "float";
    case ParamType::kBool:
      return "bool";
    case ParamType::kChoice:
      return "choice";
    case ParamType::kString:
      return "string";
    case ParamType::kDuration:
      return "duration";
  }
  return "";
}

absl::string_view RoleName(ParamRole role) {
  switch (role) {
    case ParamRole::kCase:
      return "case";
    case ParamRole::kMeasureIdentity:
      return "measure_identity";
    case ParamRole::kMeasure:
      return "measure";
  }
  return "";
}

Json ParamJson(const ParamSpec& spec) {
  const bool ranged = spec.type == ParamType::kInt || spec.type == ParamType::kBytes ||
                      spec.type == ParamType::kFloat || spec.type == ParamType::kDuration;
  Json choices = Json::array();
  for (const absl::string_view choice : spec.choices) choices.push_back(std::string(choice));
  return {{"name", std::string(spec.name)},
          {"flag", FlagName(spec.name)},
          {"type", std::string(TypeName(spec.type))},
          {"role", std::string(RoleName(spec.role))},
          {"default", std::string(spec.fallback)},
          {"min", ranged ? Json(spec.min) : Json(nullptr)},
          {"max", ranged ? Json(spec.max) : Json(nullptr)},
          {"choices", std::move(choices)},
          {"help", std::string(spec.help)}};
}

}  // namespace

Json NodeJson(const v1::Node& node) {
  return {{"name", node.name()},
          {"state", node.state()},
          {"reason", node.reason()},
          {"labels", SortedText(node.labels())},
          {"job_id", node.job_id()},
          {"last_seen", node.last_seen_ns()},
          {"agent_version", node.agent_version()},
          {"address", node.address()},
          {"cpus", ListJson(node.cpus())},
          {"oversubscribed", node.oversubscribed()},
          {"inventory", InventoryJson(node.inventory())}};
}

Json ServerJson(const v1::InfoResponse& info) {
  return {{"version", info.version()},
          {"revision", info.revision()},
          {"protocol", info.protocol()},
          {"started", info.started_ns()},
          {"listen", info.listen()},
          {"http", info.http()},
          {"insecure", info.insecure()},
          {"nodes_ready", info.nodes_ready()},
          {"nodes_total", info.nodes_total()},
          {"jobs_queued", info.jobs_queued()},
          {"jobs_running", info.jobs_running()},
          {"store", info.store()},
          {"warnings", ListJson(info.warnings())}};
}

Json BenchmarkJson(const BenchmarkSpec& bench) {
  Json params = Json::array();
  for (const ParamSpec* spec : AllParams(bench)) params.push_back(ParamJson(*spec));
  Json metrics = Json::array();
  for (const MetricSpec& metric : bench.metrics) {
    metrics.push_back({{"name", std::string(metric.name)},
                       {"unit", std::string(metric.unit)},
                       {"higher_is_better", metric.higher_is_better},
                       {"help", std::string(metric.help)}});
  }
  Json sets = Json::array();
  for (const ProblemSet& set : bench.sets) sets.push_back(std::string(set.name));
  Json examples = Json::array();
  for (const absl::string_view example : bench.examples) {
    examples.push_back("paramctl submit " + std::string(bench.id) + " " + std::string(example));
  }
  return {{"id", std::string(bench.id)},           {"version", bench.version},
          {"summary", std::string(bench.summary)}, {"params", std::move(params)},
          {"metrics", std::move(metrics)},         {"sets", std::move(sets)},
          {"examples", std::move(examples)}};
}

}  // namespace param
