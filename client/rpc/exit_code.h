#pragma once
// What paramctl exits with.

#include <string>

#include "absl/status/status.h"
#include "param/v1/job.pb.h"

namespace param {

enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,       // the job failed or gave wrong data; or paramctl itself could not go on
  kUsage = 2,        // bad usage, or the coordinator rejected the request
  kUnavailable = 3,  // the coordinator is not reachable, or does not allow it
  kThreshold = 4,    // a regression or threshold was hit (only with --fail-on)
  kStopped = 5,      // timed out or cancelled
};

// Of a call that failed.
ExitCode ExitCodeOf(const absl::Status& status);

// Of a job that ended; kOk for one that goes on.
ExitCode ExitCodeOf(v1::JobState state);

// The lines that help shows, one per code: "0  ...".
std::string ExitCodeHelp();

}  // namespace param
