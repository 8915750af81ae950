#pragma once
// The SQL that is compiled in from sql/.

#include "absl/types/span.h"
#include "proto/base/embedded_file.h"

namespace param {

// sql/migrations/NNNN_*.sql in order, numbered from 1 without a gap.
absl::Span<const EmbeddedFile> MigrationFiles();

// sql/queries/*.sql: statements, each after a line "-- name: NAME".
absl::Span<const EmbeddedFile> QueryFiles();

}  // namespace param
