#pragma once
// `paramctl report`: a job as one HTML document that needs nothing but itself.

#include <string>

#include "param/v1/job.pb.h"

namespace param {

// Facts, failure, curves, cases, ranks against each other, environment and the command that repeats
// it. Pure; every text from outside is escaped.
std::string RenderHtmlReport(const v1::GetJobResponse& response);

}  // namespace param
