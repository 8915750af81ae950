#include "proto/daemon/shutdown.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "proto/base/status.h"

namespace param {

absl::StatusOr<ShutdownSignals> ShutdownSignals::Block() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (const int error = pthread_sigmask(SIG_BLOCK, &signals, nullptr); error != 0) {
    return ErrnoStatus(error, "pthread_sigmask");
  }
  (void)std::signal(SIGHUP, SIG_IGN);
  (void)std::signal(SIGPIPE, SIG_IGN);  // a peer that left is an error of the write
  Fd fd(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, "signalfd");
  return ShutdownSignals(std::move(fd));
}

absl::StatusOr<int> ShutdownSignals::Wait() {
  signalfd_siginfo info = {};
  while (true) {
    const ssize_t size = ::read(fd_.get(), &info, sizeof(info));
    if (size == static_cast<ssize_t>(sizeof(info))) return static_cast<int>(info.ssi_signo);
    if (size < 0 && errno != EINTR) return ErrnoStatus(errno, "reading signals");
  }
}

}  // namespace param
