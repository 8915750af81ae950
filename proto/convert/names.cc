#include "proto/convert/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/text.h"
#include "proto/line/messages.h"

namespace param {

std::string WireJobStateName(v1::JobState state) {
  if (state == v1::JOB_STATE_UNSPECIFIED || !v1::JobState_IsValid(state)) return "UNKNOWN";
  return v1::JobState_Name(state);
}

absl::StatusOr<v1::JobState> WireJobStateFromName(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  if (v1::JobState_Parse(upper, &state) && state != v1::JOB_STATE_UNSPECIFIED) return state;
  const std::vector<std::string> names = WireJobStateNames();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is not one of ", absl::StrJoin(names, ", "), DidYouMean(upper, names)));
}

std::vector<std::string> WireJobStateNames() {
  std::vector<std::string> names;
  for (int i = v1::JobState_MIN; i <= v1::JobState_MAX; ++i) {
    if (v1::JobState_IsValid(i) && i != v1::JOB_STATE_UNSPECIFIED) {
      names.push_back(v1::JobState_Name(static_cast<v1::JobState>(i)));
    }
  }
  return names;
}

bool IsFinalState(v1::JobState state) {
  return state == v1::SUCCEEDED || state == v1::FAILED || state == v1::CANCELLED ||
         state == v1::TIMED_OUT;
}

std::string WireCaseStatusName(v1::CaseStatus status) {
  if (status == v1::FAILED_CASE) return "FAILED";
  if (status == v1::CASE_STATUS_UNSPECIFIED) return "";
  return v1::CaseStatus_IsValid(status) ? v1::CaseStatus_Name(status) : "UNKNOWN";
}

absl::StatusOr<v1::CaseStatus> WireCaseStatusFromName(absl::string_view name) {
  for (const v1::CaseStatus status : {v1::PASSED, v1::WRONG, v1::SKIPPED, v1::FAILED_CASE}) {
    if (WireCaseStatusName(status) == name) return status;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is not one of PASSED, WRONG, SKIPPED, FAILED"));
}

std::vector<std::string> PhaseNames() {
  std::vector<std::string> names;
  for (int i = 0; i <= static_cast<int>(line::Phase::kTeardown); ++i) {
    names.emplace_back(line::PhaseName(static_cast<line::Phase>(i)));
  }
  return names;
}

}  // namespace param
