#pragma once
// Which events a spool still holds and where: the part that every spool shares.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "agent/core/messages.h"

namespace param::agent {

// Not thread safe.
class SpoolIndex {
 public:
  struct Entry {
    std::uint64_t seq = 0;
    std::uint64_t segment = 0;  // the owner's
    std::int64_t offset = 0;    // the owner's
    std::int64_t size = 0;      // bytes that it counts for
    bool acked = false;
  };
  // Called for each entry that is forgotten.
  using Forgotten = std::function<void(std::uint64_t position, const Entry&)>;

  // Returns the entry's position.
  std::uint64_t Add(const RankKey& rank, const Entry& entry);
  void Ack(const RankKey& rank, std::uint64_t seq, const Forgotten& forgotten);
  void Drop(const AttemptKey& key, const Forgotten& forgotten);
  bool Has(const AttemptKey& key) const;
  // Those with events, in order.
  std::vector<AttemptKey> Attempts() const;
  // The first position at or after `from` that holds an event; end() when there is none.
  std::uint64_t Next(std::uint64_t from) const;
  const Entry& At(std::uint64_t position) const {
    return entries_[static_cast<std::size_t>(position - base_)];
  }
  std::uint64_t end() const { return base_ + entries_.size(); }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t events() const { return events_; }
  // What the index itself holds in memory, about: an entry and its place in the rank's queue.
  std::int64_t memory_bytes() const {
    return static_cast<std::int64_t>(entries_.size() * (sizeof(Entry) + sizeof(std::uint64_t)));
  }

 private:
  void Forget(std::uint64_t position, const Forgotten& forgotten);
  void Trim();

  std::uint64_t base_ = 0;
  std::deque<Entry> entries_;
  std::map<RankKey, std::deque<std::uint64_t>> by_rank_;
  std::int64_t bytes_ = 0, events_ = 0;
};

}  // namespace param::agent
