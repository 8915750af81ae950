#pragma once
// Between an agent and the helper processes that a foreign launcher (mpirun) starts in the agent's
// place: JSON lines over a Unix socket of their own. A helper says once what it stands for and
// waits; the agent tells it how that ended, and the helper ends the same way, so that the launcher
// sees what happened. A helper that reads end of file leaves.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace param::line {

// "Run this rank of mine with these variables", or "start my daemon on that host".
struct LaunchHello {
  std::string token;              // of the attempt on this node, from the environment
  int rank = -1;                  // -1: a daemon
  std::vector<std::string> env;   // "K=V" for a rank: what the launcher wants it to see
  std::string host;               // for a daemon
  std::vector<std::string> args;  // for a daemon: the command line that the launcher gave
};
struct LaunchEnd {
  int exit_code = 0;
  int signal = 0;    // not 0: it was killed by this
  std::string text;  // for the launcher's user, "" none
};

// One line, with its newline.
std::string Encode(const LaunchHello& hello);
std::string Encode(const LaunchEnd& end);
// INVALID_ARGUMENT names the key that is wrong. `line` has no newline.
absl::StatusOr<LaunchHello> DecodeLaunchHello(absl::string_view line);
absl::StatusOr<LaunchEnd> DecodeLaunchEnd(absl::string_view line);

// The environment of helpers.
inline constexpr char kLaunchSocketVariable[] = "PARAM_LAUNCH_SOCKET";
inline constexpr char kLaunchTokenVariable[] = "PARAM_LAUNCH_TOKEN";

}  // namespace param::line
