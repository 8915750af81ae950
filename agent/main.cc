// param-agent: one per node. Flags to objects to the event loop; the only file that knows all
// parts.

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent.h"
#include "agent/metrics/agent_metrics.h"
#include "agent/process/backend_list.h"
#include "agent/process/backend_prober.h"
#include "agent/process/children.h"
#include "agent/process/direct_launcher.h"
#include "agent/process/disk_spool.h"
#include "agent/process/inventory.h"
#include "agent/process/mpirun_launcher.h"
#include "agent/process/reactor.h"
#include "agent/process/run_file.h"
#include "agent/process/state_dir.h"
#include "agent/process/worker_env.h"
#include "agent/rpc/grpc_uplink.h"
#include "proto/base/clock.h"
#include "proto/base/random.h"
#include "proto/base/socket_folder.h"
#include "proto/base/status.h"
#include "proto/base/version.h"
#include "proto/catalog/spec.h"
#include "proto/daemon/http_endpoint.h"
#include "proto/daemon/log_sink.h"
#include "proto/daemon/process_stats.h"
#include "proto/daemon/shutdown.h"

namespace param::agent {
namespace {

constexpr absl::string_view kMemoryRoot = "/dev/shm";  // for what ranks of one node share

struct Flags {
  std::string server = "127.0.0.1:7700";
  std::string name;
  std::string http = "127.0.0.1:7702";
  std::string state;
  std::vector<std::string> labels;
  std::vector<std::string> backend_dirs;
  std::string backends;
  std::string mpi_bin;
  std::uint64_t spool_limit = std::uint64_t{1} << 30;
  std::uint64_t file_limit = std::uint64_t{1} << 30;
  std::string log_level = "info";
  std::string log_format = "text";
};

constexpr char kDescription[] =
    "param-agent: runs benchmarks on this node for a coordinator\n\n"
    "  param-agent --server head:7700\n"
    "  param-agent --server head:7700 --name n1 --label rack=7 --backends -cuda\n";

void AddFlags(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", absl::StrCat("param-agent ", Version(), " (", Revision(), ", ",
                                                 Compiler(), ")"));
  app.add_option("--server", flags.server, "address of the coordinator")
      ->envname("PARAM_SERVER")
      ->capture_default_str();
  app.add_option("--name", flags.name, "name of this node (default: the host's name)");
  app.add_option("--http", flags.http, "address for /metrics, /healthz, /readyz; port 0 = any")
      ->capture_default_str();
  app.add_option("--state", flags.state, "folder for results not yet delivered, and the lock");
  app.add_option("--label", flags.labels, "KEY=VALUE of this node, for selectors; repeatable");
  app.add_option("--backend-dir", flags.backend_dirs,
                 "folder of backends, before the installed ones; repeatable");
  app.add_option("--backends", flags.backends, "+NAME,... only these; -NAME,... not these");
  app.add_option("--mpi-bin", flags.mpi_bin,
                 "folder of mpirun and orted, for backends that they start (default: the PATH)");
  app.add_option("--spool-limit", flags.spool_limit,
                 "most that results not yet delivered may take on disk, as 512M or 1G")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("1G");
  app.add_option("--worker-file-limit", flags.file_limit,
                 "largest file that a worker may write, as 512M or 1G; 0: no limit")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("1G");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format, "text or json")->capture_default_str();
}

absl::StatusOr<std::map<std::string, std::string>> ParseLabels(
    const std::vector<std::string>& given) {
  std::map<std::string, std::string> labels;
  for (const std::string& each : given) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--label \"", each, "\" is not KEY=VALUE"));
    }
    labels[each.substr(0, equals)] = each.substr(equals + 1);
  }
  return labels;
}

absl::Status CheckName(const std::string& name) {
  const bool is_good =
      !name.empty() && name.size() <= 253 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
          std::string::npos;
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--name \"", name, "\" may hold letters, digits, dot, - and _ only"));
}

// The agent's program with everything it owns; members in order of construction.
class Program final : private AgentObserver {
 public:
  Program(Flags flags, const Log& log) : flags_(std::move(flags)), log_(log) {}

  // Runs until a signal says stop. An error: it could not start.
  absl::Status Run(ShutdownSignals& signals) {
    PARAM_RETURN_IF_ERROR(Prepare());
    PARAM_RETURN_IF_ERROR(MakeAgent());
    PARAM_RETURN_IF_ERROR(reactor_->Add(signals.fd(), EPOLLIN,
                                        [this, &signals](std::uint32_t) { OnSignal(signals); }),
                          "signals");
    reactor_->SetHook([this] { return AfterRound(); });
    backends_->ProbeAll([this] { OnProbed(); });
    reactor_->Run();
    reactor_->Remove(signals.fd());
    http_.reset();  // its callbacks reach into this
    log_.Info("stopped");
    return failure_;
  }

