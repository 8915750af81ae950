#pragma once
// Waiting for the signal to stop.

#include "absl/status/statusor.h"
#include "proto/base/handle.h"

namespace param {

// SIGTERM and SIGINT as something to wait for. Make it first in main, before any thread: threads
// made later inherit the blocked signals, so that none of them is interrupted. Children do too: who
// starts a process gives it an empty mask.
class ShutdownSignals {
 public:
  static absl::StatusOr<ShutdownSignals> Block();

  // Blocks until one of them comes and returns it. SIGHUP is ignored: a closed terminal does not
  // stop a daemon.
  absl::StatusOr<int> Wait();

  // Readable when a signal waits, for those who have a poll loop.
  int fd() const { return fd_.get(); }

 private:
  explicit ShutdownSignals(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace param
