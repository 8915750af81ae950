#include "agent/bench/agreement.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace param {
namespace {

// The first byte of what a rank says; a rank without an objection says nothing.
constexpr char kSkip = 'S';
constexpr char kFail = 'F';
constexpr std::size_t kMaxReason = 2048;  // far below what an exchange takes

bool ConcernsOnlyTheCase(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

absl::StatusOr<Agreement> AgreeOnStep(Team& team, const absl::Status& mine) {
  std::string said;
  if (!mine.ok()) {
    if (!absl::IsUnimplemented(mine) && !ConcernsOnlyTheCase(mine)) return mine;
    said = absl::StrCat(std::string(1, absl::IsUnimplemented(mine) ? kSkip : kFail),
                        mine.message().substr(0, kMaxReason));
  }
  PARAM_ASSIGN_OR_RETURN(const std::vector<std::string> all, team.Gather(said));
  Agreement agreement;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const bool fails = all[rank].front() == kFail;
    if (agreement.outcome == Outcome::kFailed) break;
    if (agreement.outcome == Outcome::kSkipped && !fails) continue;
    agreement.outcome = fails ? Outcome::kFailed : Outcome::kSkipped;
    agreement.reason = all[rank].substr(1);
    if (fails) agreement.reason = absl::StrCat("rank ", rank, ": ", agreement.reason);
  }
  // One's own reason is worth more than another's.
  if (agreement.outcome == Outcome::kFailed && !said.empty() && said.front() == kFail) {
    agreement.reason = said.substr(1);
  }
  return agreement;
}

}  // namespace param
