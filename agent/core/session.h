#pragma once
// The connection to the coordinator: when to connect, register, beat, give up.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/core/messages.h"
#include "agent/core/uplink.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/random.h"

namespace param::agent {

struct SessionOptions {
  absl::Duration first_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(5);
  double backoff_factor = 1.6;
  double jitter = 0.2;                                 // of the backoff, either way
  absl::Duration rejected_backoff = absl::Seconds(5);  // after a refusal that may pass
  absl::Duration register_deadline = absl::Seconds(10);
  // A connection that held for so long was a sound one: the next loss begins with first_backoff.
  absl::Duration sound_after = absl::Seconds(5);
};

// Fences when the coordinator was not heard for the lease: it will have given the attempts up, so
// they must not run on. A refusal (the name is taken, another protocol) is logged and tried again
// slowly, since the other agent may die and the coordinator may be replaced. One thread at a time.
class Session {
 public:
  enum class State { kIdle, kRegistering, kConnected, kBackoff };
  struct Parts {  // all outlive this
    const Clock* clock;
    const Log* log;
    Random* random;
    Uplink* uplink;
    std::function<Register()> hello;
    std::function<Heartbeat()> heartbeat;
    std::function<void(const Registered&)> connected;
    std::function<void()> disconnected;
    // A call is opened: start | lost | refused | timeout.
    std::function<void(absl::string_view reason)> connecting;
    std::function<void(const std::string& why)> fence;
  };
  Session(SessionOptions options, Parts parts);

  void Start();
  void OnRegistered(const Registered& registered);
  // Any message came.
  void OnHeard();
  void OnClosed(const absl::Status& status);
  void Tick();
  absl::Duration due() const;

  State state() const { return state_; }
  bool is_connected() const { return state_ == State::kConnected; }

 private:
  void Connect();
  absl::Duration NextBackoff();
  void Refused(const absl::Status& status);

  const SessionOptions options_;
  const Parts parts_;
  State state_ = State::kIdle;
  absl::Duration act_at_ = absl::InfiniteDuration();  // connect, beat, or give registration up
  absl::Duration fence_at_ = absl::InfiniteDuration();
  absl::Duration backoff_;
  absl::Duration connected_at_;
  absl::Duration heartbeat_period_, lease_;
  std::string last_refusal_, last_failure_;
  absl::string_view reason_ = "start";  // of the next call
};

}  // namespace param::agent
