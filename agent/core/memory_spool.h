#pragma once
// A spool without a disk: the twin of DiskSpool for tests of the core.

#include <map>

#include "agent/core/spool.h"
#include "agent/core/spool_index.h"

namespace param::agent {

class MemorySpool final : public Spool {
 public:
  explicit MemorySpool(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  absl::Status Append(const RankEvent& event, Importance importance) override;
  absl::StatusOr<Batch> Read(std::uint64_t from, std::size_t max_events,
                             std::size_t max_bytes) override;
  void Ack(const AckEntry& entry) override;
  void Drop(const AttemptKey& key) override;
  bool HasUnacked(const AttemptKey& key) const override { return index_.Has(key); }
  std::vector<AttemptKey> Attempts() const override { return index_.Attempts(); }
  std::uint64_t end() const override { return index_.end(); }
  std::int64_t bytes() const override { return index_.bytes(); }
  std::int64_t events() const override { return index_.events(); }
  std::string place() const override { return "memory"; }

 private:
  const std::int64_t limit_bytes_;
  SpoolIndex index_;
  std::map<std::uint64_t, RankEvent> kept_;  // by position
};

}  // namespace param::agent
