#include "agent/core/spool_index.h"

#include <algorithm>

namespace param::agent {

std::uint64_t SpoolIndex::Add(const RankKey& rank, const Entry& entry) {
  const std::uint64_t position = end();
  entries_.push_back(entry);
  by_rank_[rank].push_back(position);
  bytes_ += entry.size;
  ++events_;
  return position;
}

void SpoolIndex::Forget(std::uint64_t position, const Forgotten& forgotten) {
  Entry& entry = entries_[static_cast<std::size_t>(position - base_)];
  entry.acked = true;
  bytes_ -= entry.size;
  --events_;
  forgotten(position, entry);
}

void SpoolIndex::Trim() {
  while (!entries_.empty() && entries_.front().acked) {
    entries_.pop_front();
    ++base_;
  }
}

void SpoolIndex::Ack(const RankKey& rank, std::uint64_t seq, const Forgotten& forgotten) {
  const auto found = by_rank_.find(rank);
  if (found == by_rank_.end()) return;
  std::deque<std::uint64_t>& positions = found->second;
  while (!positions.empty() && At(positions.front()).seq <= seq) {
    Forget(positions.front(), forgotten);
    positions.pop_front();
  }
  if (positions.empty()) by_rank_.erase(found);
  Trim();
}

void SpoolIndex::Drop(const AttemptKey& key, const Forgotten& forgotten) {
  auto it = by_rank_.lower_bound(RankKey{key, 0});
  while (it != by_rank_.end() && it->first.key == key) {
    for (const std::uint64_t position : it->second) Forget(position, forgotten);
    it = by_rank_.erase(it);
  }
  Trim();
}

bool SpoolIndex::Has(const AttemptKey& key) const {
  const auto it = by_rank_.lower_bound(RankKey{key, 0});
  return it != by_rank_.end() && it->first.key == key;
}

std::vector<AttemptKey> SpoolIndex::Attempts() const {
  std::vector<AttemptKey> attempts;
  for (const auto& [rank, positions] : by_rank_) {
    if (attempts.empty() || attempts.back() != rank.key) attempts.push_back(rank.key);
  }
  return attempts;
}

std::uint64_t SpoolIndex::Next(std::uint64_t from) const {
  std::uint64_t position = std::max(from, base_);
  while (position < end() && At(position).acked) ++position;
  return position;
}

}  // namespace param::agent
