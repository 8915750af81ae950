// param-server: flags to options to objects to serving; the only file that knows all parts.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/clock.h"
#include "proto/base/random.h"
#include "proto/base/status.h"
#include "proto/base/text.h"
#include "proto/base/version.h"
#include "proto/catalog/spec.h"
#include "proto/daemon/http_endpoint.h"
#include "proto/daemon/log_sink.h"
#include "proto/daemon/process_stats.h"
#include "proto/daemon/shutdown.h"
#include "server/core/coordinator.h"
#include "server/metrics/metrics.h"
#include "server/rpc/grpc_server.h"
#include "server/store/sqlite_store.h"

namespace param {
namespace {

struct Flags {
  std::string listen = "127.0.0.1:7700";
  std::string insecure_listen;
  std::string http = "127.0.0.1:7701";
  std::string state;
  std::string lease = "15s";
  std::string heartbeat = "3s";
  std::string log_level = "info";
  std::string log_format = "text";
};

std::string DefaultState() {
  if (geteuid() == 0) return "/var/lib/param-server";
  if (const char* xdg = std::getenv("XDG_STATE_HOME"); xdg != nullptr && *xdg != '\0') {
    return absl::StrCat(xdg, "/param-server");
  }
  const char* home = std::getenv("HOME");
  return absl::StrCat(home == nullptr ? "." : home, "/.local/state/param-server");
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--listen", flags.listen,
                 "Address for agents and clients; loopback only, port 0: any free")
      ->capture_default_str();
  app.add_option("--insecure-listen", flags.insecure_listen,
                 "Like --listen, beyond loopback: anybody who reaches it can run jobs");
  app.add_option("--http", flags.http, "Address of /metrics, /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--state", flags.state, "Folder of the database and of the bound addresses")
      ->default_str(DefaultState());
  app.add_option("--lease", flags.lease, "How long an agent may be silent before it is lost")
      ->capture_default_str();
  app.add_option("--heartbeat", flags.heartbeat, "How often agents report")->capture_default_str();
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->capture_default_str();
  app.add_option("--log-format", flags.log_format, "text or json")->capture_default_str();
  app.set_version_flag("--version",
                       absl::StrCat("param-server ", Version(), " (", Revision(), ")"));
}

// By the address itself: a name may resolve to anything, save "localhost".
bool IsLoopback(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost") return true;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

struct Settings {
  std::string listen;
  FleetFacts facts;
  CoordinatorOptions options;
};

absl::StatusOr<Settings> Check(const Flags& flags) {
  Settings settings;
  settings.listen = flags.listen;
  if (!flags.insecure_listen.empty()) {
    settings.listen = flags.insecure_listen;
    settings.facts.insecure = !IsLoopback(flags.insecure_listen);
  } else if (!IsLoopback(flags.listen)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", flags.listen,
                     " is not a loopback address, and there is no TLS yet; if the network ",
                     "is trusted, say --insecure-listen ", flags.listen));
  }
  if (settings.listen.rfind(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", settings.listen, "\" is not an address; write HOST:PORT"));
  }
  if (settings.facts.insecure) {
    settings.facts.warnings.push_back(absl::StrCat(
        "listens on ", settings.listen, " without TLS: anybody who reaches it can run jobs"));
  }
  if (!IsLoopback(flags.http)) {
    settings.facts.warnings.push_back(
        absl::StrCat("serves metrics on ", flags.http, " to anybody who reaches it"));
  }
  PARAM_ASSIGN_OR_RETURN(settings.options.lease, ParseDuration(flags.lease), "--lease");
  PARAM_ASSIGN_OR_RETURN(settings.options.heartbeat, ParseDuration(flags.heartbeat), "--heartbeat");
  if (settings.options.heartbeat < absl::Milliseconds(100) ||
      settings.options.lease < 2 * settings.options.heartbeat) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lease ", flags.lease, " with --heartbeat ", flags.heartbeat,
                     ": the heartbeat is 100ms at least, the lease two heartbeats at least"));
  }
  return settings;
}

// Written whole or not at all: who waits for the file never reads half of it.
absl::Status WriteFact(const std::string& folder, const std::string& name,
                       const std::string& text) {
  const std::string path = absl::StrCat(folder, "/", name), next = absl::StrCat(path, ".new");
  {
    std::ofstream out(next, std::ios::trunc);
    out << text << "\n";
    if (!out.flush()) return absl::InternalError(absl::StrCat("cannot write ", next));
  }
  if (std::rename(next.c_str(), path.c_str()) != 0) return ErrnoStatus(errno, path);
  return absl::OkStatus();
}

