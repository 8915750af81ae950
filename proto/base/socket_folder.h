#pragma once
// Short-lived folders for Unix sockets, which nobody else removes while they are in use and anybody
// may remove once their owner is dead.
//
// The owner holds a lock (flock) on a file inside for as long as it uses the folder; the kernel
// lets go of it when the process dies, however it dies.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/handle.h"

namespace param {

inline constexpr absl::string_view kSocketFolderLock = "agent.lock";

// In use while `lock` is open. Whoever is done with it removes the folder first.
struct SocketFolder {
  std::string path;
  Fd lock;
};

// $XDG_RUNTIME_DIR where it is a folder and short enough for a socket's path, else /tmp.
std::string SocketRoot();

// Makes ROOT/param-XXXXXX with mode 0700, locked. Errors name the path and errno.
absl::StatusOr<SocketFolder> MakeSocketFolder(const std::string& root);

// Removes the folders of that kind below `root` that belong to this user and whose owner is dead;
// returns how many. Never one without a lock file, or whose lock is held: those may be in use.
int RemoveDeadSocketFolders(const std::string& root);

}  // namespace param
