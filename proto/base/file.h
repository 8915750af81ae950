#pragma once
// Reading small files as a whole.

#include <string>

#include "absl/status/statusor.h"

namespace param {

// The bytes of the file; of kernel files too, whose reads may fail. Errors name the path and errno.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// The same for files that may be missing or unreadable: "" then.
std::string ReadFileOrEmpty(const std::string& path);

}  // namespace param
