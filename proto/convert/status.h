#pragma once
// Errors across the wire: absl::Status <-> grpc::Status. The codes are the same numbers in both;
// payloads do not travel. Thread safe.

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace param {

// A message longer than a gRPC trailer may carry is cut, and says so.
grpc::Status ToGrpc(const absl::Status& status);

// A code that Abseil does not know becomes UNKNOWN.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace param
