#pragma once
// How the ranks of a team go on together after a step that any of them may not have managed.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/bench/driver.h"

namespace param {

// What a step came to over all ranks.
struct Agreement {
  Outcome outcome = Outcome::kPassed;  // kPassed: go on; kSkipped or kFailed: the case ends here
  std::string reason;
};

// Collective over `team`, one exchange: every rank gives how its own step ended and learns how
// those of the others did, before anyone goes on.
//
// kFailed when a rank met an error that concerns only this case: INVALID_ARGUMENT, OUT_OF_RANGE,
// RESOURCE_EXHAUSTED. That rank gives its reason, the others name it: "rank 3: reason". Else
// kSkipped, with the first objection, when a rank cannot do it: UNIMPLEMENTED. Any other error of
// this rank concerns the device or the team: it comes back at once, without an exchange, and must
// fail the rank (which ends the others' wait). Errors of the team come back too.
absl::StatusOr<Agreement> AgreeOnStep(Team& team, const absl::Status& mine);

}  // namespace param
