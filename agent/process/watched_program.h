#pragma once
// A program of somebody else's that runs for a while: its last words are kept, it is ended with
// growing force.

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/core/log_ring.h"
#include "agent/process/children.h"
#include "agent/process/line_splitter.h"
#include "agent/process/reactor.h"
#include "agent/process/run_file.h"
#include "proto/base/handle.h"

namespace param::agent {

// On the reactor's thread. Destroy it only when it does not run, or at the agent's end.
class WatchedProgram {
 public:
  struct Parts {  // all outlive this
    Reactor* reactor;
    Children* children;
    RunFile* run_file;
  };
  struct Events {
    // Of its standard output or error; false: not worth keeping.
    std::function<bool(absl::string_view line)> line;
    std::function<void(int wait_status)> exited;  // its lines were delivered before
  };
  WatchedProgram(Parts parts, Events events);
  ~WatchedProgram();
  WatchedProgram(const WatchedProgram&) = delete;
  WatchedProgram& operator=(const WatchedProgram&) = delete;

  // `command` without its output. Once.
  absl::Status Start(Command command);
  bool is_running() const { return pid_ != 0; }
  // SIGTERM to its group, SIGKILL when that does not help. Nothing when it does not run.
  void End();
  // What it said last, in one line.
  std::string LastWords() const;

 private:
  // At most `pieces` of its output; the rest comes with the next round of the reactor.
  void Read(int pieces);
  void OnExit(int wait_status);
  void StopReading();

  const Parts parts_;
  const Events events_;
  pid_t pid_ = 0;
  Fd output_;
  LineSplitter splitter_{4 << 10};
  LogRing last_{8, 2 << 10};
  Reactor::TimerId kill_timer_ = 0;
};

// "killed by SIGKILL", "exited with 1": how a program ended, as people read it.
std::string ExitText(int wait_status);

}  // namespace param::agent
