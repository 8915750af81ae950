#pragma once
// Tables of jobs and their cases.

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/output/table.h"
#include "param/v1/job.pb.h"
#include "param/v1/node.pb.h"
#include "param/v1/result.pb.h"

namespace param {

using CaseList = std::vector<const v1::CaseResult*>;
CaseList ListCases(const v1::GetJobResponse& response);

// For people: one row per case with the parameters that matter, the median time, its spread, the
// rate, the share of the peak where known, the slowest rank, the reason of what did not pass.
Table CaseTable(const v1::Job& job, const CaseList& cases);

// For programs: every parameter and every statistic of every metric over all ranks. The columns
// follow from the benchmark alone, so rows can be written as cases finish.
Table CaseCsvTable(const v1::Job& job, const CaseList& cases);

// Nodes against each other; no rows for fewer than two nodes. At most `limit` rows, the slowest.
Table NodeTimeTable(const v1::Job& job, const CaseList& cases, std::size_t limit);

// One line for a case that just ended: "[2/6] PASSED  m=64 n=64  12.3 us  1.2 GFLOP/s"; of ranks
// that work together all rates, named.
std::string CaseLine(const v1::Job& job, const v1::CaseResult& result,
                     const std::vector<std::string>& shown_params, bool color);

Table JobsTable(const std::vector<v1::Job>& jobs, absl::Time now);
Table ResultsTable(const std::vector<v1::ResultRow>& rows, absl::Time now);
Table LogsTable(const std::vector<v1::LogRow>& rows);

// All samples, one row each.
Table SamplesTable(const v1::GetJobResponse& job, const std::vector<v1::SampleBlob>& blobs);

// "n2:1 +11.1%": the slowest rank and by how much; marked where that is more than noise.
Cell SlowestCell(const v1::CaseResult& result);

Style StyleOf(v1::CaseStatus status);
Style StyleOf(v1::JobState state);

// "12s", "5m", "3h", "12d" since `ns`; "-" for 0.
std::string AgeText(std::int64_t ns, absl::Time now);

}  // namespace param
