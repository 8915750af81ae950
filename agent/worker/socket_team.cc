#include "agent/worker/socket_team.h"

#include <utility>

#include "proto/base/status.h"

namespace param {

absl::StatusOr<std::vector<std::string>> SocketTeam::Exchange(absl::string_view mine) {
  if (mine.size() > line::kMaxExchangeBytes) {
    return absl::InvalidArgumentError(absl::StrCat("exchange of ", mine.size(), " bytes; at most ",
                                                   line::kMaxExchangeBytes, " fit"));
  }
  if (size_ == 1) return std::vector<std::string>{std::string(mine)};
  const std::uint64_t round = round_++;
  channel_.Send(line::Exchange{round, std::string(mine)});
  PARAM_ASSIGN_OR_RETURN(std::vector<std::string> all, channel_.WaitForReply(round));
  if (all.size() != static_cast<std::size_t>(size_)) {
    return absl::InternalError(
        absl::StrCat("exchange ", round, ": ", all.size(), " parts for ", size_, " ranks"));
  }
  return all;
}

}  // namespace param
