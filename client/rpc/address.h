#pragma once
// Where the coordinator is.

#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace param {

// Variables by name, as main() found them; tests fill it in by hand.
using EnvironmentVariables = std::map<std::string, std::string, std::less<>>;

inline constexpr absl::string_view kDefaultAddress = "127.0.0.1:7700";
inline constexpr absl::string_view kAddressFile = "server.addr";  // in the state folder

struct Address {
  std::string target;  // "HOST:PORT"
  std::string origin;  // "--server", "PARAM_SERVER", "/path/server.addr", "default"
};

// The folder of `paramctl up`: $PARAM_STATE, else $XDG_STATE_HOME/param, else
// $HOME/.local/state/param; "" when none is set.
std::string StateFolder(const EnvironmentVariables& env);

// The flag, else PARAM_SERVER, else the state folder's file, else the default. An address without a
// port gets 7700.
Address ResolveAddress(absl::string_view flag, const EnvironmentVariables& env);

}  // namespace param