std::int64_t FileSize(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

absl::Status Serve(const Flags& flags, Settings settings, const Log& log,
                   ShutdownSignals& signals) {
  std::error_code error;
  std::filesystem::create_directories(flags.state, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--state ", flags.state, ": cannot make the folder: ", error.message()));
  }
  SystemClock clock;
  SystemRandom random;
  std::vector<std::string> benchmarks;
  for (const BenchmarkSpec* bench : AllBenchmarks()) benchmarks.emplace_back(bench->id);
  ServerMetrics metrics(benchmarks, clock);

  const std::string database = absl::StrCat(flags.state, "/param.db");
  SqliteStoreOptions store_options;
  const SlowWatch slow(clock, log);
  store_options.on_commit = [&metrics, &slow](double seconds) {
    metrics.DatabaseCommitted(seconds);
    slow.Took("a commit of the store", absl::Seconds(seconds));
  };
  store_options.on_fault = [&metrics](absl::string_view kind) { metrics.DatabaseFault(kind); };
  PARAM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteStore> store,
                         SqliteStore::Open(database, std::move(store_options)));
  settings.facts.store = database;
  settings.facts.started_ns = absl::ToUnixNanos(clock.Wall());

  Coordinator* ticked = nullptr;
  Loop loop(
      absl::Milliseconds(100), [&ticked] { ticked->Tick(); }, &slow);
  ReaderPool readers(2, 1024);
  Coordinator coordinator(
      settings.options, clock, random, *store,
      [&loop](std::function<void()> closure) { loop.Post(std::move(closure)); }, metrics, log);
  ticked = &coordinator;
  // Whatever way this ends: what the store still answers finds the loop and the coordinator alive.
  struct Stopping {
    Loop& loop;
    ReaderPool& readers;
    std::unique_ptr<SqliteStore>& store;
    ~Stopping() {
      readers.Stop();
      loop.Stop();
      store.reset();
    }
  } stopping{loop, readers, store};
  std::atomic<bool> serving = false;
  PARAM_RETURN_IF_ERROR(coordinator.Recover());

  HttpEndpointOptions http;
  http.address = flags.http;
  http.collect = [&metrics, &database] {
    metrics.DatabaseSizes(FileSize(database), FileSize(database + "-wal"));
    std::vector<prometheus::MetricFamily> families = metrics.Collect();
    for (prometheus::MetricFamily& each : ProcessMetrics()) families.push_back(std::move(each));
    return families;
  };
  http.ready = [&serving] {
    return serving ? absl::OkStatus() : absl::UnavailableError("starting or stopping");
  };
  PARAM_ASSIGN_OR_RETURN(std::unique_ptr<HttpEndpoint> endpoint,
                         HttpEndpoint::Start(std::move(http)));
  settings.facts.http = endpoint->address();

  const RpcContext context{
      coordinator,
      *store,
      loop,
      readers,
      clock,
      log,
      [&metrics](absl::string_view method, absl::string_view code, double seconds) {
        metrics.RpcHandled(method, code, seconds);
      }};
  loop.Start();
  PARAM_ASSIGN_OR_RETURN(const std::unique_ptr<GrpcServer> server,
                         GrpcServer::Start(context, settings.listen, settings.facts));
  serving = true;
  PARAM_RETURN_IF_ERROR(WriteFact(flags.state, "http", settings.facts.http));
  PARAM_RETURN_IF_ERROR(WriteFact(flags.state, "listen", settings.facts.listen));
  for (const std::string& warning : settings.facts.warnings) log.Warn(warning);
  log.Info("ready", {F("listen", settings.facts.listen), F("http", settings.facts.http),
                     F("state", flags.state), F("version", Version()), F("revision", Revision())});

  const auto signal = signals.Wait();
  log.Info("stopping", {F("signal", signal.ok() ? *signal : 0)});
  serving = false;
  server->Shutdown(absl::Seconds(1));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"param-server: the coordinator. Agents and paramctl connect to it."};
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {  // CLI11 reports by exception
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (flags.state.empty()) flags.state = DefaultState();
  auto signals = ShutdownSignals::Block();
  const auto level = ParseLevel(flags.log_level);
  const auto format = ParseLogFormat(flags.log_format);
  auto settings = Check(flags);
  for (const absl::Status& status :
       {signals.status(), level.status(), format.status(), settings.status()}) {
    if (status.ok()) continue;
    std::cerr << "param-server: " << status.message() << "\n";
    return 2;
  }
  const Log log = StderrLog("param-server", *level, *format);
  const absl::Status status = Serve(flags, *std::move(settings), log, *signals);
  if (status.ok()) return 0;
  log.Error(status.message());
  return 1;
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) { return param::Main(argc, argv); }
