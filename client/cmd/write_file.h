#pragma once
// Writing a result file.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace param {

// Replaces the file at once: whoever reads it sees the old one or the whole new one. Something that
// is no regular file (/dev/stdout, a pipe) is written to as it is. Errors name the path and the
// reason; nothing half-written is left.
absl::Status WriteWholeFile(const std::string& path, absl::string_view text);

}  // namespace param
