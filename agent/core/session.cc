#include "agent/core/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/core/deadlines.h"
#include "proto/base/status.h"

namespace param::agent {

Session::Session(SessionOptions options, Parts parts)
    : options_(options), parts_(std::move(parts)), backoff_(options.first_backoff) {}

void Session::Start() { Connect(); }

void Session::Connect() {
  state_ = State::kRegistering;
  act_at_ = parts_.clock->Monotonic() + options_.register_deadline;
  parts_.connecting(reason_);
  parts_.uplink->Open(parts_.hello());
}

void Session::OnRegistered(const Registered& registered) {
  if (state_ != State::kRegistering) return;
  state_ = State::kConnected;
  heartbeat_period_ = std::max(registered.heartbeat_period, absl::Milliseconds(10));
  lease_ = registered.lease;
  connected_at_ = parts_.clock->Monotonic();
  last_refusal_.clear();
  last_failure_.clear();
  act_at_ = parts_.clock->Monotonic() + heartbeat_period_;
  OnHeard();
  parts_.log->Info("connected", {F("lease", DurationText(lease_)),
                                 F("heartbeat", DurationText(heartbeat_period_))});
  parts_.connected(registered);
}

void Session::OnHeard() {
  if (state_ != State::kConnected) return;
  fence_at_ =
      lease_ > absl::ZeroDuration() ? parts_.clock->Monotonic() + lease_ : absl::InfiniteDuration();
}

absl::Duration Session::NextBackoff() {
  const double unit = static_cast<double>(parts_.random->Next() >> 11) * 0x1p-53;  // [0, 1)
  const absl::Duration wait = backoff_ * (1 + options_.jitter * (2 * unit - 1));
  backoff_ = std::min(backoff_ * options_.backoff_factor, options_.max_backoff);
  // Not so long that the lease runs out while the coordinator would listen.
  if (lease_ > absl::ZeroDuration()) backoff_ = std::min(backoff_, lease_ / 4);
  return wait;
}

void Session::Refused(const absl::Status& status) {
  const std::string text(status.message());
  if (text == last_refusal_) return;  // once, not every few seconds
  last_refusal_ = text;
  parts_.log->Error(status.code() == absl::StatusCode::kAlreadyExists
                        ? "another live agent has this name; retrying in case it goes away"
                        : "the coordinator refuses this agent; retrying",
                    {F("code", CodeName(status.code())), F("reason", text)});
}

void Session::OnClosed(const absl::Status& status) {
  if (state_ == State::kIdle || state_ == State::kBackoff) return;
  const bool was_connected = state_ == State::kConnected;
  const absl::Duration now = parts_.clock->Monotonic();
  state_ = State::kBackoff;
  // One that takes us in and ends the call at once (its disk is full, say) is not asked in a storm.
  if (was_connected && now - connected_at_ >= options_.sound_after) {
    backoff_ = options_.first_backoff;
  }
  const bool refused = status.code() == absl::StatusCode::kAlreadyExists ||
                       status.code() == absl::StatusCode::kFailedPrecondition ||
                       status.code() == absl::StatusCode::kInvalidArgument ||
                       status.code() == absl::StatusCode::kPermissionDenied ||
                       status.code() == absl::StatusCode::kUnimplemented;
  reason_ = refused ? "refused" : was_connected ? "lost" : "timeout";
  if (refused) {
    Refused(status);
    act_at_ = now + std::max(NextBackoff(), options_.rejected_backoff);
  } else {
    const std::string text(status.message());
    if (was_connected || text != last_failure_) {
      parts_.log->Warn(was_connected ? "connection lost" : "cannot reach the coordinator; retrying",
                       {F("code", CodeName(status.code())), F("reason", text)});
    }
    last_failure_ = text;
    act_at_ = now + NextBackoff();
  }
  if (was_connected) {
    parts_.disconnected();
  }
}

void Session::Tick() {
  const absl::Duration now = parts_.clock->Monotonic();
  if (now >= fence_at_) {
    fence_at_ = absl::InfiniteDuration();
    parts_.fence(
        absl::StrCat("lease over: the coordinator was not heard for ", DurationText(lease_)));
    if (state_ == State::kConnected) parts_.uplink->Close();
  }
  if (now < act_at_) return;
  switch (state_) {
    case State::kIdle:
      act_at_ = absl::InfiniteDuration();
      break;
    case State::kRegistering:
      act_at_ = absl::InfiniteDuration();  // OnClosed() follows
      parts_.uplink->Close();
      break;
    case State::kConnected:
      act_at_ = now + heartbeat_period_;
      parts_.uplink->Send(parts_.heartbeat());
      break;
    case State::kBackoff:
      Connect();
      break;
  }
}

absl::Duration Session::due() const { return std::min(act_at_, fence_at_); }

}  // namespace param::agent
