#pragma once
// The ranks of an attempt, met through the agent.

#include <cstdint>

#include "agent/bench/driver.h"
#include "agent/worker/channel.h"

namespace param {

// Rounds are numbered from 0 on each rank; the service answers a round when all ranks sent their
// part. A team of one never uses the wire. Used by one thread.
class SocketTeam final : public Team {
 public:
  SocketTeam(Channel& channel, int rank, int size) : channel_(channel), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  // INVALID_ARGUMENT above kMaxExchangeBytes; CANCELLED, ABORTED; INTERNAL when the answer does not
  // have a part per rank.
  absl::StatusOr<std::vector<std::string>> Exchange(absl::string_view mine) override;

 private:
  Channel& channel_;
  const int rank_;
  const int size_;
  std::uint64_t round_ = 0;
};

}  // namespace param
