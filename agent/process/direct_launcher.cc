#include "agent/process/direct_launcher.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "agent/process/worker_env.h"
#include "proto/base/socket_folder.h"
#include "proto/base/status.h"

namespace param::agent {
namespace {

constexpr int kLastReads = 32;

}  // namespace

DirectLauncher::DirectLauncher(DirectLauncherOptions options, Parts parts)
    : options_(std::move(options)), parts_(parts) {}

DirectLauncher::~DirectLauncher() {
  for (auto& [key, attempt] : attempts_) Clear(attempt);
}

absl::Status DirectLauncher::MakeFolder(const LaunchRequest& request, Attempt* attempt,
                                        std::string* script) {
  PARAM_ASSIGN_OR_RETURN(SocketFolder folder, MakeSocketFolder(options_.socket_root));
  attempt->folder = std::move(folder.path);
  attempt->lock = std::move(folder.lock);
  // A launcher with a plan tells the ranks itself.
  if (request.plan.hosts.empty()) attempt->interface = request.plan.interface;
  attempt->scratch =
      options_.scratch_root.empty()
          ? absl::StrCat(attempt->folder, "/scratch")
          : absl::StrCat(options_.scratch_root, "/", request.key.job_id, "-", request.key.attempt);
  std::error_code error;
  std::filesystem::create_directories(attempt->scratch, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make ", attempt->scratch));
  if (request.fake_script.empty()) return absl::OkStatus();
  *script = absl::StrCat(attempt->folder, "/script");
  std::ofstream file(*script, std::ios::trunc | std::ios::binary);
  file << request.fake_script;
  file.close();
  return file ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("write ", *script));
}

absl::StatusOr<Launched> DirectLauncher::Open(const LaunchRequest& request) {
  const AttemptKey key = request.key;
  if (attempts_.contains(key)) return absl::AlreadyExistsError("attempt runs here already");
  Launched launched;
  Attempt made;
  absl::Status ready = MakeFolder(request, &made, &launched.fake_script_path);
  if (ready.ok()) {
    WorkerEvents* const events = events_;
    absl::StatusOr<std::unique_ptr<WorkerSocket>> socket =
        WorkerSocket::Listen(*parts_.reactor, *parts_.log, absl::StrCat(made.folder, "/s"),
                             {.greeting =
                                  [events, key](pid_t peer, absl::string_view line) {
                                    return events->OnGreeting(key, peer, line);
                                  },
                              .connected =
                                  [events, key](int rank) {
                                    events->OnConnected({key, rank});
                                  },
                              .lines =
                                  [events, key](int rank, const std::vector<std::string>& lines) {
                                    events->OnLines({key, rank}, lines);
                                  },
                              .bad_stream =
                                  [events, key](int rank, const absl::Status& why) {
                                    events->OnBadStream({key, rank}, why);
                                  }});
    ready = socket.status();
    if (socket.ok()) made.socket = *std::move(socket);
  }
  if (!ready.ok()) {
    Clear(made);
    return ready;
  }
  attempts_.emplace(key, std::move(made));
  return launched;
}

absl::StatusOr<Launched> DirectLauncher::Start(const LaunchRequest& request) {
  PARAM_ASSIGN_OR_RETURN(Launched launched, Open(request));
  Attempt& attempt = attempts_.at(request.key);
  std::vector<pid_t> pids;
  for (const RankLaunch& rank : request.ranks) {
    const absl::StatusOr<pid_t> pid = SpawnRank(request.key, attempt, rank, {});
    if (pid.ok()) {
      launched.pids[rank.rank] = *pid;
      pids.push_back(*pid);
    } else {
      launched.failed[rank.rank] = pid.status();
    }
  }
  parts_.run_file->Add(pids, attempt.folder);
  return launched;
}

absl::StatusOr<pid_t> DirectLauncher::Spawn(const AttemptKey& key, const RankLaunch& rank,
                                            const std::vector<std::string>& env) {
  const auto attempt = attempts_.find(key);
  if (attempt == attempts_.end()) return absl::NotFoundError("the attempt does not run here");
  PARAM_ASSIGN_OR_RETURN(const pid_t pid, SpawnRank(key, attempt->second, rank, env));
  parts_.run_file->Add({pid}, attempt->second.folder);
  return pid;
}

std::string DirectLauncher::Folder(const AttemptKey& key) const {
  const auto attempt = attempts_.find(key);
  return attempt == attempts_.end() ? "" : attempt->second.folder;
}

void DirectLauncher::Start(const StartDaemon& wanted) {
  events_->OnDaemonEnded(
      {wanted.key, wanted.host, 1, "the attempt was not started by a launcher with daemons"});
}

absl::StatusOr<pid_t> DirectLauncher::SpawnRank(const AttemptKey& key, Attempt& attempt,
                                                const RankLaunch& launch,
                                                const std::vector<std::string>& env) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  // The token is taken out of the environment by the worker; this stays, and goes to what it
  // starts.
  const std::string tag =
      absl::StrCat("PARAM_WORKER_ID=", ToString(key), "/", launch.rank, "@", ::getpid());
  Command command{.path = options_.worker_path,
                  .args = options_.worker_args,
                  .env = options_.env,
                  .output_fd = write_end.get(),
                  .error_fd = -1,
                  .directory = attempt.scratch,
                  .tag = tag};
  if (!attempt.interface.empty()) {
    SetVariable(&command.env, absl::StrCat("PARAM_INTERFACE=", attempt.interface));
  }
  for (const std::string& entry : env) SetVariable(&command.env, entry);
  command.env.push_back(absl::StrCat("PARAM_WORKER_SOCKET=", attempt.folder, "/s"));
  command.env.push_back(absl::StrCat("PARAM_WORKER_TOKEN=", launch.token));
  command.env.push_back(tag);
  command.env.push_back(absl::StrCat("PARAM_WORKER_FILE_LIMIT=", options_.file_limit_bytes));
  const RankKey rank_key{key, launch.rank};
  PARAM_ASSIGN_OR_RETURN(
      const pid_t pid,
      parts_.children->Spawn(command, [this, rank_key](int status) { OnExit(rank_key, status); }));
  Rank& rank = attempt.ranks[launch.rank];
  rank.pid = pid;
  rank.output = std::move(read_end);
  const absl::Status watched =
      parts_.reactor->Add(rank.output.get(), EPOLLIN, [this, rank_key](std::uint32_t) {
        if (Rank* const found = Find(rank_key)) ReadOutput(rank_key, *found);
      });
  if (!watched.ok()) parts_.log->Error("output not watched", {F("reason", watched.message())});
  return pid;
}

