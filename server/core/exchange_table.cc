#include "server/core/exchange_table.h"

#include <utility>

#include "proto/base/status.h"
#include "proto/line/messages.h"

namespace param {
namespace {
constexpr std::size_t kMaxPendingRounds = 4;
constexpr std::size_t kAnsweredRoundsKept = 2;
}  // namespace

absl::StatusOr<ExchangeTable::Answer> ExchangeTable::Add(std::uint64_t round,
                                                         const std::vector<int>& ranks,
                                                         std::vector<std::string> data) {
  if (answered_.contains(round)) return Answer::kToAsker;
  if (ranks.size() != data.size()) {
    return absl::InvalidArgumentError(absl::StrCat("exchange round ", round, ": ", ranks.size(),
                                                   " ranks, ", data.size(), " parts"));
  }
  if (!pending_.contains(round) && pending_.size() >= kMaxPendingRounds) {
    return absl::InvalidArgumentError(
        absl::StrCat("exchange round ", round, ": ", pending_.size(), " rounds are already open"));
  }
  Pending& pending = pending_[round];
  pending.data.resize(static_cast<std::size_t>(ranks_));
  pending.has.resize(static_cast<std::size_t>(ranks_));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= ranks_) {
      return absl::InvalidArgumentError(
          absl::StrCat("exchange round ", round, ": rank ", ranks[i], " is not one of ", ranks_));
    }
    if (data[i].size() > line::kMaxExchangeBytes) {
      return absl::InvalidArgumentError(absl::StrCat("exchange round ", round, ": ", data[i].size(),
                                                     " bytes from rank ", ranks[i]));
    }
    const auto at = static_cast<std::size_t>(ranks[i]);
    if (pending.has[at]) continue;  // sent again after a reconnect
    pending.has[at] = true;
    pending.data[at] = std::move(data[i]);
    ++pending.count;
  }
  if (pending.count < ranks_) return Answer::kWait;
  answered_[round] = std::move(pending.data);
  pending_.erase(round);
  while (answered_.size() > kAnsweredRoundsKept) answered_.erase(answered_.begin());
  return Answer::kToAll;
}

const std::vector<std::string>& ExchangeTable::Round(std::uint64_t round) const {
  return answered_.at(round);
}

}  // namespace param
