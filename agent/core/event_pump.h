#pragma once
// Sends what the spool holds, in order, as fast as the connection takes it.

#include <cstdint>

#include "agent/core/spool.h"
#include "agent/core/uplink.h"
#include "proto/base/log.h"

namespace param::agent {

// Holds no events itself: they are read from the spool when the uplink has room. One thread.
class EventPump {
 public:
  EventPump(Spool& spool, Uplink& uplink, const Log& log)
      : spool_(spool), uplink_(uplink), log_(log) {}

  // A new connection: everything unacknowledged is sent again.
  void Restart();
  void Stop() { open_ = false; }
  // Sends one batch when the uplink is idle.
  void Pump();
  // Everything before `position` was handed to the present connection.
  bool HasSent(std::uint64_t position) const { return open_ && next_ >= position; }

 private:
  static constexpr std::size_t kMaxEvents = 512;
  static constexpr std::size_t kMaxBytes = 512 << 10;  // one more line of up to 1 MiB may follow

  Spool& spool_;
  Uplink& uplink_;
  const Log& log_;
  bool open_ = false;
  std::uint64_t next_ = 0;
};

}  // namespace param::agent
