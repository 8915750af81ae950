#pragma once
// What a person reads about a job: the table of its cases, its nodes against each other, how it
// ended and why, where it ran and the command that repeats it.

#include <ostream>
#include <string>
#include <vector>

#include "client/output/table.h"
#include "param/v1/job.pb.h"

namespace param {

// The whole report. Times of queueing and running follow from the job's timeline.
void PrintJobReport(const v1::GetJobResponse& response, const TextOptions& options,
                    std::ostream& out);

// Facts of the job without its cases, one per row: "fact" and "value".
Table JobFactsTable(const v1::GetJobResponse& response);

// `job show`: these, one per line.
void PrintJobFacts(const v1::GetJobResponse& response, const TextOptions& options,
                   std::ostream& out);

// "comm_init on n3 (rank 2): UNAVAILABLE: connection refused (10.0.0.3:4711, errno 111)".
std::string FailureText(const v1::Failure& failure);

// "n1, n2, n3 and 5 more".
std::string NamesText(const std::vector<std::string>& names, std::size_t limit);

// The command that repeats the job: of its only case in full, else as it was submitted; "" for
// results of another tool.
std::string RepeatCommand(const v1::GetJobResponse& response);

}  // namespace param
