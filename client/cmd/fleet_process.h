#pragma once
// The processes of `paramctl up`: started detached, found again by pid and start time, stopped.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace param {

// A process, safe against reuse of its pid.
struct FleetProcess {
  std::string name;  // "server", "n1"
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // clock ticks after boot, of /proc/PID/stat
};

// What `up` leaves behind for `down`.
struct FleetRecord {
  int nodes = 0;
  std::string listen;  // "127.0.0.1:7700"
  std::string http;
  std::vector<FleetProcess> processes;  // the server first
};

// DIR/fleet.json; NOT_FOUND when there is none. Writing replaces the file in one step.
absl::StatusOr<FleetRecord> ReadFleet(const std::string& folder);
absl::Status WriteFleet(const std::string& folder, const FleetRecord& record);

// Replaces a file in one step; all programs see the old text or the new.
absl::Status ReplaceFile(const std::string& path, const std::string& text);

// Starts argv[0] in a session of its own, with no standard input, both outputs appended to `log`,
// no other descriptor of ours, default signals, and `folder` as its current folder.
absl::StatusOr<FleetProcess> StartDetached(const std::string& name,
                                           const std::vector<std::string>& argv,
                                           const std::string& folder, const std::string& log);

// That very process runs: not another with its pid, not a zombie.
bool IsRunning(const FleetProcess& process);

// SIGTERM to all, SIGKILL to those that are left after `grace`; returns once none runs. The names
// of those that had to be killed.
std::vector<std::string> StopAll(const std::vector<FleetProcess>& processes, absl::Duration grace);

// The last lines of a log, for an error message.
std::string LogTail(const std::string& path, int lines);

// One `up` or `down` at a time in a folder. Holds an exclusive lock for its life.
class FolderLock {
 public:
  // FAILED_PRECONDITION when another holds it.
  static absl::StatusOr<FolderLock> Take(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace param
