#pragma once
// param/v1/agent.proto <-> the core's plain data, field by field. Thread safe.

#include "absl/status/statusor.h"
#include "agent/core/messages.h"
#include "param/v1/agent.pb.h"

namespace param::agent {

v1::FromAgent ToWire(const Register& hello);
v1::FromAgent ToWire(const UpMessage& message);

// INVALID_ARGUMENT when a newer coordinator sent what this agent does not know.
absl::StatusOr<DownMessage> FromWire(const v1::ToAgent& message);

}  // namespace param::agent
