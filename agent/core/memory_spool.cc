#include "agent/core/memory_spool.h"

#include "absl/strings/str_cat.h"

namespace param::agent {

absl::Status MemorySpool::Append(const RankEvent& event, Importance importance) {
  const std::int64_t size = static_cast<std::int64_t>(event.line.size());
  if (importance == Importance::kEvent && index_.bytes() + size > limit_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the spool in ", place(), " reached its limit of ", limit_bytes_, " B"));
  }
  const std::uint64_t position =
      index_.Add(RankKey{event.key, event.rank}, {.seq = event.seq, .size = size});
  kept_.emplace(position, event);
  return absl::OkStatus();
}

absl::StatusOr<Spool::Batch> MemorySpool::Read(std::uint64_t from, std::size_t max_events,
                                               std::size_t max_bytes) {
  Batch batch;
  std::size_t bytes = 0;
  std::uint64_t position = index_.Next(from);
  while (position < index_.end() && batch.events.size() < max_events && bytes < max_bytes) {
    batch.events.push_back(kept_.at(position));
    bytes += batch.events.back().line.size();
    position = index_.Next(position + 1);
  }
  batch.next = position;
  return batch;
}

void MemorySpool::Ack(const AckEntry& entry) {
  index_.Ack(RankKey{entry.key, entry.rank}, entry.seq,
             [this](std::uint64_t position, const SpoolIndex::Entry&) { kept_.erase(position); });
}

void MemorySpool::Drop(const AttemptKey& key) {
  index_.Drop(key,
              [this](std::uint64_t position, const SpoolIndex::Entry&) { kept_.erase(position); });
}

}  // namespace param::agent
