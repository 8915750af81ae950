#pragma once
// The environment variables of a worker: which ones it gets, and which ones its results name. One
// list, so that nothing that changes how libraries compute or talk reaches a rank unrecorded.

#include "absl/strings/string_view.h"

namespace param {

// Whether an agent hands the variable to its workers: what libraries and backends need, by an
// allow-list of names and prefixes. Never everything, since secrets live in environments; and not
// what would falsify times (CUDA_LAUNCH_BLOCKING).
bool ReachesWorker(absl::string_view name);

// Whether a rank's facts name the variable: those that reach a worker, but for what only says where
// things lie or how texts look (PATH, HOME, LANG, ...).
bool IsRecordedVariable(absl::string_view name);

// Whether the name says that the value is a secret (a key of a communication library, say): then
// the facts only say that it is set.
bool MayHoldSecret(absl::string_view name);

}  // namespace param
