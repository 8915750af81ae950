#include "agent/core/exchange_router.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace param::agent {

ExchangeRouter::ExchangeRouter(AttemptKey key, std::vector<int> local_ranks, int ranks)
    : key_(std::move(key)), ranks_(ranks) {
  for (const int rank : local_ranks) given_[rank] = 0;
}

absl::StatusOr<std::optional<ExchangePart>> ExchangeRouter::Add(int rank, std::uint64_t round,
                                                                std::string data) {
  const auto given = given_.find(rank);
  if (given == given_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("exchange of rank ", rank, ", not one of ours"));
  }
  if (IsWaiting(rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("exchange round ", round, " while round ", answered_, " is open"));
  }
  if (round != given->second) {
    return absl::InvalidArgumentError(
        absl::StrCat("exchange round ", round, " where ", given->second, " is next"));
  }
  ++given->second;
  open_[rank] = std::move(data);
  if (open_.size() < given_.size()) return std::optional<ExchangePart>();
  ExchangePart part{.key = key_, .round = round, .ranks = {}, .data = {}};
  for (auto& [each, bytes] : open_) {
    part.ranks.push_back(each);
    part.data.push_back(std::move(bytes));
  }
  open_.clear();
  complete_.push_back(part);
  if (complete_.size() > 2) complete_.erase(complete_.begin());
  return std::optional<ExchangePart>(std::move(part));
}

absl::StatusOr<bool> ExchangeRouter::Answer(const ExchangeAll& all) {
  if (all.data.size() != static_cast<std::size_t>(ranks_)) {
    return absl::InvalidArgumentError(absl::StrCat("exchange round ", all.round, " came with ",
                                                   all.data.size(), " parts for ", ranks_,
                                                   " ranks"));
  }
  if (all.round != answered_) return false;
  for (const auto& [rank, given] : given_) {
    if (given <= all.round) return false;
  }
  ++answered_;
  return true;
}

std::vector<ExchangePart> ExchangeRouter::Resend() const { return complete_; }

bool ExchangeRouter::IsWaiting(int rank) const {
  const auto given = given_.find(rank);
  return given != given_.end() && given->second > answered_;
}

}  // namespace param::agent
