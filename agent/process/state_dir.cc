#include "agent/process/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "proto/base/status.h"

namespace param::agent {

absl::StatusOr<StateDir> StateDir::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    return absl::InternalError(absl::StrCat("cannot make ", path, ": ", error.message()));
  }
  ::chmod(path.c_str(), 0700);
  StateDir dir;
  dir.path_ = path;
  const std::string lock = dir.File("lock");
  dir.lock_ = Fd(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!dir.lock_) return ErrnoStatus(errno, absl::StrCat("open ", lock));
  if (::flock(dir.lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", lock));
    std::array<char, 32> text{};
    const ssize_t got = ::pread(dir.lock_.get(), text.data(), text.size() - 1, 0);
    return absl::FailedPreconditionError(absl::StrCat(
        "the state folder ", path, " is used by another agent",
        got > 0 ? absl::StrCat(" (process ", absl::StripAsciiWhitespace(text.data()), ")") : "",
        "; give this one another name or --state"));
  }
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(dir.lock_.get(), 0) != 0 ||
      ::pwrite(dir.lock_.get(), pid.data(), pid.size(), 0) < 0) {
    return ErrnoStatus(errno, absl::StrCat("write ", lock));
  }
  return dir;
}

absl::Status StateDir::WriteFile(absl::string_view name, absl::string_view text) const {
  const std::string path = File(name);
  const std::string next = path + ".new";
  std::ofstream file(next, std::ios::trunc | std::ios::binary);
  file << text;
  file.close();
  if (!file) return ErrnoStatus(errno, absl::StrCat("write ", next));
  if (std::rename(next.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rename ", path));
  }
  return absl::OkStatus();
}

std::string DefaultStateDir(absl::string_view node) {
  const std::string leaf = absl::StrCat("param-agent-", node);
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return absl::StrCat(state, "/", leaf);
  const char* const home = std::getenv("HOME");
  if (::geteuid() == 0 || home == nullptr || home[0] != '/') {
    return absl::StrCat("/var/lib/", leaf);
  }
  return absl::StrCat(home, "/.local/state/", leaf);
}

}  // namespace param::agent
