#include "client/cmd/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/output/job_report.h"
#include "proto/base/text.h"
#include "proto/base/version.h"

namespace param {
namespace {

constexpr std::uint64_t kLittleDisk = std::uint64_t{1} << 30;
constexpr double kClockWarning = 1.0;  // s between this machine and the agents' last sign of life
constexpr std::size_t kNamesShown = 5;

enum class Verdict { kOk, kWarning, kBroken };

// Collects rows. One row per check; what holds for many nodes is one row that names them.
class Checks {
 public:
  Checks() {
    table_.columns = {{"check", "CHECK"},
                      {"verdict", "VERDICT"},
                      {"finding", "FINDING"},
                      {"advice", "WHAT TO DO"}};
  }
  void Add(const std::string& check, Verdict verdict, const std::string& finding,
           const std::string& advice = "") {
    const char* word = verdict == Verdict::kOk        ? "ok"
                       : verdict == Verdict::kWarning ? "warning"
                                                      : "broken";
    const Style style = verdict == Verdict::kOk        ? Style::kGood
                        : verdict == Verdict::kWarning ? Style::kWarn
                                                       : Style::kBad;
    table_.rows.push_back(
        {{check}, {std::string(word), style}, {finding}, advice.empty() ? Cell() : Cell(advice)});
    broken_ |= verdict == Verdict::kBroken;
  }
  const Table& table() const { return table_; }
  bool broken() const { return broken_; }

