#pragma once
// What a backend answered, as an absl::Status. A backend is another author's code: its codes and
// texts are checked before they travel on.

#include <cstdint>
#include <cstring>

#include "agent/backend/param_backend.h"
#include "proto/base/status.h"

namespace param {

// An error structure ready to be handed to a backend. Only what is read is set: this is on hot
// paths.
struct BackendError : param_error {
  BackendError() {  // NOLINT(cppcoreguidelines-pro-type-member-init): the rest is written by others
    code = 0;
    message[0] = '\0';
  }
};

// OK for 0. A code that is no absl::StatusCode is UNKNOWN and named in the message; an empty
// message becomes "no reason given"; a message without an end is cut at the end of its array.
absl::Status BackendFailure(std::int32_t code, const param_error& error);

inline absl::Status BackendStatus(std::int32_t code, const param_error& error) {
  if (code == 0) [[likely]] {
    return absl::OkStatus();
  }
  return BackendFailure(code, error);
}

// What a missing table entry means: UNIMPLEMENTED, naming the entry.
absl::Status MissingEntry(const char* kind, const char* entry);

}  // namespace param
