#include "server/store/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace param {

absl::StatusOr<Fd> LockDatabase(const std::string& path) {
  const std::string lock_path = absl::StrCat(path, ".lock");
  Fd fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("open ", lock_path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", lock_path));
    std::array<char, 32> text = {};
    const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
    const absl::string_view pid = absl::StripAsciiWhitespace(
        absl::string_view(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size)));
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": another coordinator has this database open (process ",
                     pid.empty() ? "unknown" : pid, ", which holds ", lock_path, ")"));
  }
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return ErrnoStatus(errno, absl::StrCat("write ", lock_path));
  }
  return fd;
}

}  // namespace param