 private:
  absl::Status Prepare() {
    machine_ = ThisMachine();
    if (flags_.name.empty()) flags_.name = machine_.hostname;
    PARAM_RETURN_IF_ERROR(CheckName(flags_.name));
    PARAM_ASSIGN_OR_RETURN(labels_, ParseLabels(flags_.labels));
    PARAM_ASSIGN_OR_RETURN(filter_, ParseBackendFilter(flags_.backends));
    if (flags_.state.empty()) flags_.state = DefaultStateDir(flags_.name);
    PARAM_ASSIGN_OR_RETURN(state_, StateDir::Open(flags_.state));
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return absl::InternalError(absl::StrCat("/proc/self/exe: ", error.message()));
    worker_path_ = (self.parent_path() / "param-worker").string();
    if (::access(worker_path_.c_str(), X_OK) != 0) {
      return ErrnoStatus(errno, absl::StrCat("the worker program ", worker_path_));
    }
    flags_.backend_dirs.push_back(
        (self.parent_path().parent_path() / "lib/param/backends").string());
    return absl::OkStatus();
  }

  absl::Status MakeAgent() {
    inventory_ = ReadInventory(machine_);
    PARAM_ASSIGN_OR_RETURN(reactor_, Reactor::Make(clock_));
    run_file_.emplace(state_->File("run.json"), inventory_.boot_id);
    run_file_->ClearLeftovers(log_);
    // Of other agents of this user, too: one that is never started again clears up nothing.
    for (const std::string& root : {SocketRoot(), std::string(kMemoryRoot)}) {
      if (const int removed = RemoveDeadSocketFolders(root); removed > 0) {
        log_.Info("removed folders of dead agents", {F("in", root), F("folders", removed)});
      }
    }
    children_.emplace(*reactor_, clock_, log_);
    const std::vector<std::string> env = WorkerEnvironment(OwnEnvironment());
    prober_.emplace(BackendProber::Options{.worker_path = worker_path_, .env = env}, *reactor_,
                    *children_);
    backends_.emplace(
        flags_.backend_dirs, filter_,
        BackendList::Parts{.reactor = reactor_.get(), .prober = &*prober_, .log = &log_});
    backends_->SetChanged([this] { agent_->SetInventory(FullInventory()); });
    PARAM_ASSIGN_OR_RETURN(
        spool_, DiskSpool::Open({.folder = state_->File("spool"),
                                 .limit_bytes = static_cast<std::int64_t>(flags_.spool_limit)},
                                log_));
    std::error_code ignored;  // of attempts that ended with an earlier agent
    std::filesystem::remove_all(state_->File("scratch"), ignored);
    MakeLaunchers(env);
    uplink_.emplace(GrpcUplink::Options{.server = flags_.server},
                    GrpcUplink::Parts{.log = &log_, .post = [this](std::function<void()> what) {
                                        reactor_->Post(std::move(what));
                                      }});
    agent_.emplace(AgentOptions{.node = flags_.name,
                                .version = std::string(Version()),
                                .instance = MakeToken(random_),
                                .labels = labels_,
                                .session = {},
                                .limits = {}},
                   inventory_,
                   Agent::Parts{.clock = &clock_,
                                .log = &log_,
                                .random = &random_,
                                .uplink = &*uplink_,
                                .launchers = {{"direct", &*direct_}, {"mpirun", &*mpirun_}},
                                .spool = spool_.get(),
                                .backends = &*backends_,
                                .observer = this});
    direct_->SetEvents(&*agent_);
    mpirun_->SetEvents(&*agent_);
    uplink_->SetEvents(&*agent_);
    return absl::OkStatus();
  }

  void MakeLaunchers(const std::vector<std::string>& env) {
    const DirectLauncherOptions ranks = {
        .worker_path = worker_path_,
        .worker_args = {},
        .env = env,
        .socket_root = SocketRoot(),
        .scratch_root = state_->File("scratch"),
        .file_limit_bytes = static_cast<std::int64_t>(flags_.file_limit)};
    direct_.emplace(ranks, DirectLauncher::Parts{.reactor = reactor_.get(),
                                                 .children = &*children_,
                                                 .run_file = &*run_file_,
                                                 .log = &log_});
    mpirun_.emplace(MpirunLauncherOptions{.node = flags_.name,
                                          .ranks = ranks,
                                          .mpi_folder = flags_.mpi_bin,
                                          .memory_root = std::string(kMemoryRoot)},
                    MpirunLauncher::Parts{.reactor = reactor_.get(),
                                          .children = &*children_,
                                          .run_file = &*run_file_,
                                          .random = &random_,
                                          .log = &log_});
  }

  Inventory FullInventory() const {
    Inventory inventory = inventory_;
    inventory.backends = backends_->statuses();
    inventory.libraries = backends_->libraries();
    return inventory;
  }

