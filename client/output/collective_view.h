#pragma once
// A collective's case as its tables, plots and other tools' formats need it. Pure functions over
// wire messages.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "param/v1/job.pb.h"
#include "param/v1/result.pb.h"
#include "proto/catalog/collective_math.h"

namespace param {

// The benchmark's name in jobs.
inline constexpr absl::string_view kCollective = "collective";

struct CollectiveView {
  const v1::CaseResult* result = nullptr;  // borrowed
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::string dtype;                  // "f32"
  std::string redop;                  // "sum"
  std::int64_t root = 0;              // as asked for; means something where HasRoot(op)
  bool in_place = false;              // as asked for
  std::int64_t size = 0;              // S as asked for, bytes
  std::int64_t element_bytes = 0;     // of dtype
  double bytes_total = 0;             // what was moved; NaN when the case has no measurements
  double bytes_per_rank = 0;          // one rank's share; NaN as well
  const v1::Summary* time = nullptr;  // s, sample i the slowest rank's; null when not measured
  double algbw = 0, busbw = 0;        // B/s at the median; NaN when not measured
};

// INVALID_ARGUMENT when a parameter is missing or unknown to this program.
absl::StatusOr<CollectiveView> ViewCollective(const v1::CaseResult& result);

// All cases of the job; INVALID_ARGUMENT when it is no job of `collective`.
absl::StatusOr<std::vector<CollectiveView>> ViewCollectives(const v1::GetJobResponse& response);

// Bytes of an element of "f32", "bf16", "f8e4m3", ...; 0 for an unknown name.
std::int64_t ElementBytes(absl::string_view dtype);

// Each rank's mean time in s, in the order of ranks. The mean over all ranks alone where nothing is
// known of single ranks (an imported result); empty when there are no times.
std::vector<double> RankMeanTimes(const v1::CaseResult& result);

// Samples per rank; 0 when there are no times.
std::int64_t SamplesPerRank(const v1::CaseResult& result);

}  // namespace param
