#pragma once
// The agent's folder: its lock, its spool, its notes.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/handle.h"

namespace param::agent {

// Held as long as the object lives; the kernel lets go of it when the process dies.
class StateDir {
 public:
  // Makes the folder (mode 0700) and locks it. FAILED_PRECONDITION, with the other agent's process
  // id, when it is in use.
  static absl::StatusOr<StateDir> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }
  // Replaces a small file as a whole.
  absl::Status WriteFile(absl::string_view name, absl::string_view text) const;

 private:
  std::string path_;
  Fd lock_;
};

// Where an agent keeps its state unless told: $XDG_STATE_HOME/param-agent-NAME, or
// ~/.local/state/param-agent-NAME; for root /var/lib/param-agent-NAME.
std::string DefaultStateDir(absl::string_view node);

}  // namespace param::agent
