#pragma once
// Following a job to its end: rows as cases finish, then the report or the document.

#include "client/cmd/command.h"
#include "param/v1/job.pb.h"

namespace param {

// Blocks until the job ends, or detaches on an interrupt (exit 0, saying how to watch or cancel).
// text, wide: a line per case as it ends (when there are several), then the report. csv: a row per
// case. jsonl: an object per case with its "attempt", at last {"job": ...}; cases that a retry
// repeats come once per attempt. json: one document at the end.
ExitCode FollowJob(Context& context, const v1::Job& job);

// The job's document, report or rows as of now.
void PrintJob(Context& context, const v1::GetJobResponse& response);

// A case of the job's present attempt as a line of jsonl.
std::string CaseLineOfJsonl(const v1::Job& job, const v1::CaseResult& result);

// The job with its cases and environment.
absl::StatusOr<v1::GetJobResponse> FetchJob(Context& context, const std::string& job_id);

}  // namespace param
