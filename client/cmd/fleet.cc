// paramctl up and down: a coordinator and agents on this machine, in one state folder.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cmd/command.h"
#include "client/cmd/fleet_process.h"
#include "client/output/progress.h"
#include "proto/base/handle.h"
#include "proto/base/socket_folder.h"
#include "proto/base/status.h"
#include "proto/convert/json.h"

namespace param {
namespace {

constexpr int kServerPort = 7700;
constexpr int kHttpPort = 7701;
constexpr absl::Duration kServerDeadline = absl::Seconds(20);
constexpr absl::Duration kNodesDeadline = absl::Seconds(60);
constexpr absl::Duration kGrace = absl::Seconds(10);
constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr std::int64_t kMaxLocalNodes = 256;
constexpr int kTailLines = 10;

absl::StatusOr<std::string> FolderOf(const Context& context) {
  std::string folder = context.args.Text("state", StateFolder(context.io.env));
  if (folder.empty()) {
    return absl::InvalidArgumentError("neither --state nor $PARAM_STATE nor $HOME is set");
  }
  std::error_code error;
  folder = std::filesystem::absolute(folder, error).lexically_normal().string();
  if (error) return absl::InvalidArgumentError(absl::StrCat("--state: ", error.message()));
  if (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return folder;
}

bool IsPortFree(int port) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

std::string LocalAddress(int wanted) {
  return absl::StrCat("127.0.0.1:", IsPortFree(wanted) ? wanted : 0);
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  // Written by another process: without its line end it may be half of it.
  if (!std::getline(file, line) || file.eof()) return "";
  return std::string(absl::StripAsciiWhitespace(line));
}

// Brings a fleet up; what was started is stopped again unless Keep() was called.
class Starter {
 public:
  Starter(Context& context, std::string folder, int nodes)
      : context_(context),
        folder_(std::move(folder)),
        progress_(context.io.err, context.io.err_facts, context.quiet, context.io.clock) {
    record_.nodes = nodes;
  }
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;
  ~Starter() {
    if (kept_) return;
    StopAll(record_.processes, kGrace);
    std::remove(absl::StrCat(folder_, "/fleet.json").c_str());
    std::remove(absl::StrCat(folder_, "/", kAddressFile).c_str());
  }

  absl::Status Run() {
    PARAM_RETURN_IF_ERROR(MakeFolders());
    PARAM_RETURN_IF_ERROR(StartServer());
    for (int i = 1; i <= record_.nodes; ++i) PARAM_RETURN_IF_ERROR(StartAgent(i));
    PARAM_RETURN_IF_ERROR(WaitForNodes());
    PARAM_RETURN_IF_ERROR(
        ReplaceFile(absl::StrCat(folder_, "/", kAddressFile), absl::StrCat(record_.listen, "\n")));
    kept_ = true;
    return absl::OkStatus();
  }

  const FleetRecord& record() const { return record_; }

 private:
  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  std::string LogPath(const std::string& name) const {
    return absl::StrCat(folder_, "/log/", name, ".log");
  }

  absl::Status MakeFolders() {
    for (const char* name : {"log", "server"}) {
      std::error_code error;
      std::filesystem::create_directories(Path(name), error);
      if (error) {
        return absl::InternalError(absl::StrCat("cannot make ", Path(name), ": ", error.message()));
      }
    }
    // What an earlier coordinator left must not be taken for this one's.
    for (const char* name : {"server/listen", "server/http", "server.addr"}) {
      std::remove(Path(name).c_str());
    }
    return absl::OkStatus();
  }

  absl::Status Start(const std::string& name, const std::vector<std::string>& argv) {
    // What an earlier fleet wrote is kept beside, so that the end of the log is of this one.
    const std::string log = LogPath(name);
    std::rename(log.c_str(), absl::StrCat(log, ".old").c_str());
    PARAM_ASSIGN_OR_RETURN(FleetProcess process, StartDetached(name, argv, folder_, log));
    record_.processes.push_back(std::move(process));
    // At once: if we are killed, `down` still finds it.
    return WriteFleet(folder_, record_);
  }

  absl::Status StartServer() {
    progress_.Show("starting the coordinator");
    PARAM_RETURN_IF_ERROR(Start(
        "server",
        {absl::StrCat(context_.io.program_folder, "/param-server"), "--listen",
         LocalAddress(kServerPort), "--http", LocalAddress(kHttpPort), "--state", Path("server")}));
    PARAM_RETURN_IF_ERROR(Wait(kServerDeadline, "the coordinator did not come up", [this] {
      record_.listen = FirstLine(Path("server/listen"));
      record_.http = FirstLine(Path("server/http"));
      return !record_.listen.empty() && !record_.http.empty();
    }));
    return WriteFleet(folder_, record_);
  }

  absl::Status StartAgent(int index) {
    const std::string name = absl::StrCat("n", index);
    const std::string state = Path(absl::StrCat("agent-", name));
    std::error_code error;
    std::filesystem::create_directories(state, error);
    return Start(name, {absl::StrCat(context_.io.program_folder, "/param-agent"), "--server",
                        record_.listen, "--name", name, "--state", state, "--http", "127.0.0.1:0"});
  }

  absl::Status WaitForNodes() {
    Connection connection({record_.listen, "paramctl up"}, context_.io.connection);
    std::set<std::string> there;
    absl::Status status = Wait(kNodesDeadline, "", [&] {
      const auto nodes = connection.ListNodes(v1::ListNodesRequest());
      there.clear();
      if (nodes.ok()) {
        for (const v1::Node& node : nodes->nodes()) {
          if (IsOurs(node.name()) && node.state() != "lost") there.insert(node.name());
        }
      }
      progress_.Show("waiting for the nodes",
                     absl::StrCat(there.size(), " of ", record_.nodes, " ready"));
      return there.size() == static_cast<std::size_t>(record_.nodes);
    });
    if (status.ok() || !absl::IsDeadlineExceeded(status)) return status;
    for (const FleetProcess& process : record_.processes) {
      if (process.name != "server" && there.count(process.name) == 0) {
        return absl::DeadlineExceededError(
            WithLog(absl::StrCat("node ", process.name, " is not ready after ",
                                 absl::FormatDuration(kNodesDeadline)),
                    process.name));
      }
    }
    return status;
  }

  bool IsOurs(const std::string& node) const {
    return std::any_of(record_.processes.begin(), record_.processes.end(),
                       [&node](const FleetProcess& process) { return process.name == node; });
  }

  std::string WithLog(const std::string& what, const std::string& name) {
    const std::string tail = LogTail(LogPath(name), kTailLines);
    progress_.Clear();
    context_.io.err << "last lines of " << LogPath(name) << ":\n"
                    << (tail.empty() ? "  (empty)\n" : tail);
    return absl::StrCat(what, "; its log is ", LogPath(name));
  }

  // Polls `ready`; ends early when a process died or on Ctrl-C.
  absl::Status Wait(absl::Duration limit, const std::string& what,
                    const std::function<bool()>& ready) {
    const absl::Time deadline = absl::Now() + limit;
    while (!ready()) {
      for (const FleetProcess& process : record_.processes) {
        if (IsRunning(process)) continue;
        return absl::InternalError(
            WithLog(absl::StrCat(process.name == "server" ? "the coordinator"
                                                          : absl::StrCat("agent ", process.name),
                                 " ended at once"),
                    process.name));
      }
      if (context_.io.interrupts.Raised()) return absl::AbortedError("interrupted");
      if (absl::Now() >= deadline) {
        return absl::DeadlineExceededError(
            what.empty() ? what
                         : WithLog(absl::StrCat(what, " within ", absl::FormatDuration(limit)),
                                   record_.processes.back().name));
      }
      absl::SleepFor(kPoll);
    }
    return absl::OkStatus();
  }

  Context& context_;
  const std::string folder_;
  Progress progress_;
  FleetRecord record_;
  bool kept_ = false;
};

void PrintUp(Context& context, const std::string& folder, const FleetRecord& record) {
  Table table;
  table.columns = {{"process", "PROCESS"}, {"pid", "PID", "", Align::kRight}, {"log", "LOG"}};
  for (const FleetProcess& process : record.processes) {
    table.rows.push_back({{process.name},
                          {std::int64_t{process.pid}},
                          {absl::StrCat(folder, "/log/", process.name, ".log")}});
  }
  if (context.format == Format::kJson || context.format == Format::kJsonl) {
    Json processes = Json::array();
    for (const FleetProcess& process : record.processes) {
      processes.push_back({{"name", process.name}, {"pid", process.pid}});
    }
    const Json document = {{"listen", record.listen},
                           {"http", record.http},
                           {"state", folder},
                           {"nodes", record.nodes},
                           {"processes", std::move(processes)}};
    context.io.out << (context.format == Format::kJson ? JsonText(document) : JsonLine(document));
    return;
  }
  if (!context.is_text()) {
    PrintTable(context, table, "processes");
    return;
  }
  context.io.out << "coordinator at " << record.listen << ", metrics at http://" << record.http
                 << "/metrics, " << record.nodes << (record.nodes == 1 ? " node" : " nodes")
                 << " ready\nstate and logs in " << folder << "\n";
  if (context.format == Format::kWide) PrintTable(context, table, "processes");
  const bool is_default = folder == StateFolder(context.io.env);
  const std::string at = is_default ? "" : absl::StrCat(" --state ", folder);
  Hint(context,
       absl::StrCat("run something: paramctl",
                    is_default ? "" : absl::StrCat(" --server ", record.listen),
                    " submit gemm --nodes ", record.nodes, "\nstop it:       paramctl down", at));
}

// Which of the recorded processes still run.
std::vector<std::string> DeadNames(const FleetRecord& record) {
  std::vector<std::string> dead;
  for (const FleetProcess& process : record.processes) {
    if (!IsRunning(process)) dead.push_back(process.name);
  }
  return dead;
}

// A fleet that is up already: kOk when it is the one asked for.
ExitCode ReportRunning(Context& context, const std::string& folder, const FleetRecord& record,
                       const std::vector<std::string>& dead, int nodes) {
  const std::string down = absl::StrCat("; run \"paramctl down --state ", folder, "\" first");
  if (!dead.empty()) {
    return Fail(context, absl::FailedPreconditionError(absl::StrCat(
                             "the fleet in ", folder, " is damaged: ", absl::StrJoin(dead, ", "),
                             " ended", down)));
  }
  if (record.nodes != nodes) {
    return Fail(context, absl::FailedPreconditionError(absl::StrCat("a fleet of ", record.nodes,
                                                                    " nodes is up in ", folder,
                                                                    ", not of ", nodes, down)));
  }
  Hint(context, "already up");
  PrintUp(context, folder, record);
  return ExitCode::kOk;
}

ExitCode RunUp(Context& context) {
  const absl::StatusOr<std::int64_t> nodes = context.args.Int("nodes", 1, 1, kMaxLocalNodes);
  if (!nodes.ok()) return Fail(context, nodes.status());
  const absl::StatusOr<std::string> folder = FolderOf(context);
  if (!folder.ok()) return Fail(context, folder.status());
  std::error_code error;
  std::filesystem::create_directories(*folder, error);
  const absl::StatusOr<FolderLock> lock = FolderLock::Take(*folder);
  if (!lock.ok()) return Fail(context, lock.status());
  const absl::StatusOr<FleetRecord> record = ReadFleet(*folder);
  if (!record.ok() && !absl::IsNotFound(record.status())) return Fail(context, record.status());
  if (record.ok()) {
    const std::vector<std::string> dead = DeadNames(*record);
    // All gone, for example after a reboot: nothing to stop.
    if (dead.size() < record->processes.size()) {
      return ReportRunning(context, *folder, *record, dead, static_cast<int>(*nodes));
    }
  }
  context.io.interrupts.Arm();
  FleetRecord started;
  {
    Starter starter(context, *folder, static_cast<int>(*nodes));
    const absl::Status status = starter.Run();
    if (!status.ok()) {
      Hint(context, "stopping what was started");
      return Fail(context, absl::InternalError(status.message()));
    }
    started = starter.record();
  }
  PrintUp(context, *folder, started);
  return ExitCode::kOk;
}

ExitCode RunDown(Context& context) {
  const absl::StatusOr<std::string> folder = FolderOf(context);
  if (!folder.ok()) return Fail(context, folder.status());
  const absl::StatusOr<FleetRecord> record = ReadFleet(*folder);
  if (absl::IsNotFound(record.status())) {
    Hint(context, absl::StrCat("not running: no fleet in ", *folder));
    return ExitCode::kOk;
  }
  if (!record.ok()) return Fail(context, record.status());
  const absl::StatusOr<FolderLock> lock = FolderLock::Take(*folder);
  if (!lock.ok()) return Fail(context, lock.status());
  // Agents first: the coordinator then knows how its jobs ended.
  std::vector<FleetProcess> agents, server;
  std::size_t running = 0;
  for (const FleetProcess& process : record->processes) {
    (process.name == "server" ? server : agents).push_back(process);
    if (IsRunning(process)) ++running;
  }
  std::vector<std::string> killed = StopAll(agents, kGrace);
  for (std::string& name : StopAll(server, kGrace)) killed.push_back(std::move(name));
  RemoveDeadSocketFolders(SocketRoot());  // an agent that was killed left its own
  std::remove(absl::StrCat(*folder, "/fleet.json").c_str());
  std::remove(absl::StrCat(*folder, "/", kAddressFile).c_str());
  if (!killed.empty()) {
    Hint(context, absl::StrCat("did not end within ", absl::FormatDuration(kGrace),
                               " and had to be killed: ", absl::StrJoin(killed, ", ")));
  }
  Hint(context, running == 0 ? absl::StrCat("not running: no process of the fleet in ", *folder)
                             : absl::StrCat("stopped ", running, " processes; results stay in ",
                                            *folder, "/server"));
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> FleetCommands() {
  const Flag state = {.name = "state",
                      .value = "DIR",
                      .help =
                          "the folder of the fleet (default: $PARAM_STATE, else "
                          "$XDG_STATE_HOME/param, else ~/.local/state/param)"};
  Command up;
  up.path = {"up"};
  up.summary = "Start a coordinator and agents on this machine";
  up.description =
      "Needs no root. Returns when all nodes are ready; the processes go on without the terminal. "
      "Ports are 7700 and 7701 if these are free, else others; later commands find them.";
  up.examples = {"paramctl up --nodes 4", "paramctl up --nodes 2 --state /tmp/fleet"};
  up.flags = {{.name = "nodes", .value = "N", .help = "how many agents (default: 1)"}, state};
  up.run = RunUp;
  Command down;
  down.path = {"down"};
  down.summary = "Stop what \"paramctl up\" started";
  down.description = "Results stay. Does nothing when nothing runs.";
  down.examples = {"paramctl down", "paramctl down --state /tmp/fleet"};
  down.flags = {state};
  down.run = RunDown;
  return {up, down};
}

}  // namespace param
