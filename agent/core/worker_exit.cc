#include "agent/core/worker_exit.h"

#include <sys/wait.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace param::agent {

absl::Status WorkerExit(int wait_status, bool sent_done) {
  if (WIFSIGNALED(wait_status)) {
    const char* const name = sigabbrev_np(WTERMSIG(wait_status));
    return absl::AbortedError(name == nullptr
                                  ? absl::StrCat("worker killed by signal ", WTERMSIG(wait_status))
                                  : absl::StrCat("worker killed by SIG", name));
  }
  if (WEXITSTATUS(wait_status) != 0) {
    return absl::InternalError(absl::StrCat("worker exited with ", WEXITSTATUS(wait_status)));
  }
  if (!sent_done) {
    return absl::DataLossError("worker exited with 0 but did not report the end of its cases");
  }
  return absl::OkStatus();
}

}  // namespace param::agent
