#include "proto/base/file.h"

#include <fcntl.h>

#include <cerrno>

#include "proto/base/handle.h"
#include "proto/base/status.h"

namespace param {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, path);
  std::string bytes;
  char block[16384];
  for (;;) {
    const ssize_t got = ::read(fd.get(), block, sizeof(block));
    if (got == 0) return bytes;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, path);
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

std::string ReadFileOrEmpty(const std::string& path) {
  auto bytes = ReadFile(path);
  return bytes.ok() ? *std::move(bytes) : std::string();
}

}  // namespace param
