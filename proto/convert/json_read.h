#pragma once
// The way back from the JSON view of a job (json.h): what `-o json` and `result export -o json`
// wrote. Thread safe.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "param/v1/job.pb.h"

namespace param {

// The job with its failure, timeline and what was asked for, its cases with all measurements, the
// environment. Keys that this program does not know are passed over, missing ones have their
// defaults; a null number is NaN. INVALID_ARGUMENT says where the text is no JSON, or which key has
// the wrong type.
absl::StatusOr<v1::GetJobResponse> ReadJobDocument(absl::string_view text);

}  // namespace param
