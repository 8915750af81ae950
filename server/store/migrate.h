#pragma once
// Brings a database to the schema that this program knows.

#include "absl/status/status.h"
#include "server/store/database.h"

namespace param {

// Forward only, in one transaction: after an error the file is as it was. `all` is numbered 1..n. A
// schema newer than that is FAILED_PRECONDITION: an older program must not write to it.
absl::Status Migrate(Connection& db, absl::Span<const EmbeddedFile> all);

// Drops the views named result_* and makes those of the catalogue. They are derived: a database
// written by another version of the catalogue gets this one's.
absl::Status RemakeResultViews(Connection& db);

}  // namespace param
