#include "server/store/migrate.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status.h"
#include "proto/catalog/derived.h"

namespace param {
namespace {

absl::Status ApplyMissing(Connection& db, absl::Span<const EmbeddedFile> all) {
  PARAM_ASSIGN_OR_RETURN(const std::string text, db.ExecForText("PRAGMA user_version"));
  std::size_t have = 0;
  if (!absl::SimpleAtoi(text, &have)) {
    return absl::DataLossError(absl::StrCat(db.path(), ": schema version ", text));
  }
  if (have > all.size()) {
    return absl::FailedPreconditionError(absl::StrCat(db.path(), ": its schema is version ", have,
                                                      ", this program knows ", all.size(),
                                                      "; start a newer param-server"));
  }
  for (std::size_t i = have; i < all.size(); ++i) {
    PARAM_RETURN_IF_ERROR(db.Exec(all[i].text), "migration ", all[i].name);
    PARAM_RETURN_IF_ERROR(db.Exec(absl::StrCat("PRAGMA user_version=", i + 1)));
  }
  return absl::OkStatus();
}

// Runs `change` in one transaction.
template <typename Change>
absl::Status Transact(Connection& db, Change change) {
  PARAM_RETURN_IF_ERROR(db.Exec("BEGIN IMMEDIATE"));
  absl::Status status = change();
  if (status.ok()) status = db.Exec("COMMIT");
  if (!status.ok() && db.InTransaction())
    (void)db.Exec("ROLLBACK");  // the first error is the cause
  return status;
}

}  // namespace

absl::Status Migrate(Connection& db, absl::Span<const EmbeddedFile> all) {
  return Transact(db, [&] { return ApplyMissing(db, all); });
}

absl::Status RemakeResultViews(Connection& db) {
  std::vector<std::string> old;
  {
    Call call(db, "list_result_views");
    while (call.Next()) old.push_back(call.ReadText());
    PARAM_RETURN_IF_ERROR(call.status());
  }
  return Transact(db, [&]() -> absl::Status {
    for (const std::string& name : old) {
      PARAM_RETURN_IF_ERROR(
          db.Exec(absl::StrCat("DROP VIEW \"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"")));
    }
    for (const BenchmarkSpec* bench : AllBenchmarks()) {
      PARAM_RETURN_IF_ERROR(db.Exec(ResultViewSql(*bench)), "view of ", bench->id);
    }
    return absl::OkStatus();
  });
}

}  // namespace param
