#include "agent/process/mpirun_launcher.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/core/mpirun_command.h"
#include "agent/process/worker_env.h"
#include "proto/base/status.h"
#include "proto/line/launch.h"

namespace param::agent {
namespace {

constexpr absl::string_view kMpirun = "mpirun";
constexpr absl::string_view kOrted = "orted";
constexpr char kRankVariable[] = "OMPI_COMM_WORLD_RANK";
// Ids of helpers on their socket: ranks, then hosts.
constexpr int kFirstHostId = 1 << 24;
// When a launcher's program ends or lets go of a rank, whoever made it do so is given this long to
// say why: a rank that died elsewhere, a node that was lost.
constexpr absl::Duration kHold = absl::Seconds(1);
// From the attempt's failure to the end of the programs: workers leave by themselves before.
constexpr absl::Duration kAbortGrace = absl::Milliseconds(500);
// From the last rank's good end here to the end of the programs, which go by themselves when the
// last rank anywhere has ended.
constexpr absl::Duration kWindDown = absl::Seconds(30);

bool IsOfLibrary(absl::string_view entry) {
  return absl::StartsWith(entry, "OMPI_") || absl::StartsWith(entry, "PMIX_");
}

}  // namespace

MpirunLauncher::MpirunLauncher(MpirunLauncherOptions options, Parts parts)
    : options_(std::move(options)),
      parts_(parts),
      spawner_(options_.ranks, DirectLauncher::Parts{.reactor = parts.reactor,
                                                     .children = parts.children,
                                                     .run_file = parts.run_file,
                                                     .log = parts.log}) {
  spawner_.SetEvents(this);
}

MpirunLauncher::~MpirunLauncher() {
  for (const auto& [key, attempt] : attempts_) {
    // Best effort: the next start of an agent clears up.
    if (!attempt.memory.path.empty()) RemoveSocketFolder(attempt.memory.path);
  }
}

absl::StatusOr<Launched> MpirunLauncher::Start(const LaunchRequest& request) {
  const AttemptKey key = request.key;
  if (attempts_.contains(key)) return absl::AlreadyExistsError("attempt runs here already");
  PARAM_ASSIGN_OR_RETURN(Launched launched, spawner_.Open(request));
  Attempt& attempt = attempts_[key];
  attempt.plan = request.plan;
  for (const RankLaunch& rank : request.ranks) attempt.ranks[rank.rank].launch = rank;
  if (const absl::Status begun = Begin(key, attempt); !begun.ok()) {
    for (auto& [number, rank] : attempt.ranks) rank.state = RankState::kGone;
    Release(key);
    return begun;
  }
  for (const RankLaunch& rank : request.ranks) launched.pids[rank.rank] = 0;
  return launched;
}

absl::Status MpirunLauncher::Begin(const AttemptKey& key, Attempt& attempt) {
  for (const LaunchHost& host : attempt.plan.hosts) {
    if (host.node == options_.node) attempt.host = host.host;
  }
  if (attempt.host.empty()) {
    return absl::InternalError(
        absl::StrCat("the plan of the launch does not name node ", options_.node));
  }
  attempt.token = MakeToken(*parts_.random);
  PARAM_RETURN_IF_ERROR(Listen(key, attempt));
  if (attempt.ranks.size() > 1) {
    // Agents of one machine share a host name, by which the library would name its segments.
    PARAM_ASSIGN_OR_RETURN(attempt.memory, MakeSocketFolder(options_.memory_root));
    parts_.run_file->Add({}, attempt.memory.path);
  }
  return attempt.plan.hosts[0].host == attempt.host ? StartMpirun(key, attempt) : absl::OkStatus();
}

absl::Status MpirunLauncher::Listen(const AttemptKey& key, Attempt& attempt) {
  PARAM_ASSIGN_OR_RETURN(
      attempt.helpers,
      WorkerSocket::Listen(
          *parts_.reactor, *parts_.log, absl::StrCat(spawner_.Folder(key), "/l"),
          {.greeting = [this, key](pid_t, absl::string_view line) { return OnHelper(key, line); },
           .connected = [](int) {},
           .lines = [](int, const std::vector<std::string>&) {},
           .bad_stream = [](int, const absl::Status&) {},
           .closed = [this, key](int id) { OnHelperGone(key, id); }}));
  return absl::OkStatus();
}

absl::StatusOr<std::string> MpirunLauncher::FindProgram(absl::string_view name) const {
  std::vector<std::string> folders = {options_.mpi_folder};
  if (options_.mpi_folder.empty()) {
    folders = absl::StrSplit(Variable(options_.ranks.env, "PATH"), ':');
  }
  for (const std::string& folder : folders) {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!folder.empty() && folder[0] == '/' && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return absl::NotFoundError(absl::StrCat(
      name, " is not ",
      options_.mpi_folder.empty() ? "on the PATH of the agent"
                                  : absl::StrCat("in ", options_.mpi_folder, " (--mpi-bin)"),
      " of node ", options_.node, "; install Open MPI there"));
}

std::unique_ptr<WatchedProgram> MpirunLauncher::MakeProgram(const AttemptKey& key,
                                                            absl::string_view name) {
  return std::make_unique<WatchedProgram>(
      WatchedProgram::Parts{
          .reactor = parts_.reactor, .children = parts_.children, .run_file = parts_.run_file},
      WatchedProgram::Events{
          .line =
              [this, key, name](absl::string_view line) {
                // Of a harmless race between mpirun and what it starts.
                if (absl::StrContains(line, "Warning: setpgid(")) return false;
                const Attempt* const attempt = Find(key);
                if (attempt == nullptr || attempt->ranks.empty()) return true;
                const auto& [number, rank] = *attempt->ranks.begin();
                if (rank.state != RankState::kGone) {
                  events_->OnOutput({key, number}, absl::StrCat(name, ": ", line));
                }
                return true;
              },
          .exited = [this, key, name](int status) { OnProgramExit(key, name, status); }});
}

// What mpirun and orted see. The helpers that they start find their way back by it.
std::vector<std::string> MpirunLauncher::ProgramEnvironment(const AttemptKey& key,
                                                            const Attempt& attempt) const {
  std::vector<std::string> env = options_.ranks.env;
  if (::geteuid() == 0) {
    SetVariable(&env, "OMPI_ALLOW_RUN_AS_ROOT=1");
    SetVariable(&env, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
  }
  const std::string folder = spawner_.Folder(key);
  SetVariable(&env, absl::StrCat("TMPDIR=", folder));
  env.push_back(absl::StrCat(line::kLaunchSocketVariable, "=", folder, "/l"));
  env.push_back(absl::StrCat(line::kLaunchTokenVariable, "=", attempt.token));
  env.push_back(absl::StrCat("PARAM_WORKER_ID=", ToString(key), "@", ::getpid()));
  return env;
}

// A program that dies with the agent, as a worker does.
Command MpirunLauncher::FollowCommand(const std::string& worker, const std::string& path,
                                      absl::string_view name,
                                      const std::vector<std::string>& args) {
  Command command{.path = worker, .args = {"--follow", path, std::string(name)}, .directory = "/"};
  command.args.insert(command.args.end(), args.begin(), args.end());
  return command;
}

absl::Status MpirunLauncher::StartMpirun(const AttemptKey& key, Attempt& attempt) {
  PARAM_ASSIGN_OR_RETURN(const std::string path, FindProgram(kMpirun));
  const std::string shim = absl::StrCat(spawner_.Folder(key), "/worker");
  std::error_code error;  // a path without spaces, which the worker's own may have
  std::filesystem::create_symlink(options_.ranks.worker_path, shim, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make ", shim));
  const std::string worker = std::filesystem::path(options_.ranks.worker_path).filename();
  Command command = FollowCommand(options_.ranks.worker_path, path, kMpirun,
                                  MpirunArgs(attempt.plan, {shim, "--launch-daemon"},
                                             {worker, "--launch-rank", kRankVariable}));
  command.env = ProgramEnvironment(key, attempt);
  // The command line says it all: what this node sets for its own ranks is not for all nodes.
  std::erase_if(command.env, [](const std::string& entry) {
    return IsOfLibrary(entry) && !absl::StartsWith(entry, "OMPI_ALLOW_RUN_AS_ROOT");
  });
  command.tag = absl::StrCat("PARAM_WORKER_ID=", ToString(key), "@", ::getpid());
  attempt.mpirun = MakeProgram(key, kMpirun);
  PARAM_RETURN_IF_ERROR(attempt.mpirun->Start(std::move(command)));
  parts_.log->Info("mpirun starts",
                   {F("attempt", ToString(key)), F("path", path),
                    F("hosts", attempt.plan.hosts.size()), F("interface", attempt.plan.interface)});
  return absl::OkStatus();
}

absl::Status MpirunLauncher::StartOrted(const StartDaemon& wanted, Attempt& attempt) {
  if (wanted.host != attempt.host || attempt.orted_args.has_value()) {
    return absl::PermissionDeniedError(
        absl::StrCat("orted refused: host ", wanted.host, ", on host ", attempt.host,
                     attempt.orted_args.has_value() ? ", a second time" : ""));
  }
  attempt.orted_args = wanted.args;
  if (attempt.aborting) return absl::CancelledError("the attempt ends");
  PARAM_ASSIGN_OR_RETURN(const std::vector<std::string> args,
                         OrtedArgs(wanted.args, attempt.plan, wanted.host));
  PARAM_ASSIGN_OR_RETURN(const std::string path, FindProgram(kOrted));
  Command command = FollowCommand(options_.ranks.worker_path, path, kOrted, args);
  command.env = ProgramEnvironment(wanted.key, attempt);
  // Ranks are looked up by name: each node has its own param-worker.
  const std::filesystem::path worker = options_.ranks.worker_path;
  SetVariable(&command.env, absl::StrCat("PATH=", worker.parent_path().string(), ":",
                                         Variable(command.env, "PATH")));
  command.tag = absl::StrCat("PARAM_WORKER_ID=", ToString(wanted.key), "@", ::getpid());
  attempt.orted = MakeProgram(wanted.key, kOrted);
  return attempt.orted->Start(std::move(command));
}

void MpirunLauncher::Start(const StartDaemon& wanted) {
  Attempt* const attempt = Find(wanted.key);
  if (attempt == nullptr) {
    events_->OnDaemonEnded({wanted.key, wanted.host, 1, "the attempt does not run here"});
    return;
  }
  if (wanted.host == attempt->host && attempt->orted_args == wanted.args) {  // said again
    if (attempt->orted_end.has_value()) events_->OnDaemonEnded(*attempt->orted_end);
    return;
  }
  const absl::Status started = StartOrted(wanted, *attempt);
  if (started.ok()) return;
  parts_.log->Warn("orted not started",
                   {F("attempt", ToString(wanted.key)), F("reason", started.message())});
  Fail(wanted.key, started);  // first: this node knows why
  DaemonEnded end{wanted.key, wanted.host, 1, std::string(started.message())};
  if (attempt->orted_args == wanted.args) {
    TellEnd(*attempt, std::move(end));
  } else {
    events_->OnDaemonEnded(end);  // of another one than this node's
  }
}

void MpirunLauncher::TellEnd(Attempt& attempt, DaemonEnded end) {
  attempt.orted_end = std::move(end);
  events_->OnDaemonEnded(*attempt.orted_end);
}

void MpirunLauncher::Ended(const DaemonEnded& ended) {
  Attempt* const attempt = Find(ended.key);
  if (attempt == nullptr) return;
  for (std::size_t i = 0; i < attempt->plan.hosts.size(); ++i) {
    const LaunchHost& host = attempt->plan.hosts[i];
    if (host.host != ended.host) continue;
    const line::LaunchEnd end{
        .exit_code = std::clamp(ended.exit_code, 0, 255),
        .signal = 0,
        .text = ended.cause.empty() ? "" : absl::StrCat("node ", host.node, ": ", ended.cause)};
    attempt->helpers->Send(kFirstHostId + static_cast<int>(i), line::Encode(end));
  }
}

// ---- helpers -----------------------------------------------------------------------------------

absl::StatusOr<int> MpirunLauncher::OnHelper(const AttemptKey& key, absl::string_view line) {
  Attempt* const attempt = Find(key);
  if (attempt == nullptr) return absl::NotFoundError("no such attempt");
  PARAM_ASSIGN_OR_RETURN(line::LaunchHello hello, line::DecodeLaunchHello(line));
  if (hello.token != attempt->token) return absl::PermissionDeniedError("a wrong token");
  if (attempt->aborting) return absl::CancelledError("the attempt ends");
  if (hello.rank < 0) return OnDaemonHelper(key, *attempt, hello.host, std::move(hello.args));
  Rank* const rank = Find(RankKey{key, hello.rank});
  if (rank == nullptr || rank->has_helper) {
    return absl::PermissionDeniedError(absl::StrCat(
        "rank ", hello.rank, rank == nullptr ? " is not on this node" : " runs already"));
  }
  rank->has_helper = true;
  if (const absl::Status spawned = SpawnRank(key, *attempt, *rank, hello.env); !spawned.ok()) {
    Finish(key, *rank, &spawned);
    return spawned;
  }
  return hello.rank;
}

absl::StatusOr<int> MpirunLauncher::OnDaemonHelper(const AttemptKey& key, Attempt& attempt,
                                                   const std::string& host,
                                                   std::vector<std::string> args) {
  const auto& hosts = attempt.plan.hosts;
  const auto found = std::find_if(hosts.begin(), hosts.end(),
                                  [&host](const LaunchHost& each) { return each.host == host; });
  if (found == hosts.end() || attempt.mpirun == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat("a daemon for host \"", host, "\""));
  }
  if (!attempt.asked_for.insert(host).second) {
    return absl::PermissionDeniedError(absl::StrCat("a second daemon for host ", host));
  }
  events_->OnDaemonWanted({key, host, std::move(args)});
  return kFirstHostId + static_cast<int>(found - hosts.begin());
}

absl::Status MpirunLauncher::SpawnRank(const AttemptKey& key, Attempt& attempt, Rank& rank,
                                       const std::vector<std::string>& helper_env) {
  std::vector<std::string> env;
  for (const std::string& entry : helper_env) {
    if (IsForRank(absl::string_view(entry).substr(0, entry.find('=')))) SetVariable(&env, entry);
  }
  if (!attempt.memory.path.empty()) {
    SetVariable(&env, absl::StrCat("OMPI_MCA_btl_vader_backing_directory=", attempt.memory.path));
  }
  PARAM_ASSIGN_OR_RETURN(const pid_t pid, spawner_.Spawn(key, rank.launch, env));
  rank.state = RankState::kRunning;
  events_->OnSpawned({key, rank.launch.rank}, pid);
  return absl::OkStatus();
}

void MpirunLauncher::OnHelperGone(const AttemptKey& key, int id) {
  Rank* const rank = Find(RankKey{key, id});
  if (rank == nullptr || rank->state != RankState::kRunning) return;
  rank->left_alone = true;
  // It may notice by itself, and say more than a signal would.
  parts_.reactor->After(kAbortGrace, [this, key, id] {
    const Rank* const left = Find(RankKey{key, id});
    if (left != nullptr && left->state == RankState::kRunning) spawner_.Signal({key, id}, SIGKILL);
  });
}

// ---- ends --------------------------------------------------------------------------------------

void MpirunLauncher::OnExit(const RankKey& key, int wait_status) {
  Attempt* const attempt = Find(key.key);
  Rank* const rank = Find(key);
  if (attempt == nullptr || rank == nullptr) return;
  rank->wait_status = wait_status;
  if (!rank->left_alone || attempt->aborting || wait_status == 0) {
    Finish(key.key, *rank, nullptr);
    return;
  }
  rank->state = RankState::kHeld;
  parts_.reactor->After(kHold, [this, key] {
    Rank* const held = Find(key);
    if (held == nullptr || held->state != RankState::kHeld) return;
    const absl::Status why = absl::UnavailableError(absl::StrCat(
        "mpirun ended this rank and did not say why; the worker ", ExitText(held->wait_status)));
    Finish(key.key, *held, &why);
  });
}

void MpirunLauncher::Finish(const AttemptKey& key, Rank& rank, const absl::Status* lost) {
  const int number = rank.launch.rank, status = rank.wait_status;
  rank.state = RankState::kGone;
  if (lost != nullptr) {
    events_->OnLost({key, number}, *lost);
  } else {
    events_->OnExit({key, number}, status);
  }
  Attempt* const attempt = Find(key);
  if (attempt == nullptr) return;
  const line::LaunchEnd end{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1,
                            .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                            .text = ""};
  attempt->helpers->Send(number, line::Encode(end));
  const bool all_gone =
      std::all_of(attempt->ranks.begin(), attempt->ranks.end(),
                  [](const auto& each) { return each.second.state == RankState::kGone; });
  if (all_gone && !attempt->aborting) {
    parts_.reactor->After(kWindDown, [this, key] { EndPrograms(key); });
  }
}

void MpirunLauncher::OnProgramExit(const AttemptKey& key, absl::string_view name, int wait_status) {
  Attempt* const attempt = Find(key);
  if (attempt == nullptr) return;
  const bool is_orted = name == kOrted;
  const WatchedProgram& program = is_orted ? *attempt->orted : *attempt->mpirun;
  std::string cause = absl::StrCat(name, " ", ExitText(wait_status));
  if (const std::string words = program.LastWords(); !words.empty()) {
    absl::StrAppend(&cause, ": ", words);
  }
  parts_.log->Info("program ended", {F("attempt", ToString(key)), F("what", cause)});
  const bool is_good = wait_status == 0;
  if (is_orted) {
    const int code =
        WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    TellEnd(*attempt, {key, attempt->host, code, is_good ? "" : cause});
  }
  const absl::Status why = absl::AbortedError(cause);
  if (WIFSIGNALED(wait_status)) {
    Fail(key, why);
  } else {
    FailLater(key, why);
  }
}

// A program that left before its ranks is a failure, unless another one explains it.
void MpirunLauncher::FailLater(const AttemptKey& key, const absl::Status& why) {
  parts_.reactor->After(kHold, [this, key, why] { Fail(key, why); });
}

void MpirunLauncher::Fail(const AttemptKey& key, const absl::Status& why) {
  const Attempt* const attempt = Find(key);
  if (attempt == nullptr || attempt->aborting) return;
  const bool is_over =
      std::all_of(attempt->ranks.begin(), attempt->ranks.end(),
                  [](const auto& each) { return each.second.state == RankState::kGone; });
  if (!is_over) events_->OnLauncherFailed(key, why);
}

void MpirunLauncher::Abort(const AttemptKey& key) {
  Attempt* const attempt = Find(key);
  if (attempt == nullptr || std::exchange(attempt->aborting, true)) return;
  // Not from within a call of the one who is told.
  parts_.reactor->Post([this, key] { DropWaiting(key); });
  parts_.reactor->After(kAbortGrace, [this, key] { EndPrograms(key); });
}

void MpirunLauncher::DropWaiting(const AttemptKey& key) {
  Attempt* const attempt = Find(key);
  if (attempt == nullptr) return;
  const absl::Status why = absl::CancelledError("mpirun had not started this rank");
  for (auto& [number, rank] : attempt->ranks) {
    if (rank.state == RankState::kWaiting) Finish(key, rank, &why);
    if (rank.state == RankState::kHeld) Finish(key, rank, nullptr);
  }
}

void MpirunLauncher::EndPrograms(const AttemptKey& key) {
  Attempt* const attempt = Find(key);
  if (attempt == nullptr) return;
  if (attempt->mpirun != nullptr) attempt->mpirun->End();
  if (attempt->orted != nullptr) attempt->orted->End();
}

// ---- the rest of Launcher, and the ranks' own events -------------------------------------------

void MpirunLauncher::Send(const RankKey& rank, std::string line) {
  spawner_.Send(rank, std::move(line));
}

void MpirunLauncher::Signal(const RankKey& rank, int signal) { spawner_.Signal(rank, signal); }

bool MpirunLauncher::IsGone(const AttemptKey& key) const {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return true;
  const Attempt& attempt = found->second;
  const auto runs = [](const std::unique_ptr<WatchedProgram>& program) {
    return program != nullptr && program->is_running();
  };
  return !runs(attempt.mpirun) && !runs(attempt.orted) &&
         std::all_of(attempt.ranks.begin(), attempt.ranks.end(),
                     [](const auto& each) { return each.second.state == RankState::kGone; });
}

void MpirunLauncher::Release(const AttemptKey& key) {
  const auto found = attempts_.find(key);
  if (found == attempts_.end()) return;
  if (const std::string& memory = found->second.memory.path; !memory.empty()) {
    RemoveSocketFolder(memory);  // best effort: the next start of an agent clears up
    parts_.run_file->RemoveFolder(memory);
  }
  attempts_.erase(found);
  spawner_.Release(key);
}

absl::StatusOr<int> MpirunLauncher::OnGreeting(const AttemptKey& key, pid_t peer,
                                               absl::string_view line) {
  return events_->OnGreeting(key, peer, line);
}

void MpirunLauncher::OnLines(const RankKey& rank, const std::vector<std::string>& lines) {
  events_->OnLines(rank, lines);
}

void MpirunLauncher::OnBadStream(const RankKey& rank, const absl::Status& why) {
  events_->OnBadStream(rank, why);
}

void MpirunLauncher::OnOutput(const RankKey& rank, absl::string_view line) {
  events_->OnOutput(rank, line);
}

MpirunLauncher::Attempt* MpirunLauncher::Find(const AttemptKey& key) {
  const auto found = attempts_.find(key);
  return found == attempts_.end() ? nullptr : &found->second;
}

MpirunLauncher::Rank* MpirunLauncher::Find(const RankKey& key) {
  Attempt* const attempt = Find(key.key);
  if (attempt == nullptr) return nullptr;
  const auto found = attempt->ranks.find(key.rank);
  return found == attempt->ranks.end() ? nullptr : &found->second;
}

}  // namespace param::agent
