#pragma once
// Events that the coordinator has not yet stored. The agent appends before it sends, deletes when
// acknowledged, and sends everything again after a reconnect.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/core/messages.h"

namespace param::agent {

// Events in the order in which they were appended. Positions grow and are never used twice while
// the process lives. One thread at a time.
class Spool {
 public:
  enum class Importance {
    kEvent,  // may be refused
    kEnd,    // says how a rank ended: kept in memory, within a bound, where the disk has no room
  };
  struct Batch {
    std::vector<RankEvent> events;
    std::uint64_t next = 0;  // where to go on reading
  };
  virtual ~Spool() = default;

  // RESOURCE_EXHAUSTED, naming the place, when a limit or the disk is reached; the event is then
  // not kept. For kEnd only when memory for it ran out, too: the coordinator then learns from
  // AttemptEnded alone that the rank ended, and calls it lost.
  virtual absl::Status Append(const RankEvent& event, Importance importance) = 0;
  // Unacknowledged events from `from` on: at most `max_events`, and no more once `max_bytes` are
  // reached. Empty at the end.
  virtual absl::StatusOr<Batch> Read(std::uint64_t from, std::size_t max_events,
                                     std::size_t max_bytes) = 0;
  // Forgets a rank's events up to and with a sequence number. Repeats are harmless.
  virtual void Ack(const AckEntry& entry) = 0;
  // Forgets all events of an attempt.
  virtual void Drop(const AttemptKey& key) = 0;
  virtual bool HasUnacked(const AttemptKey& key) const = 0;
  virtual std::vector<AttemptKey> Attempts() const = 0;  // with unacknowledged events, in order
  virtual std::uint64_t end() const = 0;                 // position after the last event
  virtual std::int64_t bytes() const = 0;                // kept now
  virtual std::int64_t events() const = 0;               // kept now
  virtual std::string place() const = 0;                 // for messages: the folder
};

}  // namespace param::agent
