#include "agent/backend/error.h"

#include <string>

namespace param {

absl::Status BackendFailure(std::int32_t code, const param_error& error) {
  std::string message(error.message, strnlen(error.message, sizeof(error.message)));
  if (message.empty()) message = "no reason given";
  if (code < 0 || code > 16) {
    return absl::UnknownError(absl::StrCat("error code ", code, ": ", message));
  }
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

absl::Status MissingEntry(const char* kind, const char* entry) {
  return absl::UnimplementedError(
      absl::StrCat("backend ", kind == nullptr ? "?" : kind, " has no ", entry));
}

}  // namespace param
