#pragma once
// The launcher "mpirun": Open MPI's own launcher starts the ranks, without ssh and without being
// the parent of anything that works.
//
// The head's agent runs mpirun. Where mpirun would call ssh it calls param-worker --launch-daemon,
// which asks this agent; the coordinator relays that to the agent of the host concerned, which
// checks the command line and runs orted. Where orted starts a rank it starts param-worker
// --launch-rank, which hands the agent what the rank needs to know and waits; the agent spawns the
// rank itself and supervises it as any other. So a rank's end, its output, its deadline and its
// killing are those of a direct launch, and mpirun learns of them from the helper that stands for
// the rank.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/core/launcher.h"
#include "agent/process/direct_launcher.h"
#include "agent/process/watched_program.h"
#include "agent/process/worker_socket.h"
#include "proto/base/log.h"
#include "proto/base/random.h"
#include "proto/base/socket_folder.h"

namespace param::agent {

struct MpirunLauncherOptions {
  std::string node;             // this agent's name
  DirectLauncherOptions ranks;  // how a rank is spawned
  std::string mpi_folder;       // where mpirun and orted are; "": on the PATH of ranks.env
  std::string memory_root;      // for what ranks of one node share: folders in memory
};

// On the reactor's thread.
class MpirunLauncher final : public Launcher, private WorkerEvents {
 public:
  struct Parts {  // all outlive this
    Reactor* reactor;
    Children* children;
    RunFile* run_file;
    Random* random;
    const Log* log;
  };
  MpirunLauncher(MpirunLauncherOptions options, Parts parts);
  ~MpirunLauncher() override;
  // Before the first Start(). `events` outlives this.
  void SetEvents(WorkerEvents* events) { events_ = events; }

  absl::StatusOr<Launched> Start(const LaunchRequest& request) override;
  void Send(const RankKey& rank, std::string line) override;
  void Signal(const RankKey& rank, int signal) override;
  void Abort(const AttemptKey& key) override;
  bool IsGone(const AttemptKey& key) const override;
  void Release(const AttemptKey& key) override;
  void Start(const StartDaemon& wanted) override;
  void Ended(const DaemonEnded& ended) override;

 private:
  enum class RankState {
    kWaiting,  // for mpirun to ask for it
    kRunning,
    kHeld,  // exited after mpirun had let go of it: somebody else may know better why
    kGone,
  };
  struct Rank {
    RankLaunch launch;
    RankState state = RankState::kWaiting;
    bool has_helper = false;
    bool left_alone = false;  // its helper went first
    int wait_status = 0;      // of a held one
  };
  struct Attempt {
    LaunchPlan plan;
    std::string host;  // this node's
    std::string token;
    SocketFolder memory;                                 // "": none
    std::set<std::string> asked_for;                     // hosts whose daemon mpirun wanted
    std::optional<std::vector<std::string>> orted_args;  // as they came
    std::optional<DaemonEnded> orted_end;
    std::unique_ptr<WorkerSocket> helpers;
    std::unique_ptr<WatchedProgram> mpirun, orted;
    std::map<int, Rank> ranks;
    bool aborting = false;
  };

  // The parts of Start().
  absl::Status Begin(const AttemptKey& key, Attempt& attempt);
  absl::Status Listen(const AttemptKey& key, Attempt& attempt);
  absl::Status StartMpirun(const AttemptKey& key, Attempt& attempt);
  absl::Status StartOrted(const StartDaemon& wanted, Attempt& attempt);
  std::vector<std::string> ProgramEnvironment(const AttemptKey& key, const Attempt& attempt) const;
  absl::StatusOr<std::string> FindProgram(absl::string_view name) const;
  // Of this node's daemon: tells the head, now and when it asks again.
  void TellEnd(Attempt& attempt, DaemonEnded end);
  std::unique_ptr<WatchedProgram> MakeProgram(const AttemptKey& key, absl::string_view name);
  static Command FollowCommand(const std::string& worker, const std::string& path,
                               absl::string_view name, const std::vector<std::string>& args);

  // Of helpers.
  absl::StatusOr<int> OnHelper(const AttemptKey& key, absl::string_view line);
  absl::StatusOr<int> OnDaemonHelper(const AttemptKey& key, Attempt& attempt,
                                     const std::string& host, std::vector<std::string> args);
  absl::Status SpawnRank(const AttemptKey& key, Attempt& attempt, Rank& rank,
                         const std::vector<std::string>& helper_env);
  void OnHelperGone(const AttemptKey& key, int id);

  void OnProgramExit(const AttemptKey& key, absl::string_view name, int wait_status);
  // A rank is over: tells who waits for it, and what is left to end.
  void Finish(const AttemptKey& key, Rank& rank, const absl::Status* lost);
  void FailLater(const AttemptKey& key, const absl::Status& why);
  void Fail(const AttemptKey& key, const absl::Status& why);
  void EndPrograms(const AttemptKey& key);
  void DropWaiting(const AttemptKey& key);

  // WorkerEvents of the ranks.
  absl::StatusOr<int> OnGreeting(const AttemptKey& key, pid_t peer,
                                 absl::string_view line) override;
  void OnConnected(const RankKey& rank) override { events_->OnConnected(rank); }
  void OnLines(const RankKey& rank, const std::vector<std::string>& lines) override;
  void OnBadStream(const RankKey& rank, const absl::Status& why) override;
  void OnOutput(const RankKey& rank, absl::string_view line) override;
  void OnExit(const RankKey& rank, int wait_status) override;
  void OnSpawned(const RankKey&, pid_t) override {}
  void OnLost(const RankKey&, const absl::Status&) override {}
  void OnLauncherFailed(const AttemptKey&, const absl::Status&) override {}
  void OnDaemonWanted(const StartDaemon&) override {}
  void OnDaemonEnded(const DaemonEnded&) override {}

  Attempt* Find(const AttemptKey& key);
  Rank* Find(const RankKey& key);

  const MpirunLauncherOptions options_;
  const Parts parts_;
  WorkerEvents* events_ = nullptr;
  DirectLauncher spawner_;
  std::map<AttemptKey, Attempt> attempts_;
};

}  // namespace param::agent
