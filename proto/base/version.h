#pragma once
// What was built: shown by --version and stored with every result.

#include "absl/strings/string_view.h"

namespace param {

// Version of the programs ("0.1.0"), the source revision ("a1b2c3d" or "a1b2c3d-dirty", "unknown"
// outside a checkout), the compiler, and the protocol between coordinator and agents.
absl::string_view Version();
absl::string_view Revision();
absl::string_view Compiler();
inline constexpr int kProtocolVersion = 1;

}  // namespace param
