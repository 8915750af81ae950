#pragma once
// The coordinator's memory, owned by core and implemented elsewhere: SQLite in production, a twin
// in memory for tests. Both pass tests/contract/store_contract_test.cc.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/job.h"

namespace param {

// ---- writes: a batch is atomic, batches apply in the order they were given --------------------

struct PutJob {  // insert or replace by job_id; ALREADY_EXISTS when another job has its request_id
  Job job;
};
struct PutCases {  // the plan, once, before any result
  std::string job_id;
  std::vector<CaseRecord> cases;
};
struct PutAttempt {  // insert or replace
  Attempt attempt;
};
struct AppendRankEvents {  // what is there already (same key, rank, seq) is left as it is
  std::vector<RankEvent> events;
};
// The end of a case: its status, summaries and samples; replaces what an earlier attempt stored.
struct PutCaseResult {
  AttemptKey key;
  CaseRecord result;
  std::vector<SampleBlob> samples;
};
struct PutEnvironment {
  AttemptKey key;
  RankEnvironment environment;
};
struct AppendLogs {  // idempotent by (attempt, rank, seq)
  std::string job_id;
  std::vector<LogRow> lines;
};
struct PurgeRankEvents {  // the attempt ended, its results are stored
  AttemptKey key;
};
struct PutNode {  // insert or replace
  NodeRecord node;
};

using Write = std::variant<PutJob, PutCases, PutAttempt, AppendRankEvents, PutCaseResult,
                           PutEnvironment, AppendLogs, PurgeRankEvents, PutNode>;

struct JobFilter {
  std::vector<JobState> states;  // empty: all
  std::string benchmark;         // "": all
  int limit = 50;
};
struct ResultFilter {
  std::string benchmark, case_id, node;  // "": all
  int limit = 100;
};
struct ResultRow {
  Job job;
  CaseRecord result;
};
// Where reading a job's samples begins.
struct SamplePosition {
  int case_index = 0;
  int rank = 0;
  friend auto operator<=>(const SamplePosition&, const SamplePosition&) = default;
};

// Thread safe. Reads block and see every write whose `done` was called.
class Store {
 public:
  using Done = std::function<void(absl::Status)>;
  virtual ~Store() = default;

  // Queues a batch; `done` is called once, after it is on disk or failed as a whole, possibly from
  // another thread, possibly before this returns. Never blocks on the disk.
  virtual void Submit(std::vector<Write> batch, Done done) = 0;

  virtual absl::StatusOr<Job> GetJob(const std::string& job_id) = 0;               // NOT_FOUND
  virtual absl::StatusOr<Job> FindByRequest(const std::string& request_id) = 0;    // NOT_FOUND
  virtual absl::StatusOr<std::vector<Job>> ListJobs(const JobFilter& filter) = 0;  // newest first
  // Cases in order, with results where they ended (measurements of the job's latest attempt).
  virtual absl::StatusOr<std::vector<CaseRecord>> GetCases(const std::string& job_id) = 0;
  virtual absl::StatusOr<std::vector<Attempt>> GetAttempts(const std::string& job_id) = 0;
  // In the order they came: (received_ns, rank, seq).
  virtual absl::StatusOr<std::vector<RankEvent>> GetRankEvents(const AttemptKey& key) = 0;
  virtual absl::StatusOr<std::vector<RankEnvironment>> GetEnvironment(const AttemptKey& key) = 0;
  // The last `limit` lines (rank -1: of all ranks), oldest first.
  virtual absl::StatusOr<std::vector<LogRow>> GetLogs(const std::string& job_id, int rank,
                                                      int limit) = 0;
  // Ended cases of finished jobs, newest first.
  virtual absl::StatusOr<std::vector<ResultRow>> ListResults(const ResultFilter& filter) = 0;
  // Blobs in order of (case, rank, metric, labels), of the job's latest attempt, one call each,
  // from `from` on. An error of `each` ends it and is returned: who wants a part stops so, and
  // begins the next part at a position.
  virtual absl::Status ReadSamples(const std::string& job_id, SamplePosition from,
                                   const std::function<absl::Status(const SampleBlob&)>& each) = 0;
  virtual absl::StatusOr<std::vector<NodeRecord>> ListNodes() = 0;
};

}  // namespace param
