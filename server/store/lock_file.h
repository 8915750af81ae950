#pragma once
// One coordinator per database.

#include <string>

#include "absl/status/statusor.h"
#include "proto/base/handle.h"

namespace param {

// Takes PATH.lock for as long as the descriptor is open; the kernel frees it when the process dies.
// FAILED_PRECONDITION names the file and the process that has it.
absl::StatusOr<Fd> LockDatabase(const std::string& path);

}  // namespace param
