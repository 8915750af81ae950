#pragma once
// SQLite as the store uses it: connections with named, prepared statements; bound parameters only.

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/handle.h"
#include "server/store/sql_files.h"

namespace param {

struct SqliteTraits {
  using Type = sqlite3*;
  static Type Null() { return nullptr; }
  static void Close(Type db) noexcept { sqlite3_close_v2(db); }
};
struct StatementTraits {
  using Type = sqlite3_stmt*;
  static Type Null() { return nullptr; }
  static void Close(Type statement) noexcept { sqlite3_finalize(statement); }
};

// The error of the last call on `db` in our codes, with the file's path. A foreign key that points
// nowhere is NOT_FOUND, any other constraint ALREADY_EXISTS, a full or failing disk
// RESOURCE_EXHAUSTED, a damaged file DATA_LOSS. Faults of the database (not constraints) carry
// their kind, see DatabaseFault.
absl::Status SqliteStatus(sqlite3* db, int code, absl::string_view what);

// "busy", "full", "io", "corrupt", "other" for a fault of the database, else "".
std::string DatabaseFault(const absl::Status& status);

// Statements by name, as the files of sql/queries hold them.
absl::StatusOr<std::map<std::string, std::string>> NamedStatements(
    absl::Span<const EmbeddedFile> files);

// One connection. Not thread safe: one thread at a time.
class Connection {
 public:
  // Opens or makes the file; foreign keys on, extended codes on.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path);

  // For pragmas, migrations and views; never for text from outside.
  absl::Status Exec(absl::string_view sql);
  // The one value of a pragma or query, as text.
  absl::StatusOr<std::string> ExecForText(absl::string_view sql);

  // Prepares every named statement, once.
  absl::Status Prepare(const std::map<std::string, std::string>& statements);

  sqlite3* raw() const { return db_.get(); }
  const std::string& path() const { return path_; }
  // False when no transaction is open: some errors end it by themselves.
  bool InTransaction() const { return sqlite3_get_autocommit(db_.get()) == 0; }

 private:
  friend class Call;
  Connection(const std::string& path, Handle<SqliteTraits> db) : path_(path), db_(std::move(db)) {}

  const std::string path_;
  Handle<SqliteTraits> db_;
  std::map<std::string, Handle<StatementTraits>, std::less<>> statements_;  // closed before db_
};

// One use of a named statement. Parameters are bound in order; then either Run(), or Next() while
// it is true, each row read column by column in order, and status() at the end.
class Call {
 public:
  // An unknown name is INTERNAL.
  Call(Connection& db, absl::string_view name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Call& Text(absl::string_view value);
  Call& Blob(absl::string_view value);
  Call& Int(std::int64_t value);
  Call& Real(double value);  // NaN becomes NULL

  // Executes a statement that gives no rows, or whose rows do not matter.
  absl::Status Run();
  // Executes and makes the statement ready for the next set of parameters.
  absl::Status RunAgain();

  bool Next();  // false at the end and on errors
  absl::Status status() const { return status_; }

  std::string ReadText();
  std::string ReadBlob() { return ReadText(); }
  std::int64_t ReadInt();
  int ReadSmallInt() { return static_cast<int>(ReadInt()); }
  double ReadReal();  // NULL becomes NaN

 private:
  void Check(int code);

  Connection& db_;
  const absl::string_view name_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  int column_ = 0;
  absl::Status status_;
};

}  // namespace param
