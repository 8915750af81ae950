#pragma once
// Wire enums <-> the bare names that users see. Thread safe.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "param/v1/job.pb.h"
#include "param/v1/result.pb.h"

namespace param {

// "QUEUED", ...; "UNKNOWN" for a state that this program does not know.
std::string WireJobStateName(v1::JobState state);

// In any case; INVALID_ARGUMENT with "did you mean".
absl::StatusOr<v1::JobState> WireJobStateFromName(absl::string_view name);

// All names, in the order of a job's life.
std::vector<std::string> WireJobStateNames();

// SUCCEEDED, FAILED, CANCELLED or TIMED_OUT: the job goes nowhere from here.
bool IsFinalState(v1::JobState state);

// "PASSED", "WRONG", "SKIPPED", "FAILED"; "" for a case that has not ended.
std::string WireCaseStatusName(v1::CaseStatus status);
absl::StatusOr<v1::CaseStatus> WireCaseStatusFromName(absl::string_view name);

// "place", "spawn", ...: the phases of a rank, in order.
std::vector<std::string> PhaseNames();

}  // namespace param