bool DirectLauncher::ReadOutput(const RankKey& key, Rank& rank) {
  if (!rank.output) return false;
  std::string piece(64 << 10, '\0');
  const ssize_t got = ::read(rank.output.get(), piece.data(), piece.size());
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  const auto deliver = [this, &key](absl::string_view line) { events_->OnOutput(key, line); };
  if (got <= 0) {
    rank.splitter.Finish(deliver);
    parts_.reactor->Remove(rank.output.get());
    rank.output.reset();
    return false;
  }
  rank.splitter.Feed(absl::string_view(piece.data(), static_cast<std::size_t>(got)), deliver);
  return true;
}

void DirectLauncher::OnExit(const RankKey& key, int wait_status) {
  const auto attempt = attempts_.find(key.key);
  Rank* const rank = Find(key);
  if (rank == nullptr) return;
  parts_.run_file->Remove(rank->pid);
  attempt->second.socket->Finish(key.rank);
  // A pipe holds less than that.
  for (int i = 0; i < kLastReads && ReadOutput(key, *rank); ++i) {
  }
  if (rank->output) {
    // Open still: something that survived SIGKILL holds the other end.
    parts_.reactor->Remove(rank->output.get());
    rank->output.reset();
  }
  rank->pid = 0;
  events_->OnExit(key, wait_status);
}

DirectLauncher::Rank* DirectLauncher::Find(const RankKey& key) {
  const auto attempt = attempts_.find(key.key);
  if (attempt == attempts_.end()) return nullptr;
  const auto rank = attempt->second.ranks.find(key.rank);
  return rank == attempt->second.ranks.end() ? nullptr : &rank->second;
}

void DirectLauncher::Send(const RankKey& rank, std::string line) {
  const auto attempt = attempts_.find(rank.key);
  if (attempt != attempts_.end()) attempt->second.socket->Send(rank.rank, line);
}

void DirectLauncher::Signal(const RankKey& key, int signal) {
  if (const Rank* const rank = Find(key); rank != nullptr && rank->pid != 0) {
    parts_.children->Signal(rank->pid, signal);
  }
}

void DirectLauncher::Clear(Attempt& attempt) {
  for (auto& [number, rank] : attempt.ranks) {
    if (rank.output) parts_.reactor->Remove(rank.output.get());
    rank.output.reset();
  }
  attempt.socket.reset();
  if (attempt.folder.empty()) return;
  std::error_code ignored;  // best effort: the next start of an agent clears up
  std::filesystem::remove_all(attempt.scratch, ignored);
  RemoveSocketFolder(attempt.folder);
  attempt.lock.reset();
  parts_.run_file->RemoveFolder(attempt.folder);
}

void DirectLauncher::Release(const AttemptKey& key) {
  const auto attempt = attempts_.find(key);
  if (attempt == attempts_.end()) return;
  Clear(attempt->second);
  attempts_.erase(attempt);
}

}  // namespace param::agent
