#pragma once
// A job that has not ended, as the coordinator holds it. Private to server/core's coordinator
// files.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/core/coordinator.h"

namespace param {

struct Coordinator::OpenJob {
  Job job;
  const BenchmarkSpec* bench = nullptr;
  std::vector<CaseRecord> cases;  // the plan
  Footprint footprint;            // of the largest case, per rank

  // ---- of the current attempt ----
  std::unique_ptr<AttemptState> state;  // null while queued
  std::unique_ptr<ExchangeTable> exchange;
  Attempt attempt;
  std::string device_backend;
  std::vector<std::string> comm_backends;
  std::string launcher;                 // "": not planned yet
  LaunchPlan plan;                      // of a launcher with a head node
  std::unique_ptr<LaunchRelay> relay;   // the same; null for others: see RelayOf()
  std::set<std::string> start_due;      // nodes that came back and have not been told to start
  std::vector<std::uint64_t> accepted;  // by rank: highest event on its way to the store
  std::vector<std::shared_ptr<const CaseRecord>> done;  // ended cases, in order of ending
  std::size_t published = 0;                            // of them are stored and were fanned out
  std::set<std::string> alive_on;  // nodes where processes of the attempt may run
  std::vector<Write> unstored;     // results whose write failed: stored with the end of the job
  bool sent = false;               // agents were told to start
  bool lost = false;               // the failure was a lost agent: may be repeated
  int retries_used = 0;

  // ---- once it is being stopped ----
  bool stopping = false;
  std::optional<JobState> ending;  // CANCELLED or TIMED_OUT; else the attempt's failure decides
  std::string ending_reason;
  absl::Duration abort_at = absl::InfiniteDuration();   // monotonic: graceful stop becomes abort
  absl::Duration finish_at = absl::InfiniteDuration();  // monotonic: ends regardless
  bool finished = false;                                // its end is on the way to the store
  std::vector<Write> end_writes;
  absl::Duration end_retry_at = absl::InfiniteDuration();  // monotonic
};

}  // namespace param
