#pragma once
// The launcher "direct": the agent spawns its ranks itself, at once. Open() and Spawn() are its two
// halves, for launchers that spawn later.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/launcher.h"
#include "agent/process/children.h"
#include "agent/process/line_splitter.h"
#include "agent/process/reactor.h"
#include "agent/process/run_file.h"
#include "agent/process/worker_socket.h"
#include "proto/base/handle.h"
#include "proto/base/log.h"

namespace param::agent {

struct DirectLauncherOptions {
  std::string worker_path;  // param-worker, beside the agent; the wire cannot change it
  std::vector<std::string> worker_args = {};  // for tests that put another program there
  std::vector<std::string> env = {};          // "K=V", from WorkerEnvironment()
  std::string socket_root;                    // where socket folders are made: short
  // Where workers start, a folder per attempt that goes with it; "": beside the socket.
  std::string scratch_root = "";
  // The largest file that a worker may write; 0: no limit.
  std::int64_t file_limit_bytes = 0;
};

// On the reactor's thread.
class DirectLauncher final : public Launcher {
 public:
  struct Parts {  // all outlive this
    Reactor* reactor;
    Children* children;
    RunFile* run_file;
    const Log* log;
  };
  DirectLauncher(DirectLauncherOptions options, Parts parts);
  ~DirectLauncher() override;
  // Before the first Start(). `events` outlives this.
  void SetEvents(WorkerEvents* events) { events_ = events; }

  DirectLauncher(const DirectLauncher&) = delete;
  DirectLauncher& operator=(const DirectLauncher&) = delete;

  absl::StatusOr<Launched> Start(const LaunchRequest& request) override;
  // Makes the attempt's folder and socket. Starts nothing: Launched names no rank.
  absl::StatusOr<Launched> Open(const LaunchRequest& request);
  // One rank of an open attempt, with `env` ("K=V") besides what every worker gets.
  absl::StatusOr<pid_t> Spawn(const AttemptKey& key, const RankLaunch& rank,
                              const std::vector<std::string>& env);
  // The attempt's folder; "" when it is not open.
  std::string Folder(const AttemptKey& key) const;
  void Send(const RankKey& rank, std::string line) override;
  void Signal(const RankKey& rank, int signal) override;
  void Abort(const AttemptKey&) override {}  // it runs nothing but ranks
  bool IsGone(const AttemptKey&) const override { return true; }
  void Release(const AttemptKey& key) override;
  void Start(const StartDaemon& wanted) override;
  void Ended(const DaemonEnded&) override {}

 private:
  struct Rank {
    pid_t pid = 0;
    Fd output;
    LineSplitter splitter{16 << 10};
  };
  struct Attempt {
    std::string folder;  // of the socket
    Fd lock;             // says that it is in use
    std::string scratch;
    std::string interface;  // that the ranks' traffic is to go over; "": theirs to choose
    std::unique_ptr<WorkerSocket> socket;
    std::map<int, Rank> ranks;
  };
  absl::Status MakeFolder(const LaunchRequest& request, Attempt* attempt, std::string* script);
  absl::StatusOr<pid_t> SpawnRank(const AttemptKey& key, Attempt& attempt, const RankLaunch& rank,
                                  const std::vector<std::string>& env);
  // False once there is nothing to read for now.
  bool ReadOutput(const RankKey& key, Rank& rank);
  void OnExit(const RankKey& key, int wait_status);
  void Clear(Attempt& attempt);
  Rank* Find(const RankKey& key);

  const DirectLauncherOptions options_;
  const Parts parts_;
  WorkerEvents* events_ = nullptr;
  std::map<AttemptKey, Attempt> attempts_;
};

}  // namespace param::agent