 private:
  Table table_;
  bool broken_ = false;
};

void CheckPrograms(const Context& context, Checks& checks) {
  std::vector<std::string> missing;
  for (const char* name : {"param-server", "param-agent", "param-worker"}) {
    const std::string path = absl::StrCat(context.io.program_folder, "/", name);
    if (access(path.c_str(), X_OK) != 0) missing.emplace_back(name);
  }
  if (missing.empty()) {
    checks.Add("programs", Verdict::kOk,
               absl::StrCat("all beside paramctl in ", context.io.program_folder));
  } else {
    checks.Add("programs", Verdict::kWarning,
               absl::StrCat(absl::StrJoin(missing, ", "), " not in ", context.io.program_folder),
               "install them there to use \"paramctl up\"");
  }
}

void CheckDisk(const Context& context, Checks& checks) {
  std::filesystem::path folder = context.args.Text("state", StateFolder(context.io.env));
  if (folder.empty()) return;
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error) {
    checks.Add("disk", Verdict::kWarning, absl::StrCat(folder.string(), ": ", error.message()));
    return;
  }
  const std::string finding = absl::StrCat(FormatBytes(static_cast<std::int64_t>(space.available)),
                                           " free at ", folder.string());
  if (space.available < kLittleDisk) {
    checks.Add("disk", Verdict::kWarning, finding, "make room: results and spools need it");
  } else {
    checks.Add("disk", Verdict::kOk, finding);
  }
}

void CheckServer(const Context& context, const v1::InfoResponse& info, Checks& checks) {
  checks.Add("coordinator", Verdict::kOk,
             absl::StrCat("answers at ", context.connection->address().target, ", ",
                          info.jobs_running(), " jobs running, ", info.jobs_queued(), " queued"));
  const std::string versions =
      absl::StrCat("paramctl ", Version(), " (", Revision(), "), coordinator ", info.version(),
                   " (", info.revision(), ")");
  if (info.protocol() != kProtocolVersion) {
    checks.Add("versions", Verdict::kBroken,
               absl::StrCat(versions, ": protocols ", kProtocolVersion, " and ", info.protocol()),
               "install the same version everywhere");
  } else if (info.revision() != Revision() || info.version() != Version()) {
    checks.Add("versions", Verdict::kWarning, versions, "install the same version everywhere");
  } else {
    checks.Add("versions", Verdict::kOk, versions);
  }
  if (info.insecure()) {
    checks.Add("security", Verdict::kWarning,
               absl::StrCat(info.listen(), " is open beyond this machine, without TLS"),
               "listen on loopback, or on a network that you trust only");
  } else {
    checks.Add("security", Verdict::kOk, "listens on loopback only");
  }
  for (const std::string& warning : info.warnings()) {
    checks.Add("coordinator", Verdict::kWarning, warning);
  }
}

using Names = std::vector<std::string>;

void CheckNodeStates(const std::vector<v1::Node>& nodes, Checks& checks) {
  Names lost, drained, foreign;
  for (const v1::Node& node : nodes) {
    if (node.state() == "lost") lost.push_back(node.name());
    if (node.state() == "drained" || node.state() == "draining") drained.push_back(node.name());
    if (!node.agent_version().empty() && node.agent_version() != Version() &&
        node.state() != "lost") {
      foreign.push_back(absl::StrCat(node.name(), "=", node.agent_version()));
    }
  }
  if (nodes.empty()) {
    checks.Add("nodes", Verdict::kBroken, "no node ever registered",
               "start agents: param-agent --server ADDR");
    return;
  }
  const std::size_t here = nodes.size() - lost.size();
  checks.Add("nodes", here == 0 ? Verdict::kBroken : Verdict::kOk,
             absl::StrCat(here, " of ", nodes.size(), " connected"));
  if (!lost.empty()) {
    checks.Add("nodes", Verdict::kBroken, absl::StrCat("lost: ", NamesText(lost, kNamesShown)),
               "look at param-agent's log there");
  }
  if (!drained.empty()) {
    checks.Add("nodes", Verdict::kWarning,
               absl::StrCat("drained: ", NamesText(drained, kNamesShown)),
               "paramctl node resume NODE");
  }
  if (!foreign.empty()) {
    checks.Add("versions", Verdict::kWarning,
               absl::StrCat("agents of another version: ", NamesText(foreign, kNamesShown)),
               "install the same version everywhere");
  }
}

// The coordinator stamps an agent's last sign of life with its own clock, seconds ago at most.
void CheckClock(const Context& context, const std::vector<v1::Node>& nodes, Checks& checks) {
  std::int64_t newest = 0;
  for (const v1::Node& node : nodes) newest = std::max(newest, node.last_seen_ns());
  if (newest == 0) return;
  const double ahead = absl::ToDoubleSeconds(absl::FromUnixNanos(newest) - context.io.clock.Wall());
  const bool connected = std::any_of(nodes.begin(), nodes.end(),
                                     [](const v1::Node& node) { return node.state() != "lost"; });
  const double behind_limit = 60;  // heartbeats are far more frequent
  if (ahead > kClockWarning || (connected && -ahead > behind_limit)) {
    checks.Add("clock", Verdict::kWarning,
               absl::StrCat("the coordinator's clock is ", FormatSi(std::fabs(ahead), "s"),
                            ahead > 0 ? " ahead of" : " behind", " this machine"),
               "run a time service on both");
  } else {
    checks.Add("clock", Verdict::kOk, "agrees with the coordinator's");
  }
}

void CheckBackends(const std::vector<v1::Node>& nodes, Checks& checks) {
  std::map<std::string, Names> usable;
  std::map<std::string, Names> unusable;  // by backend and reason
  for (const v1::Node& node : nodes) {
    if (node.state() == "lost") continue;
    bool any = false;
    for (const v1::BackendStatus& backend : node.inventory().backends()) {
      any |= backend.usable() && backend.name() != "fake";
      if (backend.usable()) {
        usable[backend.name()].push_back(node.name());
      } else {
        const char* state = !backend.installed()  ? "not installed"
                            : !backend.loadable() ? "installed, not loadable"
                                                  : "installed, not usable";
        unusable[absl::StrCat(backend.name(), " ", state, ": ", backend.reason())].push_back(
            node.name());
      }
    }
    if (!any) {
      checks.Add("backends", Verdict::kBroken, absl::StrCat(node.name(), " can use none"),
                 absl::StrCat("paramctl node show ", node.name()));
    }
  }
  for (const auto& [name, names] : usable) {
    checks.Add("backends", Verdict::kOk,
               absl::StrCat(name, " usable on ", NamesText(names, kNamesShown)));
  }
  for (const auto& [what, names] : unusable) {
    checks.Add("backends", Verdict::kWarning,
               absl::StrCat(what, " (", NamesText(names, kNamesShown), ")"),
               "expected where there is no such device");
  }
}

void CheckMeasuring(const std::vector<v1::Node>& nodes, Checks& checks) {
  Names slow_governor, oversubscribed;
  for (const v1::Node& node : nodes) {
    if (node.state() == "lost") continue;
    const std::string& governor = node.inventory().governor();
    if (!governor.empty() && governor != "performance" && governor != "unknown") {
      slow_governor.push_back(absl::StrCat(node.name(), "=", governor));
    }
    if (node.oversubscribed()) oversubscribed.push_back(node.name());
  }
  if (!slow_governor.empty()) {
    checks.Add("governor", Verdict::kWarning, NamesText(slow_governor, kNamesShown),
               "cpupower frequency-set -g performance");
  }
  if (!oversubscribed.empty()) {
    checks.Add("cores", Verdict::kWarning,
               absl::StrCat("oversubscribed: ", NamesText(oversubscribed, kNamesShown)),
               "fewer agents on that machine, or take times as a lower bound");
  }
  if (slow_governor.empty() && oversubscribed.empty()) {
    checks.Add("measuring", Verdict::kOk, "no node shares cores or saves power");
  }
}

}  // namespace

ExitCode RunDoctor(Context& context) {
  Checks checks;
  CheckPrograms(context, checks);
  CheckDisk(context, checks);
  const absl::StatusOr<v1::InfoResponse> info = context.connection->Info();
  if (!info.ok()) {
    const std::string message(info.status().message());
    checks.Add("coordinator", Verdict::kBroken, message.substr(0, message.find(';')),
               "paramctl up, or --server ADDR");
  } else {
    CheckServer(context, *info, checks);
    const absl::StatusOr<v1::ListNodesResponse> listed =
        context.connection->ListNodes(v1::ListNodesRequest());
    if (!listed.ok()) {
      checks.Add("nodes", Verdict::kBroken, std::string(listed.status().message()));
    } else {
      const std::vector<v1::Node> nodes(listed->nodes().begin(), listed->nodes().end());
      CheckNodeStates(nodes, checks);
      CheckClock(context, nodes, checks);
      CheckBackends(nodes, checks);
      CheckMeasuring(nodes, checks);
    }
  }
  PrintTable(context, checks.table(), "checks");
  return checks.broken() ? ExitCode::kFailed : ExitCode::kOk;
}

}  // namespace param
