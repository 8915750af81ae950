#include "agent/bench/driver.h"
#include "proto/base/status.h"

namespace param {

absl::Status Team::Barrier() { return Exchange("").status(); }

absl::StatusOr<std::string> Team::Broadcast(int root, absl::string_view from_root) {
  if (root < 0 || root >= size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("broadcast from rank ", root, " of a team of ", size()));
  }
  PARAM_ASSIGN_OR_RETURN(std::vector<std::string> all,
                         Exchange(rank() == root ? from_root : absl::string_view()));
  return std::move(all[static_cast<std::size_t>(root)]);
}

absl::StatusOr<std::vector<std::string>> Team::Gather(absl::string_view mine) {
  return Exchange(mine);
}

absl::StatusOr<std::string> Team::Agree(absl::string_view objection) {
  PARAM_ASSIGN_OR_RETURN(std::vector<std::string> all, Exchange(objection));
  for (std::string& one : all) {
    if (!one.empty()) return std::move(one);
  }
  return std::string();
}

}  // namespace param
