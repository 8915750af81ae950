#include "server/store/sqlite_store.h"

#include <sys/stat.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "server/store/lock_file.h"
#include "server/store/migrate.h"
#include "server/store/reads.h"
#include "server/store/writes.h"

namespace param {
namespace {

// A transaction's size: large enough to share the fsync, small enough that nobody waits long.
constexpr std::size_t kMaxGroupBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxIdleReaders = 4;

absl::Status PrepareWriter(Connection& db, const SqliteStoreOptions& options) {
  PARAM_ASSIGN_OR_RETURN(const std::string mode, db.ExecForText("PRAGMA journal_mode=WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(absl::StrCat(
        db.path(), ": no write-ahead log here (journal mode ", mode, "); use a local file system"));
  }
  PARAM_RETURN_IF_ERROR(db.Exec("PRAGMA synchronous=FULL"));
  // What a checkpoint leaves behind is cut back to this.
  PARAM_RETURN_IF_ERROR(db.Exec("PRAGMA journal_size_limit=67108864"));
  PARAM_RETURN_IF_ERROR(db.Exec("PRAGMA cache_size=-65536"));
  if (options.max_pages > 0) {
    PARAM_RETURN_IF_ERROR(db.Exec(absl::StrCat("PRAGMA max_page_count=", options.max_pages)));
  }
  return absl::OkStatus();
}

std::int64_t FileBytes(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::int64_t>(info.st_size) : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path,
                                                               SqliteStoreOptions options) {
  Parts parts = {path, std::move(options), Fd(), {}, nullptr};
  PARAM_ASSIGN_OR_RETURN(parts.lock, LockDatabase(path));
  PARAM_ASSIGN_OR_RETURN(parts.statements, NamedStatements(QueryFiles()));
  PARAM_ASSIGN_OR_RETURN(parts.writer, Connection::Open(path));
  PARAM_RETURN_IF_ERROR(PrepareWriter(*parts.writer, parts.options));
  PARAM_RETURN_IF_ERROR(Migrate(*parts.writer, MigrationFiles()));
  PARAM_RETURN_IF_ERROR(parts.writer->Prepare(parts.statements));
  PARAM_RETURN_IF_ERROR(RemakeResultViews(*parts.writer));
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(parts)));
}

SqliteStore::SqliteStore(Parts parts)
    : path_(std::move(parts.path)),
      options_(std::move(parts.options)),
      lock_(std::move(parts.lock)),
      statements_(std::move(parts.statements)),
      writer_(std::move(parts.writer)),
      writer_thread_([this] { RunWriter(); }) {}

SqliteStore::~SqliteStore() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  work_.NotifyAll();
  writer_thread_.join();
}

// ---- writing ---------------------------------------------------------------------------------

void SqliteStore::Submit(std::vector<Write> batch, Done done) {
  std::size_t bytes = 0;
  for (const Write& write : batch) bytes += ApproximateBytes(write);
  {
    const MutexLock lock(mu_);
    // One batch may be larger than the bound, or it could never be written.
    if (queued_bytes_ == 0 || queued_bytes_ + bytes <= options_.max_queued_bytes) {
      queued_bytes_ += bytes;
      queue_.push_back({std::move(batch), std::move(done), bytes, absl::OkStatus()});
      work_.NotifyOne();
      return;
    }
  }
  if (done) {
    done(absl::ResourceExhaustedError(absl::StrCat(path_, ": the disk does not keep up: more than ",
                                                   options_.max_queued_bytes,
                                                   " bytes wait to be written")));
  }
}

