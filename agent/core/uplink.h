#pragma once
// The way to the coordinator, as the core needs it.

#include "absl/status/status.h"
#include "agent/core/messages.h"

namespace param::agent {

// What comes from the coordinator. Called on the agent's own thread.
class UplinkEvents {
 public:
  virtual ~UplinkEvents() = default;
  virtual void OnMessage(DownMessage message) = 0;
  // What was handed over has left; more events may be sent.
  virtual void OnDrained() = 0;
  // The call ended: exactly once for each Open().
  virtual void OnClosed(const absl::Status& status) = 0;
};

// One call at a time. Every function returns at once and never calls back inline.
class Uplink {
 public:
  virtual ~Uplink() = default;
  // Begins a call whose first message is `hello`. REQUIRES: the last call has ended.
  virtual void Open(const Register& hello) = 0;
  // REQUIRES: a call is open. Messages leave in order; without effect once the call has ended.
  virtual void Send(UpMessage message) = 0;
  // True when nothing waits to be sent.
  virtual bool IsIdle() const = 0;
  // Ends the call; OnClosed() follows.
  virtual void Close() = 0;
};

}  // namespace param::agent
