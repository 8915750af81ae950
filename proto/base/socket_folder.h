#pragma once
// Short-lived folders (for Unix sockets, or in memory), which nobody else removes while they are in
// use and anybody may remove once their owner is dead.
//
// The owner holds a lock (flock) on a file inside for as long as it uses the folder; the kernel
// lets go of it when the process dies, however it dies.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/handle.h"

namespace param {

inline constexpr absl::string_view kSocketFolderLock = "agent.lock";

// In use while `lock` is open. Whoever is done with it removes the folder first, by
// RemoveSocketFolder().
struct SocketFolder {
  std::string path;
  Fd lock;
};

// $XDG_RUNTIME_DIR where it is a folder, short enough for a socket's path and without anything that
// the command lines of launchers would split or quote (blanks, quotes), else /tmp.
std::string SocketRoot();

// Makes ROOT/param-XXXXXX with mode 0700, locked. Errors name the path and errno.
absl::StatusOr<SocketFolder> MakeSocketFolder(const std::string& root);

// Removes a folder that the caller has locked: the lock's file after all else, so that whoever is
// interrupted leaves one that RemoveDeadSocketFolders() still takes. False: something is left.
bool RemoveSocketFolder(const std::string& folder);

// Removes one folder of that kind if it belongs to this user, is nobody else's to enter and its
// owner is dead. False: it is not there, or may be in use.
bool RemoveDeadSocketFolder(const std::string& folder);

// Removes the folders of that kind below `root` that belong to this user and whose owner is dead;
// returns how many. Never one without a lock file, or whose lock is held: those may be in use.
int RemoveDeadSocketFolders(const std::string& root);

}  // namespace param
