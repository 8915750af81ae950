#pragma once
// Starting and reaching the ranks of an attempt, as the core needs it. There is one launcher per
// way of starting: "direct" (the agent spawns the workers) and "mpirun" (the agent spawns them when
// the MPI library's own launcher asks for them).

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/core/messages.h"

namespace param::agent {

// What workers do. Called on the agent's own thread, never from within a call to the launcher.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;
  // The first line of a new connection. Its rank, or why the connection is to be closed. `peer` is
  // the process at the other end, as the kernel says.
  virtual absl::StatusOr<int> OnGreeting(const AttemptKey& key, pid_t peer,
                                         absl::string_view line) = 0;
  // The greeting was taken: the rank can be sent to.
  virtual void OnConnected(const RankKey& rank) = 0;
  // Further complete lines, in order, as many as one read brought.
  virtual void OnLines(const RankKey& rank, const std::vector<std::string>& lines) = 0;
  // The rank broke the rules of the socket below the level of messages (a line too long).
  virtual void OnBadStream(const RankKey& rank, const absl::Status& why) = 0;
  // A line of its standard output or error.
  virtual void OnOutput(const RankKey& rank, absl::string_view line) = 0;
  // The process is gone and so is everything it started; its output was delivered before.
  virtual void OnExit(const RankKey& rank, int wait_status) = 0;
  // A rank that Start() had left for later has its process now.
  virtual void OnSpawned(const RankKey& rank, pid_t pid) = 0;
  // Instead of OnExit(): the process was never started, or was taken away by its launcher.
  virtual void OnLost(const RankKey& rank, const absl::Status& why) = 0;
  // What starts the ranks is broken. Each rank still gets its OnExit() or OnLost().
  virtual void OnLauncherFailed(const AttemptKey& key, const absl::Status& why) = 0;
  // For the coordinator.
  virtual void OnDaemonWanted(const StartDaemon& wanted) = 0;
  virtual void OnDaemonEnded(const DaemonEnded& ended) = 0;
};

struct RankLaunch {
  int rank = 0;
  std::string token;  // one-time; the worker's first line must carry it
};
struct LaunchRequest {
  AttemptKey key;
  std::vector<RankLaunch> ranks;
  std::string fake_script;  // text; "" none
  LaunchPlan plan = {};     // without hosts for launchers that need none
};
struct Launched {
  std::string fake_script_path;        // "" where there is no script
  std::map<int, pid_t> pids;           // of the ranks that were started; 0: it comes later
  std::map<int, absl::Status> failed;  // of the others; OnExit() will not come for them
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // An error means that nothing was started.
  virtual absl::StatusOr<Launched> Start(const LaunchRequest& request) = 0;
  // Queues a line for a rank. Dropped when the rank is not connected (any more).
  virtual void Send(const RankKey& rank, std::string line) = 0;
  // To the rank's whole process group. Nothing when it is gone.
  virtual void Signal(const RankKey& rank, int signal) = 0;
  // The attempt has failed: what the launcher itself runs for it is to end, soon by force. Ranks
  // that have no process yet get none.
  virtual void Abort(const AttemptKey& key) = 0;
  // Nothing runs for the attempt, once its ranks are gone.
  virtual bool IsGone(const AttemptKey& key) const = 0;
  // All of it is gone: closes the socket, deletes the files.
  virtual void Release(const AttemptKey& key) = 0;
  // A daemon of the head's launcher is wanted here. What becomes of it is told by OnDaemonEnded().
  // Asked again for the one that runs or ran: nothing starts.
  virtual void Start(const StartDaemon& wanted) = 0;
  // What became of a daemon that this head wanted. It may be told twice.
  virtual void Ended(const DaemonEnded& ended) = 0;
};

}  // namespace param::agent
