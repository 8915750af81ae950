#pragma once
// Which waiting jobs start now and where: all nodes or none, in order of priority and age. Pure.
//
// A job that waits for nodes holds back the free ones it could use, so younger and smaller jobs
// cannot starve it; a job that the whole fleet could not run holds nothing back.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/job.h"
#include "server/core/node_table.h"

namespace param {

// A job that waits, with what placement needs to know of it.
struct Waiting {
  const Job* job = nullptr;
  Footprint footprint;  // the largest of its cases, per rank
};

// Where a job goes.
struct Placement {
  std::string job_id;
  std::string device_backend;
  std::vector<std::string> comm_backends;
  std::vector<RankPlace> ranks;  // by node in natural order, then local rank
  bool oversubscribed = false;
};

struct PlacementPlan {
  std::vector<Placement> placed;
  std::map<std::string, std::string> reasons;  // of those that wait, by job id
};

// `waiting` in any order. Takes the fleet as it is and changes nothing.
PlacementPlan PlanPlacements(std::vector<Waiting> waiting,
                             const std::map<std::string, NodeEntry>& fleet);

// What can be said at submit: an error when no node of the fleet that the job may use could ever
// run it (backend not usable, footprint larger than memory, both numbers in the message). A fleet
// that is too small now is no error.
absl::Status CheckSatisfiable(const Job& job, const std::vector<CaseRecord>& cases,
                              const std::map<std::string, NodeEntry>& fleet);

// The largest number of ranks that the job can get on the fleet as it is; 0 where nobody can say
// yet (the ranks per node are the backend's choice and too few nodes are there to ask).
std::int64_t LargestWorld(const Waiting& waiting, const std::map<std::string, NodeEntry>& fleet);

// The largest footprint of the cases, per rank.
absl::StatusOr<Footprint> LargestFootprint(const BenchmarkSpec& bench,
                                           const std::vector<CaseRecord>& cases,
                                           const JobSpec& spec);

}  // namespace param
