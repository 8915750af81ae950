#include "client/output/curves.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/output/case_view.h"
#include "client/output/collective_table.h"
#include "client/output/collective_view.h"
#include "client/output/convention_tools.h"
#include "client/output/job_table.h"
#include "proto/base/status.h"

namespace param {
namespace {

bool Drawable(const CollectiveView& view, double value) {
  return view.op != CollectiveOp::kBarrier && view.size > 0 && std::isfinite(value) && value > 0;
}

double TimeOf(const CollectiveView& view) { return view.time == nullptr ? 0 : view.time->p50(); }
double BandwidthOf(const CollectiveView& view) { return view.busbw; }

Chart ChartOf(const std::vector<std::vector<CollectiveView>>& sweeps,
              const std::vector<std::string>& shown, std::string title, std::string unit,
              double (*value)(const CollectiveView&)) {
  Chart chart{std::move(title), std::move(unit), {}};
  for (const std::vector<CollectiveView>& sweep : sweeps) {
    Curve curve{SweepTitle(*sweep.front().result, shown), {}};
    for (const CollectiveView& view : sweep) {
      if (Drawable(view, value(view))) {
        curve.points.emplace_back(static_cast<double>(view.size), value(view));
      }
    }
    std::sort(curve.points.begin(), curve.points.end());
    if (!curve.points.empty()) chart.curves.push_back(std::move(curve));
  }
  return chart;
}

void Append(const std::vector<Chart>& from, absl::string_view side, std::vector<Chart>* out) {
  for (const Chart& chart : from) {
    auto into = std::find_if(out->begin(), out->end(),
                             [&chart](const Chart& one) { return one.title == chart.title; });
    if (into == out->end()) into = out->insert(out->end(), {chart.title, chart.unit, {}});
    for (const Curve& curve : chart.curves) {
      into->curves.push_back({absl::StrCat(side, " ", curve.label), curve.points});
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<Chart>> ChartsOf(const v1::GetJobResponse& response) {
  PARAM_ASSIGN_OR_RETURN(const std::vector<CollectiveView> views, ViewCollectives(response));
  const std::vector<std::string> shown = ShownParams(SpecOf(kCollective), ListCases(response));
  const auto sweeps = GroupBy(
      views, [&shown](const CollectiveView& view) { return SweepTitle(*view.result, shown); });
  std::vector<Chart> charts = {ChartOf(sweeps, shown, "time p50", "s", TimeOf),
                               ChartOf(sweeps, shown, "bus bandwidth", "B/s", BandwidthOf)};
  std::erase_if(charts, [](const Chart& chart) { return chart.curves.empty(); });
  return charts;
}

std::vector<Chart> SideBySide(const std::vector<Chart>& a, const std::vector<Chart>& b) {
  std::vector<Chart> out;
  Append(a, "A", &out);
  Append(b, "B", &out);
  return out;
}

}  // namespace param
