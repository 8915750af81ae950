#pragma once
// The coordinator's records, as plain data. Invariants live in the state machines that own them.
// Times are ns since the epoch, 0 = not reached.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/catalog/cases.h"
#include "proto/line/messages.h"

namespace param {

enum class JobState { kQueued, kStarting, kRunning, kSucceeded, kFailed, kCancelled, kTimedOut };
absl::string_view JobStateName(JobState state);  // "QUEUED", ...
absl::StatusOr<JobState> JobStateFromName(absl::string_view name);
bool IsFinal(JobState state);

// What a user asked for.
struct JobSpec {
  std::string benchmark;
  GivenParams params;  // as typed
  int nodes = 1;
  int ranks_per_node = 0;  // 0: the backend's default
  std::string backend = "auto";
  std::vector<std::string> node_names;
  std::map<std::string, std::string> selector;
  int priority = 0;
  std::int64_t timeout_ns = 0;
  int retries = 0;
  std::string name;
  bool no_wait = false;
  std::map<std::string, std::int64_t> phase_deadlines_ns;
  std::string fake_script;
  std::string source = "cli";
  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// Why and where something failed. Empty code: nothing did.
struct Failure {
  std::string code;   // CodeName
  std::string phase;  // line::PhaseName
  std::string node;
  int rank = -1;
  std::string cause;
  std::string address;
  int error_number = 0;
  bool empty() const { return code.empty(); }
  friend bool operator==(const Failure&, const Failure&) = default;
};

// When a job reached each step, by the coordinator's wall clock: submitted and placed as it decided
// them; spawned, rendezvous and comm_init as the report of the last rank to end them was received;
// warmup and first_timed as that of the first rank to begin them was. Network and spool delay are
// part of it; the nodes' clocks are not, so that the steps of one job can be subtracted.
struct Timeline {
  std::int64_t submitted = 0, placed = 0, spawned = 0, rendezvous = 0, comm_init = 0, warmup = 0,
               first_timed = 0, finished = 0;
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

struct Job {
  std::string job_id;
  std::string request_id;
  std::string owner;  // principal
  JobSpec spec;
  int benchmark_version = 0;
  JobState state = JobState::kQueued;
  std::string reason;
  std::vector<std::string> nodes;  // placed on, in rank order; of the latest attempt
  int ranks = 0;
  std::string backend;  // resolved
  int attempt = 0;      // 0 until the first was placed
  Failure failure;
  Timeline timeline;
  int cases_total = 0, cases_done = 0;
  bool oversubscribed = false;
  friend bool operator==(const Job&, const Job&) = default;
};

struct RankPlace {
  int rank = 0;
  std::string node;
  int local_rank = 0;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

struct Attempt {
  std::string job_id;
  int attempt = 1;
  std::string state;  // OPEN, SUCCEEDED, FAILED, CANCELLED, TIMED_OUT, LOST
  std::vector<RankPlace> ranks;
  Failure failure;
  std::int64_t started_ns = 0, finished_ns = 0;
  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// Statistics of one metric's samples. Percentiles by linear interpolation, by value.
struct Summary {
  std::int64_t n = 0;
  double min = 0, p50 = 0, p75 = 0, p95 = 0, p99 = 0, max = 0, mean = 0, stdev = 0;
  // 95 % interval of the median, distribution-free; with fewer than 6 samples there is none, and
  // this is their range (see summary.h).
  double ci95_low = 0, ci95_high = 0;
  int slowest_rank = -1;
  friend bool operator==(const Summary&, const Summary&) = default;
};

struct Measurement {
  int rank = -1;  // -1: over all ranks
  std::string metric, unit;
  line::Labels labels;
  Summary summary;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

struct RankStatus {
  int rank = 0;
  std::string node;
  line::CaseStatus status = line::CaseStatus::kFailed;
  std::string reason;
  friend bool operator==(const RankStatus&, const RankStatus&) = default;
};

// A case of a job and, once it ended, its result.
struct CaseRecord {
  int index = 0;
  Case planned;
  bool ended = false;
  line::CaseStatus status = line::CaseStatus::kFailed;
  std::string reason;
  std::map<std::string, std::string> info;
  std::vector<Measurement> measurements;
  std::vector<RankStatus> ranks;
};

// All samples of one metric of one rank.
struct SampleBlob {
  int case_index = 0;
  int rank = 0;
  std::string metric;
  line::Labels labels;
  std::vector<double> values;
};

struct AttemptKey {
  std::string job_id;
  int attempt = 0;
  friend auto operator<=>(const AttemptKey&, const AttemptKey&) = default;
};

// What one rank reported: a worker's line with its identity.
struct RankEvent {
  AttemptKey key;
  int rank = 0;
  std::uint64_t seq = 0;
  std::int64_t received_ns = 0;  // the coordinator's clock
  std::string line;
  friend bool operator==(const RankEvent&, const RankEvent&) = default;
};

struct LogRow {
  int attempt = 0;
  int rank = 0;
  std::uint64_t seq = 0;
  std::int64_t time_ns = 0;
  std::string level, text;
  friend bool operator==(const LogRow&, const LogRow&) = default;
};

struct RankEnvironment {
  int rank = 0;
  std::map<std::string, std::string> facts;
  friend bool operator==(const RankEnvironment&, const RankEnvironment&) = default;
};

// What is kept of a node beyond its connection.
struct NodeRecord {
  std::string node;
  bool drained = false;
  std::string drain_reason;
  std::map<std::string, std::string> labels;  // set by operators
  std::string inventory_json;
  std::int64_t first_seen_ns = 0, last_seen_ns = 0;
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

}  // namespace param
