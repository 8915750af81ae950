#pragma once
// Writes of the store as statements on one connection, inside the caller's transaction.

#include <cstddef>

#include "server/core/store.h"
#include "server/store/database.h"

namespace param {

// Errors: see checks.h and SqliteStatus. What a failed write left behind is undone by the caller.
absl::Status ApplyWrite(Connection& db, const Write& write);

// Roughly what a queued write keeps in memory, for the bound of the queue.
std::size_t ApproximateBytes(const Write& write);

}  // namespace param
