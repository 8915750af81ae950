#pragma once
// For people: the sweeps of a job of `collective`, one table for each operation and type.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/output/job_table.h"
#include "client/output/table.h"
#include "param/v1/job.pb.h"

namespace param {

// What the cases of one table have in common, and the rows: the size as asked for, what each rank
// holds and what is moved in all, median and 99th percentile of the time, both bandwidths, which
// rank is slowest.
struct CollectiveTable {
  std::string title;  // "all_reduce f32", "reduce f32 redop=max root=1"
  Table table;
};

// Cases with parameters that this program does not know are errors (INVALID_ARGUMENT): the caller
// shows them with CaseTable.
absl::StatusOr<std::vector<CollectiveTable>> CollectiveTables(const v1::GetJobResponse& response);

// "all_reduce f32", then what else tells this case from the others, besides its size.
std::string SweepTitle(const v1::CaseResult& result, const std::vector<std::string>& shown_params);

}  // namespace param
