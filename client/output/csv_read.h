#pragma once
// The way back from CaseCsvTable: what `result export` and `-o csv` wrote of a job's cases. Pure.

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "param/v1/job.pb.h"

namespace param {

// The cases with their parameters and measurements over all ranks, and what the rows say of the
// job; its state, timeline and environment are not in them. Columns that this program does not know
// are passed over. INVALID_ARGUMENT begins with "line N: " where a line is concerned.
absl::StatusOr<v1::GetJobResponse> ReadCaseCsv(absl::string_view text);

}  // namespace param
