#include "agent/core/event_pump.h"

#include <utility>

namespace param::agent {

void EventPump::Restart() {
  open_ = true;
  next_ = 0;
  Pump();
}

void EventPump::Pump() {
  if (!open_ || next_ >= spool_.end() || !uplink_.IsIdle()) return;
  absl::StatusOr<Spool::Batch> batch = spool_.Read(next_, kMaxEvents, kMaxBytes);
  if (!batch.ok()) {
    log_.Error("cannot read the spool", {F("reason", batch.status().message())});
    open_ = false;  // until the next connection
    return;
  }
  next_ = batch->next;
  if (!batch->events.empty()) uplink_.Send(RankEvents{std::move(batch->events)});
}

}  // namespace param::agent
