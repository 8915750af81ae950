#pragma once
// The results of a job of `collective` as other tools print them, column by column, so that what
// parses their output parses ours:
//   param       comms.py of PARAM: COMMS-RES rows; percentiles are over the ranks' mean times
//   nccl-tests  the *_perf programs 2.19: out of place and in place in one row; the time is the
//   mean
//               over the ranks' mean times (its -a 1), algbw and busbw follow from that time
//   osu         the OSU micro-benchmarks 7.4: the size is bytes per rank, for
//               reduce_scatter the whole input; average, minimum and
//               maximum are over the ranks' mean times
// Pure text; nothing is printed here. Thread safe.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/output/collective_view.h"
#include "client/output/job_table.h"
#include "param/v1/job.pb.h"

namespace param {

enum class Convention { kParam, kNcclTests, kOsu };

// "param", "nccl-tests", "osu", in the order of the enum.
std::vector<std::string> ConventionNames();
// INVALID_ARGUMENT with "did you mean".
absl::StatusOr<Convention> ConventionFromName(absl::string_view name);

// INVALID_ARGUMENT with what the tool has no word for: another benchmark, an operation, a type, a
// reduction, or cases that differ in a parameter that the table has no column for. Needs the cases'
// parameters alone, so it can be asked before a job is submitted.
absl::Status CheckConvention(Convention convention, absl::string_view benchmark,
                             const CaseList& cases);

struct ConventionText {
  std::string text;
  std::vector<std::string> notes;  // cases that have no row and why; for standard error
};

// `full`: with the columns of OSU's -f; the others have none. Errors as CheckConvention.
absl::StatusOr<ConventionText> RenderConvention(Convention convention,
                                                const v1::GetJobResponse& response, bool full);

}  // namespace param
