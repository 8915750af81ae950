#pragma once
// What this agent has running, on disk, so that the next one can clear up after a crash.

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/log.h"

namespace param::agent {

// One thread at a time. The file is replaced as a whole; it need not survive a power cut, since the
// processes do not either.
class RunFile {
 public:
  // `boot_id` tells process numbers of this boot from those of another.
  RunFile(std::string path, std::string boot_id);

  // Kills what a former agent left behind (its workers' groups that still are what they were) and
  // deletes its socket folders, then starts empty. Returns how many processes were killed.
  int ClearLeftovers(const Log& log);

  void Add(const std::vector<pid_t>& children, const std::string& folder);
  void Remove(pid_t child);
  void RemoveFolder(const std::string& folder);

 private:
  struct Process {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the rewritten "< 0" for a pointer
    friend auto operator<=>(const Process&, const Process&) = default;
  };
  absl::Status Write() const;

  const std::string path_;
  const std::string boot_id_;
  std::set<Process> processes_;
  std::set<std::string> folders_;
};

}  // namespace param::agent
