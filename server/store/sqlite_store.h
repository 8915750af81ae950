#pragma once
// The coordinator's memory in one SQLite file.
//
// Durability: WAL with synchronous=FULL, so that what was acknowledged survives the death of the
// process and of the machine. FULL costs one fsync per commit; one writer thread takes all batches
// that wait and commits them together, so the cost is shared by whoever is waiting, and a lone
// batch pays one fsync.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/base/sync.h"
#include "server/core/store.h"
#include "server/store/database.h"

namespace param {

struct SqliteStoreOptions {
  // Batches that wait or are being written. Above it a batch is refused at once with
  // RESOURCE_EXHAUSTED: memory stays bounded when the disk is slower than the fleet.
  std::size_t max_queued_bytes = std::size_t{256} << 20;
  // Called by the writer thread: seconds of each transaction; kind of each fault of the database
  // ("busy", "full", "io", "corrupt", "other"). May be empty.
  std::function<void(double seconds)> on_commit;
  std::function<void(absl::string_view kind)> on_fault;
  // Limit of the file in pages of 4 KiB; 0: none. How tests fill the disk.
  int max_pages = 0;
};

// Thread safe. `done` is called by the writer thread (or, when the batch is refused, by the caller
// before Submit returns); it may call back into the store, and should be quick. The destructor
// writes what is queued, then ends.
class SqliteStore final : public Store {
 public:
  // Opens or makes the file and brings it to the current schema. FAILED_PRECONDITION when another
  // process has it or its schema is newer, DATA_LOSS when it is damaged; messages name the path.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& path,
                                                           SqliteStoreOptions options = {});
  ~SqliteStore() override;
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  void Submit(std::vector<Write> batch, Done done) override;
  absl::StatusOr<Job> GetJob(const std::string& job_id) override;
  absl::StatusOr<Job> FindByRequest(const std::string& request_id) override;
  absl::StatusOr<std::vector<Job>> ListJobs(const JobFilter& filter) override;
  absl::StatusOr<std::vector<CaseRecord>> GetCases(const std::string& job_id) override;
  absl::StatusOr<std::vector<Attempt>> GetAttempts(const std::string& job_id) override;
  absl::StatusOr<std::vector<RankEvent>> GetRankEvents(const AttemptKey& key) override;
  absl::StatusOr<std::vector<RankEnvironment>> GetEnvironment(const AttemptKey& key) override;
  absl::StatusOr<std::vector<LogRow>> GetLogs(const std::string& job_id, int rank,
                                              int limit) override;
  absl::StatusOr<std::vector<ResultRow>> ListResults(const ResultFilter& filter) override;
  absl::Status ReadSamples(const std::string& job_id, SamplePosition from,
                           const std::function<absl::Status(const SampleBlob&)>& each) override;
  absl::StatusOr<std::vector<NodeRecord>> ListNodes() override;

  // Bytes on disk now: of the database, and of its write-ahead log.
  std::int64_t DatabaseBytes() const;
  std::int64_t WalBytes() const;

 private:
  struct Pending {
    std::vector<Write> batch;
    Done done;
    std::size_t bytes = 0;
    absl::Status status;
  };
  struct Parts {  // what Open() puts together
    std::string path;
    SqliteStoreOptions options;
    Fd lock;
    std::map<std::string, std::string> statements;
    std::unique_ptr<Connection> writer;
  };

  explicit SqliteStore(Parts parts);

  void RunWriter();
  std::vector<Pending> TakeGroup();
  void CommitGroup(std::vector<Pending>& group);
  absl::Status TryCommit(std::vector<Pending*> group);
  absl::Status ApplyBatches(const std::vector<Pending*>& group);
  absl::Status ApplyOne(Pending& pending);
  void ReportFault(const absl::Status& status) const;

  absl::StatusOr<std::unique_ptr<Connection>> TakeReader();
  void GiveBack(std::unique_ptr<Connection> reader);
  // Calls `read(connection)` in a transaction of its own.
  template <typename Read>
  auto WithReader(Read read) -> decltype(read(std::declval<Connection&>()));

  const std::string path_;
  const SqliteStoreOptions options_;
  const Fd lock_;  // until everything else is closed
  const std::map<std::string, std::string> statements_;
  const std::unique_ptr<Connection> writer_;  // used by the writer thread only

  Mutex mu_;
  CondVar work_;
  std::deque<Pending> queue_ PARAM_GUARDED_BY(mu_);
  std::size_t queued_bytes_ PARAM_GUARDED_BY(mu_) = 0;
  bool stopping_ PARAM_GUARDED_BY(mu_) = false;

  Mutex readers_mu_;
  std::vector<std::unique_ptr<Connection>> idle_readers_ PARAM_GUARDED_BY(readers_mu_);

  std::thread writer_thread_;  // last: it uses all of the above
};

}  // namespace param
