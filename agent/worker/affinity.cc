#include "agent/worker/affinity.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "proto/base/status.h"

namespace param {

absl::Status BindToCpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return absl::OkStatus();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) {
      return absl::InvalidArgumentError(absl::StrCat("there is no CPU ", cpu));
    }
    CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  std::vector<int> wanted = cpus;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        ErrnoStatus(errno, absl::StrCat("binding to CPUs ", CpuListText(wanted))).message(), ""));
  }
  PARAM_ASSIGN_OR_RETURN(const std::vector<int> now, AllowedCpus());
  if (now != wanted) {  // the kernel drops CPUs that the container does not have
    return absl::FailedPreconditionError(
        absl::StrCat("bound to CPUs ", CpuListText(now), ", not to ", CpuListText(wanted)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    return ErrnoStatus(errno, "sched_getaffinity");
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[i]);
    if (last > i) absl::StrAppend(&text, "-", cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace param
