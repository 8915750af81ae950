#include "server/store/database.h"

#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"

namespace param {
namespace {

constexpr absl::string_view kFaultUrl = "param/database-fault";
constexpr absl::string_view kNameMark = "-- name: ";

// The primary code and what it is for us: code and kind of fault ("" for none).
std::pair<absl::StatusCode, absl::string_view> Meaning(int code) {
  if (code == SQLITE_CONSTRAINT_FOREIGNKEY) return {absl::StatusCode::kNotFound, ""};
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {absl::StatusCode::kUnavailable, "busy"};
    case SQLITE_CONSTRAINT:
      return {absl::StatusCode::kAlreadyExists, ""};
    case SQLITE_FULL:
      return {absl::StatusCode::kResourceExhausted, "full"};
    case SQLITE_IOERR:
      return {absl::StatusCode::kResourceExhausted, "io"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {absl::StatusCode::kDataLoss, "corrupt"};
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return {absl::StatusCode::kFailedPrecondition, "other"};
    default:
      return {absl::StatusCode::kInternal, "other"};
  }
}

}  // namespace

absl::Status SqliteStatus(sqlite3* db, int code, absl::string_view what) {
  if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return absl::OkStatus();
  auto [status_code, fault] = Meaning(code);
  const char* const path = db == nullptr ? nullptr : sqlite3_db_filename(db, "main");
  std::string text = absl::StrCat(path == nullptr ? "" : path, path == nullptr ? "" : ": ", what,
                                  ": ", db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db));
  // "disk I/O error" alone does not tell a person what to do.
  if (const int error_number = db == nullptr ? 0 : sqlite3_system_errno(db);
      fault == "io" && error_number != 0) {
    absl::StrAppend(&text, " (", ErrnoStatus(error_number, "system").message(), ")");
    if (error_number == ENOSPC || error_number == EDQUOT) fault = "full";
  }
  absl::Status status(status_code, text);
  if (!fault.empty()) status.SetPayload(kFaultUrl, absl::Cord(fault));
  return status;
}

std::string DatabaseFault(const absl::Status& status) {
  const auto payload = status.GetPayload(kFaultUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::StatusOr<std::map<std::string, std::string>> NamedStatements(
    absl::Span<const EmbeddedFile> files) {
  std::map<std::string, std::string> statements;
  for (const EmbeddedFile& file : files) {
    std::string* current = nullptr;
    for (absl::string_view text_line : absl::StrSplit(file.text, '\n')) {
      if (absl::ConsumePrefix(&text_line, kNameMark)) {
        const auto [it, is_new] = statements.emplace(std::string(text_line), "");
        if (!is_new) {
          return absl::InternalError(absl::StrCat(file.path, ": a second ", text_line));
        }
        current = &it->second;
      } else if (current != nullptr) {
        absl::StrAppend(current, text_line, "\n");
      }
    }
  }
  return statements;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path) {
  Handle<SqliteTraits> db;
  const int code =
      sqlite3_open_v2(path.c_str(), db.out(),
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    return Annotate(SqliteStatus(nullptr, code, "cannot open"), path);
  }
  sqlite3_extended_result_codes(db.get(), 1);
  std::unique_ptr<Connection> connection(new Connection(path, std::move(db)));
  // Waits for a checkpoint of another connection rather than fail.
  PARAM_RETURN_IF_ERROR(connection->Exec("PRAGMA busy_timeout=10000"));
  PARAM_RETURN_IF_ERROR(connection->Exec("PRAGMA foreign_keys=ON"));
  return connection;
}

absl::Status Connection::Exec(absl::string_view sql) {
  const std::string text(sql);
  const int code = sqlite3_exec(db_.get(), text.c_str(), nullptr, nullptr, nullptr);
  return SqliteStatus(db_.get(), code, text.substr(0, text.find('\n')));
}

absl::StatusOr<std::string> Connection::ExecForText(absl::string_view sql) {
  const std::string text(sql);
  std::string value;
  const auto read = [](void* out, int columns, char** cells, char** /*names*/) {
    if (columns > 0 && cells[0] != nullptr) *static_cast<std::string*>(out) = cells[0];
    return 0;
  };
  const int code = sqlite3_exec(db_.get(), text.c_str(), read, &value, nullptr);
  PARAM_RETURN_IF_ERROR(SqliteStatus(db_.get(), code, text));
  return value;
}

absl::Status Connection::Prepare(const std::map<std::string, std::string>& statements) {
  for (const auto& [name, sql] : statements) {
    Handle<StatementTraits> statement;
    const int code = sqlite3_prepare_v3(db_.get(), sql.c_str(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, statement.out(), nullptr);
    PARAM_RETURN_IF_ERROR(SqliteStatus(db_.get(), code, name), "preparing");
    statements_[name] = std::move(statement);
  }
  return absl::OkStatus();
}

Call::Call(Connection& db, absl::string_view name) : db_(db), name_(name) {
  const auto it = db.statements_.find(name);
  if (it == db.statements_.end()) {
    status_ = absl::InternalError(absl::StrCat("no statement ", name));
    return;
  }
  statement_ = it->second.get();
}

Call::~Call() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Call::Check(int code) {
  if (status_.ok()) status_ = SqliteStatus(db_.raw(), code, name_);
}

Call& Call::Text(absl::string_view value) {
  if (!status_.ok()) return *this;
  Check(sqlite3_bind_text64(statement_, ++bound_, value.empty() ? "" : value.data(), value.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Call& Call::Blob(absl::string_view value) {
  if (!status_.ok()) return *this;
  Check(sqlite3_bind_blob64(statement_, ++bound_, value.empty() ? "" : value.data(), value.size(),
                            SQLITE_TRANSIENT));
  return *this;
}

Call& Call::Int(std::int64_t value) {
  if (status_.ok()) Check(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

Call& Call::Real(double value) {
  if (status_.ok()) Check(sqlite3_bind_double(statement_, ++bound_, value));
  return *this;
}

absl::Status Call::Run() {
  while (Next()) {
  }
  return status_;
}

absl::Status Call::RunAgain() {
  PARAM_RETURN_IF_ERROR(Run());
  sqlite3_reset(statement_);
  bound_ = 0;
  return absl::OkStatus();
}

bool Call::Next() {
  if (!status_.ok()) return false;
  column_ = 0;
  const int code = sqlite3_step(statement_);
  Check(code);
  return code == SQLITE_ROW;
}

std::string Call::ReadText() {
  const int column = column_++;
  const void* const data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr
             ? std::string()
             : std::string(static_cast<const char*>(data), static_cast<std::size_t>(size));
}

std::int64_t Call::ReadInt() { return sqlite3_column_int64(statement_, column_++); }

double Call::ReadReal() {
  const int column = column_++;
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(statement_, column);
}

}  // namespace param