  void OnProbed() {
    if (is_stopping_) return;
    if (const absl::Status started = StartHttp(); !started.ok()) {
      failure_ = started;
      reactor_->Quit();
      return;
    }
    agent_->SetInventory(FullInventory());
    log_.Info("agent starts", {F("node", flags_.name), F("server", flags_.server),
                               F("http", http_->address()), F("state", state_->path())});
    agent_->Start();
  }

  absl::Status StartHttp() {
    std::vector<std::string> benchmarks;
    for (const BenchmarkSpec* const bench : AllBenchmarks()) benchmarks.emplace_back(bench->id);
    std::map<std::string, std::string> accelerator = backends_->accelerator();
    metrics_.emplace(AgentFacts{.node = flags_.name,
                                .cpu_model = inventory_.cpu_model,
                                .gpu_model = accelerator["name"],
                                .driver = accelerator["driver"]},
                     benchmarks);
    PARAM_ASSIGN_OR_RETURN(
        http_,
        HttpEndpoint::Start({.address = flags_.http,
                             .collect =
                                 [this] {
                                   std::vector<prometheus::MetricFamily> all = metrics_->Collect();
                                   for (prometheus::MetricFamily& family : ProcessMetrics()) {
                                     all.push_back(std::move(family));
                                   }
                                   return all;
                                 },
                             .ready =
                                 [this] {
                                   return is_connected_ ? absl::OkStatus()
                                                        : absl::UnavailableError(absl::StrCat(
                                                              "not connected to ", flags_.server));
                                 }}),
        "--http");
    return state_->WriteFile("http", absl::StrCat(http_->address(), "\n"));
  }

  void OnSignal(ShutdownSignals& signals) {
    const absl::StatusOr<int> signal = signals.Wait();
    if (!signal.ok()) return;
    log_.Info("signal", {F("name", sigabbrev_np(*signal)), F("ranks", agent_->running_ranks())});
    if (std::exchange(is_stopping_, true)) {
      reactor_->Quit();  // asked twice: what still runs is killed on the way out
    } else {
      agent_->Stop("agent stopping");
    }
  }

  // After each round of the event loop: events to disk, then what is due, then what is shown.
  absl::Duration AfterRound() {
    if (const absl::Status flushed = spool_->Flush(); !flushed.ok()) {
      log_.Error("results may not survive a power cut", {F("reason", flushed.message())});
    }
    agent_->Tick();
    is_connected_ = agent_->is_connected();
    if (metrics_.has_value()) {
      metrics_->SetConnected(is_connected_);
      metrics_->SetSpool(spool_->events(), spool_->bytes());
      metrics_->SetWorkers(agent_->running_ranks());
    }
    if (agent_->is_stopped()) reactor_->Quit();
    return agent_->due();
  }

  // AgentObserver
  void AttemptEnded(absl::string_view benchmark, absl::string_view outcome,
                    absl::Duration took) override {
    metrics_->AttemptEnded(benchmark, outcome, absl::ToDoubleSeconds(took));
  }
  void Connecting(absl::string_view reason) override { metrics_->Reconnected(reason); }

  Flags flags_;
  const Log& log_;
  const SystemClock clock_;
  SystemRandom random_;
  InventorySource machine_;
  std::map<std::string, std::string> labels_;
  BackendFilter filter_;
  std::optional<StateDir> state_;
  std::string worker_path_;
  Inventory inventory_;  // without backends
  std::unique_ptr<Reactor> reactor_;
  std::optional<RunFile> run_file_;
  std::optional<Children> children_;
  std::optional<BackendProber> prober_;
  std::optional<BackendList> backends_;
  std::unique_ptr<DiskSpool> spool_;
  std::optional<DirectLauncher> direct_;
  std::optional<MpirunLauncher> mpirun_;
  std::optional<GrpcUplink> uplink_;
  std::optional<AgentMetrics> metrics_;
  std::optional<Agent> agent_;
  std::unique_ptr<HttpEndpoint> http_;
  std::atomic<bool> is_connected_ = false;
  bool is_stopping_ = false;
  absl::Status failure_;
};

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(kDescription, "param-agent");
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::StatusOr<Level> level = ParseLevel(flags.log_level);
  const absl::StatusOr<LogFormat> format = ParseLogFormat(flags.log_format);
  for (const absl::Status& status : {level.status(), format.status()}) {
    if (status.ok()) continue;
    std::fprintf(stderr, "param-agent: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a spool that may not grow is an error, not the end
  absl::StatusOr<ShutdownSignals> signals = ShutdownSignals::Block();
  absl::Status status = signals.status();
  const Log log = StderrLog("param-agent", *level, *format);
  if (status.ok()) {
    Program program(std::move(flags), log);
    status = program.Run(*signals);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "param-agent: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace param::agent

int main(int argc, char** argv) {
  try {
    return param::agent::Main(argc, argv);
  } catch (const std::exception& error) {  // of libraries
    std::fprintf(stderr, "param-agent: %s\n", error.what());
    return 1;
  }
}
