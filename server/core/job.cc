#include "server/core/job.h"

#include "proto/base/status.h"

namespace param {
namespace {

constexpr JobState kStates[] = {JobState::kQueued,    JobState::kStarting, JobState::kRunning,
                                JobState::kSucceeded, JobState::kFailed,   JobState::kCancelled,
                                JobState::kTimedOut};

}  // namespace

absl::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "QUEUED";
    case JobState::kStarting:
      return "STARTING";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
    case JobState::kTimedOut:
      return "TIMED_OUT";
  }
  return "UNKNOWN";
}

absl::StatusOr<JobState> JobStateFromName(absl::string_view name) {
  for (const JobState state : kStates) {
    if (JobStateName(state) == name) return state;
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is not a state of a job"));
}

bool IsFinal(JobState state) {
  switch (state) {
    case JobState::kQueued:
    case JobState::kStarting:
    case JobState::kRunning:
      return false;
    case JobState::kSucceeded:
    case JobState::kFailed:
    case JobState::kCancelled:
    case JobState::kTimedOut:
      return true;
  }
  return true;
}

}  // namespace param