std::vector<SqliteStore::Pending> SqliteStore::TakeGroup() {
  std::vector<Pending> group;
  const MutexLock lock(mu_);
  while (queue_.empty() && !stopping_) work_.Wait(mu_);
  std::size_t bytes = 0;
  while (!queue_.empty() && (group.empty() || bytes + queue_.front().bytes <= kMaxGroupBytes)) {
    bytes += queue_.front().bytes;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return group;
}

void SqliteStore::RunWriter() {
  while (true) {
    std::vector<Pending> group = TakeGroup();
    if (group.empty()) return;  // stopping, and nothing is left
    const auto begin = std::chrono::steady_clock::now();
    CommitGroup(group);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (options_.on_commit) options_.on_commit(took.count());
    for (Pending& pending : group) {
      pending.batch.clear();
      {
        const MutexLock lock(mu_);
        queued_bytes_ -= pending.bytes;
      }
      if (pending.done) pending.done(std::move(pending.status));
    }
  }
}

void SqliteStore::CommitGroup(std::vector<Pending>& group) {
  std::vector<Pending*> all;
  for (Pending& pending : group) all.push_back(&pending);
  absl::Status status = TryCommit(all);
  if (status.ok()) return;
  if (group.size() == 1) {
    group.front().status = std::move(status);
    return;
  }
  // The transaction failed as a whole, for example for want of space: those that fit alone go in.
  for (Pending* pending : all) {
    status = TryCommit({pending});
    if (!status.ok()) pending->status = std::move(status);
  }
}

absl::Status SqliteStore::TryCommit(std::vector<Pending*> group) {
  absl::Status status = Call(*writer_, "begin_write").Run();
  if (status.ok()) status = ApplyBatches(group);
  if (status.ok()) status = Call(*writer_, "commit").Run();
  if (status.ok()) return status;
  ReportFault(status);
  // SQLite ends the transaction by itself after some errors; otherwise it is open still.
  if (writer_->InTransaction()) (void)Call(*writer_, "rollback").Run();
  return status;
}

// Fails only when the transaction is gone; what is wrong with one batch is kept in its status.
absl::Status SqliteStore::ApplyBatches(const std::vector<Pending*>& group) {
  for (Pending* pending : group) {
    PARAM_RETURN_IF_ERROR(Call(*writer_, "begin_batch").Run());
    pending->status = ApplyOne(*pending);
    if (!pending->status.ok()) {
      if (!writer_->InTransaction()) return pending->status;
      ReportFault(pending->status);
      PARAM_RETURN_IF_ERROR(Call(*writer_, "undo_batch").Run());
    }
    PARAM_RETURN_IF_ERROR(Call(*writer_, "keep_batch").Run());
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::ApplyOne(Pending& pending) {
  for (const Write& write : pending.batch) PARAM_RETURN_IF_ERROR(ApplyWrite(*writer_, write));
  return absl::OkStatus();
}

void SqliteStore::ReportFault(const absl::Status& status) const {
  const std::string kind = DatabaseFault(status);
  if (!kind.empty() && options_.on_fault) options_.on_fault(kind);
}

// ---- reading ---------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Connection>> SqliteStore::TakeReader() {
  {
    const MutexLock lock(readers_mu_);
    if (!idle_readers_.empty()) {
      std::unique_ptr<Connection> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  // As many as there are threads that read at once; only a few are kept.
  PARAM_ASSIGN_OR_RETURN(std::unique_ptr<Connection> reader, Connection::Open(path_));
  PARAM_RETURN_IF_ERROR(reader->Prepare(statements_));
  PARAM_RETURN_IF_ERROR(reader->Exec("PRAGMA query_only=ON"));
  return reader;
}

void SqliteStore::GiveBack(std::unique_ptr<Connection> reader) {
  const MutexLock lock(readers_mu_);
  if (idle_readers_.size() < kMaxIdleReaders) idle_readers_.push_back(std::move(reader));
}

template <typename Read>
auto SqliteStore::WithReader(Read read) -> decltype(read(std::declval<Connection&>())) {
  PARAM_ASSIGN_OR_RETURN(std::unique_ptr<Connection> reader, TakeReader());
  PARAM_RETURN_IF_ERROR(Call(*reader, "begin_read").Run());
  auto result = read(*reader);
  // A connection whose transaction does not end is closed instead of kept.
  if (Call(*reader, "commit").Run().ok()) GiveBack(std::move(reader));
  return result;
}

absl::StatusOr<Job> SqliteStore::GetJob(const std::string& job_id) {
  return WithReader([&](Connection& db) { return ReadJob(db, job_id); });
}

absl::StatusOr<Job> SqliteStore::FindByRequest(const std::string& request_id) {
  return WithReader([&](Connection& db) { return ReadJobOfRequest(db, request_id); });
}

absl::StatusOr<std::vector<Job>> SqliteStore::ListJobs(const JobFilter& filter) {
  return WithReader([&](Connection& db) { return ReadJobs(db, filter); });
}

absl::StatusOr<std::vector<CaseRecord>> SqliteStore::GetCases(const std::string& job_id) {
  return WithReader([&](Connection& db) { return ReadCases(db, job_id); });
}

absl::StatusOr<std::vector<Attempt>> SqliteStore::GetAttempts(const std::string& job_id) {
  return WithReader([&](Connection& db) { return ReadAttempts(db, job_id); });
}

absl::StatusOr<std::vector<RankEvent>> SqliteStore::GetRankEvents(const AttemptKey& key) {
  return WithReader([&](Connection& db) { return ReadRankEvents(db, key); });
}

absl::StatusOr<std::vector<RankEnvironment>> SqliteStore::GetEnvironment(const AttemptKey& key) {
  return WithReader([&](Connection& db) { return ReadEnvironment(db, key); });
}

absl::StatusOr<std::vector<LogRow>> SqliteStore::GetLogs(const std::string& job_id, int rank,
                                                         int limit) {
  return WithReader([&](Connection& db) { return ReadLogs(db, job_id, rank, limit); });
}

absl::StatusOr<std::vector<ResultRow>> SqliteStore::ListResults(const ResultFilter& filter) {
  return WithReader([&](Connection& db) { return ReadResults(db, filter); });
}

absl::Status SqliteStore::ReadSamples(const std::string& job_id, SamplePosition from,
                                      const std::function<absl::Status(const SampleBlob&)>& each) {
  return WithReader([&](Connection& db) { return ReadSamplesFrom(db, job_id, from, each); });
}

absl::StatusOr<std::vector<NodeRecord>> SqliteStore::ListNodes() {
  return WithReader([](Connection& db) { return ReadNodes(db); });
}

std::int64_t SqliteStore::DatabaseBytes() const { return FileBytes(path_); }
std::int64_t SqliteStore::WalBytes() const { return FileBytes(absl::StrCat(path_, "-wal")); }

}  // namespace param
