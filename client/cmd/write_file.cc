#include "client/cmd/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/base/handle.h"

namespace param {
namespace {

// INTERNAL whatever the reason is: the request was right, this machine could not do it.
absl::Status Failed(absl::string_view what, const std::string& path) {
  return absl::InternalError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

absl::Status WriteAll(int fd, absl::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote >= 0) {
      text.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno != EINTR) {
      return Failed("cannot write", path);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteInPlace(const std::string& path, absl::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return Failed("cannot write", path);
  return WriteAll(fd.get(), text, path);
}

}  // namespace

absl::Status WriteWholeFile(const std::string& path, absl::string_view text) {
  struct stat facts = {};
  const bool exists = ::stat(path.c_str(), &facts) == 0;
  if (exists && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode)) return WriteInPlace(path, text);
  const std::string fresh = absl::StrCat(path, ".", ::getpid(), ".tmp");
  absl::Status status;
  {
    const Fd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                       exists ? facts.st_mode & 0777u : 0666u));
    if (!fd) return Failed("cannot write", path);
    status = WriteAll(fd.get(), text, path);
    // A disk that is full may say so here only.
    if (status.ok() && ::fsync(fd.get()) != 0) {
      status = Failed("cannot write", path);
    }
  }
  if (status.ok() && ::rename(fresh.c_str(), path.c_str()) != 0) {
    status = Failed("cannot replace", path);
  }
  if (!status.ok()) ::unlink(fresh.c_str());
  return status;
}

}  // namespace param
