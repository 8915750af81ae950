#pragma once
// What `submit` and `job results` can show beside their usual report: --convention and --plot.

#include <vector>

#include "client/cmd/command.h"
#include "client/output/job_table.h"
#include "param/v1/job.pb.h"

namespace param {

std::vector<Flag> ViewFlags();
Flag PlotFlag();

// Before anything is asked of the coordinator: views go with text alone.
absl::Status CheckViewFlags(const Context& context);

// What the views cannot show of these cases; needs their parameters alone.
absl::Status CheckViews(const Context& context, absl::string_view benchmark, const CaseList& cases);

// True when --convention replaces the report and the rows of a running job.
bool ReplacesReport(const Context& context);

// The table of --convention, or the report with the plot of --plot below it. CheckViews passed.
void PrintViews(Context& context, const v1::GetJobResponse& response);

// The curves of two jobs in the same plots. Jobs without a sweep get a hint instead.
void PrintPlots(Context& context, const v1::GetJobResponse& a, const v1::GetJobResponse& b);

}  // namespace param
