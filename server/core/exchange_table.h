#pragma once
// Rounds of an attempt's team: collects every rank's bytes, then gives all to all. Pure.
// A rank can be at most one round ahead of another, so two answered rounds are kept for agents that
// ask again after a reconnect.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace param {

class ExchangeTable {
 public:
  explicit ExchangeTable(int ranks) : ranks_(ranks) {}

  enum class Answer {
    kWait,    // not complete yet
    kToAll,   // complete with this part: send to every agent
    kToAsker  // was complete before: send to who asked
  };
  // A part of a round. INVALID_ARGUMENT for ranks out of range, too many bytes or rounds far ahead.
  absl::StatusOr<Answer> Add(std::uint64_t round, const std::vector<int>& ranks,
                             std::vector<std::string> data);
  // The data of a complete round, by rank.
  const std::vector<std::string>& Round(std::uint64_t round) const;

 private:
  struct Pending {
    std::vector<std::string> data;
    std::vector<bool> has;
    int count = 0;
  };

  const int ranks_;
  std::map<std::uint64_t, Pending> pending_;
  std::map<std::uint64_t, std::vector<std::string>> answered_;
};

}  // namespace param
