#pragma once
// Child processes: started with nothing inherited, gone with all that they started.

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/process/reactor.h"
#include "proto/base/clock.h"
#include "proto/base/handle.h"
#include "proto/base/log.h"

namespace param::agent {

struct Command {
  std::string path;                    // of the program; never looked up, never a shell
  std::vector<std::string> args = {};  // without the program's name
  std::vector<std::string> env = {};   // "K=V", all of it
  int output_fd = -1;                  // becomes standard output and error; -1: /dev/null
  int error_fd = -1;           // standard error, where it is to be another; -1: as output_fd
  std::string directory = "";  // where it starts; "": where the agent is
  // A "K=V" of `env` that nothing else has: finds what left the process group.
  std::string tag = "";
};

// Each child leads a process group of its own, with default signals and no descriptor but 0
// (/dev/null), 1 and 2. When it ends, what is left of its group is killed, and so is what it
// started and what got away to us: the process is a subreaper. One Children per process, on the
// reactor's thread, which is the one that spawns: a worker's parent-death signal means this thread.
class Children {
 public:
  // The wait status of the child. By then its group is gone.
  using Exited = std::function<void(int wait_status)>;

  // Makes the process a subreaper. `reactor`, `clock` and `log` outlive this.
  Children(Reactor& reactor, const Clock& clock, const Log& log);
  // Kills what still runs, and waits for it.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  absl::StatusOr<pid_t> Spawn(const Command& command, Exited exited);
  // To the group of a child that is alive; else nothing.
  void Signal(pid_t child, int signal);
  std::size_t size() const { return children_.size(); }
  std::vector<pid_t> pids() const;

 private:
  struct Child {
    Fd pidfd;
    Exited exited;
    std::string tag;
    bool is_dead = false;  // the leader was reaped
    int wait_status = 0;
    absl::Duration died;
  };
  void OnPidfd(pid_t pid);
  // True once nothing is left of a dead child.
  bool Sweep(pid_t pid, const Child& child);
  void SweepAll();
  void ReapStrays();
  bool IsKnown(pid_t pid) const { return children_.contains(pid); }
  std::vector<pid_t> Strays(const Child& of) const;

  Reactor& reactor_;
  const Clock& clock_;
  const Log& log_;
  std::map<pid_t, Child> children_;
  Reactor::TimerId sweep_timer_ = 0, reap_timer_ = 0;
};

// When a process started, in clock ticks since boot; 0 when there is none. With the boot id it
// tells a process from a later one of the same number.
std::uint64_t ProcessStartTicks(pid_t pid);

// A process and its parent and group, from /proc; pid 0 when it is gone.
struct ProcessStat {
  pid_t pid = 0, parent = 0, group = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;
};
ProcessStat ReadProcessStat(pid_t pid);
std::vector<pid_t> AllProcesses();

}  // namespace param::agent
