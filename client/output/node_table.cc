#include "client/output/node_table.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/output/job_table.h"
#include "proto/base/text.h"

namespace param {
namespace {

Column Left(std::string key, std::string title, bool wide_only = false) {
  return {std::move(key), std::move(title), "", Align::kLeft, Scale::kPlain, wide_only};
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

Style StyleOfNode(const std::string& state) {
  if (state == "ready") return Style::kGood;
  if (state == "lost") return Style::kBad;
  return state == "drained" || state == "draining" ? Style::kWarn : Style::kPlain;
}

std::string PairsText(const google::protobuf::Map<std::string, std::string>& map,
                      absl::string_view separator) {
  const std::map<std::string, std::string> sorted(map.begin(), map.end());
  return absl::StrJoin(sorted, separator, absl::PairFormatter("="));
}

std::string UsableBackends(const v1::Node& node) {
  std::vector<std::string> names;
  for (const v1::BackendStatus& backend : node.inventory().backends()) {
    if (!backend.usable()) continue;
    names.push_back(backend.devices() > 1 ? absl::StrCat(backend.name(), "x", backend.devices())
                                          : backend.name());
  }
  return absl::StrJoin(names, ",");
}

// "0-3,8": numbers in ascending order, runs joined.
template <typename Numbers>
std::string RangesText(const Numbers& numbers) {
  std::string out;
  for (int i = 0; i < numbers.size();) {
    int last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&out, out.empty() ? "" : ",", numbers[i]);
    if (last > i) absl::StrAppend(&out, "-", numbers[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace

Table NodesTable(const std::vector<v1::Node>& nodes, absl::Time now) {
  Table table;
  table.columns = {Left("name", "NAME"),
                   Left("state", "STATE"),
                   Left("job_id", "JOB"),
                   Left("backends", "BACKENDS"),
                   {"cores", "CORES", "", Align::kRight, Scale::kPlain, false},
                   {"memory", "MEMORY", "B", Align::kRight, Scale::kBytes, false},
                   Left("labels", "LABELS"),
                   Left("cpu_model", "CPU", true),
                   Left("hostname", "HOST", true),
                   Left("kernel", "KERNEL", true),
                   Left("agent_version", "VERSION", true),
                   {"last_seen", "SEEN", "", Align::kRight, Scale::kPlain, false},
                   Left("reason", "REASON")};
  for (const v1::Node& node : nodes) {
    const v1::Inventory& inventory = node.inventory();
    const int cores = node.cpus_size() > 0 ? node.cpus_size() : inventory.cores();
    std::string reason = node.reason();
    if (node.oversubscribed()) {
      absl::StrAppend(&reason, reason.empty() ? "" : "; ", "oversubscribed: shares its cores");
    }
    table.rows.push_back({{node.name()},
                          {node.state(), StyleOfNode(node.state())},
                          {OrDash(node.job_id())},
                          {OrDash(UsableBackends(node))},
                          {std::int64_t{cores}},
                          {std::int64_t{inventory.memory_bytes()}},
                          {OrDash(PairsText(node.labels(), ","))},
                          {OrDash(inventory.cpu_model())},
                          {OrDash(inventory.hostname())},
                          {OrDash(inventory.kernel())},
                          {OrDash(node.agent_version())},
                          {AgeText(node.last_seen_ns(), now)},
                          {OrDash(reason)}});
  }
  return table;
}

Table BackendsTable(const v1::Node& node) {
  Table table;
  table.columns = {Left("backend", "BACKEND"),
                   Left("installed", "INSTALLED"),
                   Left("loadable", "LOADABLE"),
                   Left("usable", "USABLE"),
                   {"devices", "DEVICES", "", Align::kRight, Scale::kPlain, false},
                   Left("tables", "TABLES"),
                   Left("version", "VERSION"),
                   Left("reason", "REASON")};
  for (const v1::BackendStatus& backend : node.inventory().backends()) {
    const auto state = [](bool good) { return Cell(good, good ? Style::kGood : Style::kBad); };
    table.rows.push_back({{backend.name()},
                          state(backend.installed()),
                          state(backend.loadable()),
                          state(backend.usable()),
                          {std::int64_t{backend.devices()}},
                          {OrDash(absl::StrJoin(backend.tables(), ","))},
                          {OrDash(backend.version())},
                          {OrDash(backend.reason())}});
  }
  return table;
}

Table NodeFactsTable(const v1::Node& node, absl::Time now) {
  const v1::Inventory& inventory = node.inventory();
  Table table;
  table.columns = {Left("fact", ""), Left("value", "")};
  const auto add = [&table](const char* fact, std::string value, Style style = Style::kPlain) {
    if (!value.empty()) table.rows.push_back({{std::string(fact)}, {std::move(value), style}});
  };
  add("node", node.name());
  add("state", node.state(), StyleOfNode(node.state()));
  add("reason", node.reason());
  add("job", node.job_id());
  add("labels", PairsText(node.labels(), " "));
  add("host", inventory.hostname());
  add("address", node.address());
  add("agent", node.agent_version());
  add("seen", absl::StrCat(AgeText(node.last_seen_ns(), now), " ago"));
  add("cpu", inventory.cpu_model());
  add("cores", absl::StrCat(inventory.cores(), " usable; sockets: ", inventory.sockets(),
                            "; NUMA nodes: ", inventory.numa_nodes()));
  add("share",
      absl::StrCat(RangesText(node.cpus()),
                   node.oversubscribed() ? " (oversubscribed: shared with other agents)" : ""),
      node.oversubscribed() ? Style::kWarn : Style::kPlain);
  add("memory", FormatBytes(inventory.memory_bytes()));
  add("governor", inventory.governor());
  add("kernel", inventory.kernel());
  add("libraries", PairsText(inventory.libraries(), " "));
  return table;
}

Table NicsTable(const v1::Node& node) {
  Table table;
  table.columns = {Left("nic", "NIC"),
                   Left("driver", "DRIVER"),
                   {"speed", "SPEED", "bit/s", Align::kRight, Scale::kSi, false},
                   Left("state", "STATE")};
  for (const v1::Nic& nic : node.inventory().nics()) {
    table.rows.push_back(
        {{nic.name()},
         {OrDash(nic.driver())},
         nic.speed_bits_per_second() > 0 ? Cell(std::int64_t{nic.speed_bits_per_second()}) : Cell(),
         {OrDash(nic.state())}});
  }
  return table;
}

}  // namespace param
