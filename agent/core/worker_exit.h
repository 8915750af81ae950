#pragma once
// What a finished worker means.

#include "absl/status/status.h"

namespace param::agent {

// Pure, so the whole table is tested without starting a process. `wait_status` is as of waitpid;
// `sent_done` says that the worker reported the end of all its cases. OK, ABORTED (a signal),
// INTERNAL (an exit status) or DATA_LOSS (left as if all were well, but reported no end).
absl::Status WorkerExit(int wait_status, bool sent_done);

}  // namespace param::agent
