#include "client/rpc/exit_code.h"

namespace param {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kUsage;
    default:
      return ExitCode::kFailed;
  }
}

ExitCode ExitCodeOf(v1::JobState state) {
  if (state == v1::FAILED) return ExitCode::kFailed;
  if (state == v1::CANCELLED || state == v1::TIMED_OUT) return ExitCode::kStopped;
  return ExitCode::kOk;
}

std::string ExitCodeHelp() {
  return "  0  good\n"
         "  1  the job failed or gave wrong data\n"
         "  2  bad usage, or rejected by the coordinator\n"
         "  3  the coordinator is not reachable, or does not allow it\n"
         "  4  a regression or threshold was hit (only with --fail-on)\n"
         "  5  the job timed out or was cancelled\n";
}

}  // namespace param
