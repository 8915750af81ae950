#pragma once
// Rounds of a team: the local ranks' parts are sent up once, together; the answer goes to all of
// them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/core/messages.h"

namespace param::agent {

// Of one attempt. Not thread safe.
class ExchangeRouter {
 public:
  ExchangeRouter(AttemptKey key, std::vector<int> local_ranks, int ranks);

  // A local rank's part. Returns the node's part once its last rank gave its own. INVALID_ARGUMENT
  // when the rank is out of step: a round is open for it already, or it is not the next one.
  absl::StatusOr<std::optional<ExchangePart>> Add(int rank, std::uint64_t round, std::string data);

  // The answer of a round. True: hand it to the local ranks. False: it came before, or was never
  // asked for. INVALID_ARGUMENT when it does not hold one part per rank.
  absl::StatusOr<bool> Answer(const ExchangeAll& all);

  // What to send again after a reconnect: the node's parts of the last two complete rounds, the
  // answered one too, since the coordinator may have restarted before the others got it.
  std::vector<ExchangePart> Resend() const;

  // True while the rank has given its part and has no answer.
  bool IsWaiting(int rank) const;

 private:
  const AttemptKey key_;
  const int ranks_;
  std::map<int, std::uint64_t> given_;  // by local rank: how many rounds it took part in
  std::map<int, std::string> open_;     // parts of the round that is being gathered
  std::uint64_t answered_ = 0;          // rounds answered
  std::vector<ExchangePart> complete_;  // the last two, oldest first
};

}  // namespace param::agent
