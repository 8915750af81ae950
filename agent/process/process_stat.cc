// /proc as far as supervision needs it.

#include <dirent.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/process/children.h"
#include "proto/base/file.h"

namespace param::agent {

ProcessStat ReadProcessStat(pid_t pid) {
  const std::string text = ReadFileOrEmpty(absl::StrCat("/proc/", pid, "/stat"));
  // "PID (NAME) STATE PPID PGRP ...": the name may hold anything, blanks and parentheses too.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(name_end + 1), ' ', absl::SkipEmpty());
  ProcessStat stat;
  if (fields.size() < 20 || !absl::SimpleAtoi(fields[1], &stat.parent) ||
      !absl::SimpleAtoi(fields[2], &stat.group) ||
      !absl::SimpleAtoi(fields[19], &stat.start_ticks)) {
    return {};
  }
  stat.pid = pid;
  stat.state = fields[0][0];
  return stat;
}

std::uint64_t ProcessStartTicks(pid_t pid) { return ReadProcessStat(pid).start_ticks; }

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), &::closedir);
  if (dir == nullptr) return all;
  while (const dirent* const entry = ::readdir(dir.get())) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(absl::string_view(entry->d_name), &pid)) all.push_back(pid);
  }
  return all;
}

}  // namespace param::agent
