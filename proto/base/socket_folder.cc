#include "proto/base/socket_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"

namespace param {
namespace {

constexpr absl::string_view kPrefix = "param-";
constexpr std::size_t kRandomLetters = 6;  // of mkdtemp
constexpr int kTries = 16;

std::string LockPath(const std::string& folder) {
  return absl::StrCat(folder, "/", kSocketFolderLock);
}

bool IsOurName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kPrefix) && name.size() == kRandomLetters &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); });
}

// Takes the lock and makes sure that it is still the folder's: who had it before may have removed
// the file meanwhile.
bool Lock(const Fd& lock, const std::string& path) {
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return false;
  struct stat held {
  }, there{};
  return ::fstat(lock.get(), &held) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

bool IsPlainPath(absl::string_view path) {
  return !path.empty() && path.front() == '/' && std::all_of(path.begin(), path.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("/._-+@:=").find(c) != absl::string_view::npos;
  });
}

}  // namespace

std::string SocketRoot() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  struct stat info {};
  if (runtime != nullptr && ::stat(runtime, &info) == 0 && S_ISDIR(info.st_mode) &&
      ::access(runtime, W_OK) == 0 && std::string(runtime).size() < 80 && IsPlainPath(runtime)) {
    return runtime;
  }
  return "/tmp";
}

absl::StatusOr<SocketFolder> MakeSocketFolder(const std::string& root) {
  for (int i = 0; i < kTries; ++i) {
    std::string folder = absl::StrCat(root, "/", kPrefix, std::string(kRandomLetters, 'X'));
    if (::mkdtemp(folder.data()) == nullptr) {  // mode 0700
      return ErrnoStatus(errno, absl::StrCat("mkdtemp ", folder));
    }
    const std::string path = LockPath(folder);
    Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!lock) {
      const absl::Status status = ErrnoStatus(errno, absl::StrCat("open ", path));
      ::rmdir(folder.c_str());
      return status;
    }
    if (Lock(lock, path)) return SocketFolder{std::move(folder), std::move(lock)};
    // Somebody who clears up saw the file before it was locked, and removes the folder.
  }
  return absl::AbortedError(
      absl::StrCat("folders in ", root, " are removed as soon as they are made"));
}

bool RemoveSocketFolder(const std::string& folder) {
  std::error_code error;
  bool is_empty = true;
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (it->path().filename().string() == kSocketFolderLock) continue;
    std::error_code kept;
    std::filesystem::remove_all(it->path(), kept);
    is_empty = is_empty && !kept;
  }
  if (error || !is_empty) return false;
  std::filesystem::remove(LockPath(folder), error);
  return ::rmdir(folder.c_str()) == 0;
}

bool RemoveDeadSocketFolder(const std::string& folder) {
  if (!IsOurName(std::filesystem::path(folder).filename().string())) return false;
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) return false;
  const std::string path = LockPath(folder);
  const Fd lock(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock || !Lock(lock, path)) return false;
  return RemoveSocketFolder(folder);
}

int RemoveDeadSocketFolders(const std::string& root) {
  int removed = 0;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(
           root, std::filesystem::directory_options::skip_permission_denied, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (RemoveDeadSocketFolder(it->path().string())) ++removed;
  }
  return removed;
}

}  // namespace param
