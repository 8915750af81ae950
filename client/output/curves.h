#pragma once
// A job's sweep over sizes as curves: what --plot, the comparison and the HTML report draw. Pure.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "param/v1/job.pb.h"

namespace param {

struct Curve {
  std::string label;                              // "all_reduce f32"
  std::vector<std::pair<double, double>> points;  // ascending x
};

// One quantity over size: a chart with one curve for each operation and type.
struct Chart {
  std::string title;  // "time p50", "bus bandwidth"
  std::string unit;   // base unit of y: "s", "B/s"
  std::vector<Curve> curves;
};

// Time and bus bandwidth over size, in that order, of the cases that have them. Charts without any
// point are left out (barriers have no size and no bandwidth). INVALID_ARGUMENT when the job is
// none of `collective`.
absl::StatusOr<std::vector<Chart>> ChartsOf(const v1::GetJobResponse& response);

// The charts of two jobs in one: curves are labelled "A ..." and "B ...".
std::vector<Chart> SideBySide(const std::vector<Chart>& a, const std::vector<Chart>& b);

}  // namespace param
