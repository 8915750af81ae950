#pragma once
// The write side of a streaming call: one write in flight, bounded, finished once. Knows no gRPC.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/sync.h"

namespace param {

// How much may wait for a reader. Messages beyond `messages` are a burst: they wait, too, up to
// `burst` in all, as long as the reader goes on taking them, that is while no write has been under
// way for `patience`. So many messages at once do not make a reader slow, only not reading does.
template <typename Message>
struct OutboxLimits {
  std::size_t messages = 0;
  std::size_t burst = 0;  // at most `messages`: none
  absl::Duration patience = absl::ZeroDuration();
  // Of `size` over what waits; a message alone may be larger. Without `size` bytes are not counted:
  // right where the messages are kept by others anyway and a pointer is all that waits.
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  std::function<std::size_t(const Message&)> size = {};
};

// Thread safe. Push never blocks: what may be dropped is dropped when the reader lags (and
// counted); what must be delivered and does not fit ends the call with RESOURCE_EXHAUSTED.
template <typename Message>
class Outbox {
 public:
  struct Port {  // both return at once and never call back inline
    virtual ~Port() = default;
    virtual void Write(const Message& message) = 0;
    virtual void Finish(const absl::Status& status) = 0;
  };
  enum class Loss { kMayDrop, kMustDeliver };

  // `port` and `clock` outlive this.
  Outbox(Port& port, OutboxLimits<Message> limits, const Clock& clock)
      : port_(port), limits_(std::move(limits)), clock_(clock) {}

  // What the reader asked to be told first; does not count against the limits.
  void Preload(std::vector<std::shared_ptr<const Message>> messages) PARAM_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closing_) return;
    preloaded_ += messages.size();
    for (auto& message : messages) Add(std::move(message));
    Pump();
  }
  // False when the message was dropped or ended the call.
  bool Push(std::shared_ptr<const Message> message, Loss loss) PARAM_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closing_) return false;
    bool taken = true;
    if (HasRoom(*message, loss)) {
      Add(std::move(message));
    } else {
      taken = false;
      if (loss == Loss::kMustDeliver) {
        Abort(absl::ResourceExhaustedError(
            "reader too slow: its queue is full; watch again with after_seq to resume"));
      }
    }
    Pump();
    return taken;
  }
  // Delivers what is queued first.
  void Close(absl::Status status) PARAM_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closing_) return;
    closing_ = true;
    final_ = std::move(status);
    Pump();
  }
  void WriteDone(bool ok) PARAM_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    in_flight_.reset();
    if (!ok) Abort(absl::CancelledError("peer went away"));
    Pump();
  }
  void Cancelled() PARAM_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    Abort(absl::CancelledError("call cancelled"));
    Pump();
  }

 private:
  std::size_t SizeOf(const Message& message) const {
    return limits_.size ? limits_.size(message) : 0;
  }
  void Add(std::shared_ptr<const Message> message) PARAM_REQUIRES(mu_) {
    bytes_ += SizeOf(*message);
    queue_.push_back(std::move(message));
  }
  bool HasRoom(const Message& message, Loss loss) const PARAM_REQUIRES(mu_) {
    const std::size_t waiting = queue_.size() - std::min(queue_.size(), preloaded_);
    if (waiting > 0 && SizeOf(message) > limits_.bytes - std::min(limits_.bytes, bytes_)) {
      return false;
    }
    if (waiting < limits_.messages) return true;
    return loss == Loss::kMustDeliver && waiting < limits_.burst &&
           clock_.Monotonic() - write_started_ < limits_.patience;
  }
  void Abort(absl::Status status) PARAM_REQUIRES(mu_) {
    queue_.clear();
    preloaded_ = bytes_ = 0;
    if (!finished_) final_ = std::move(status);
    closing_ = true;
  }
  void Pump() PARAM_REQUIRES(mu_) {
    if (in_flight_ != nullptr || finished_) return;  // one write at a time
    if (!queue_.empty()) {
      in_flight_ = std::move(queue_.front());  // kept alive until WriteDone
      queue_.pop_front();
      bytes_ -= SizeOf(*in_flight_);
      if (preloaded_ > 0) --preloaded_;
      write_started_ = clock_.Monotonic();
      port_.Write(*in_flight_);
    } else if (closing_) {
      finished_ = true;  // exactly once, and no write is in flight
      port_.Finish(final_);
    }
  }

  Port& port_;
  const OutboxLimits<Message> limits_;
  const Clock& clock_;
  Mutex mu_;
  std::deque<std::shared_ptr<const Message>> queue_ PARAM_GUARDED_BY(mu_);
  std::size_t preloaded_ PARAM_GUARDED_BY(mu_) = 0;
  std::size_t bytes_ PARAM_GUARDED_BY(mu_) = 0;
  absl::Duration write_started_ PARAM_GUARDED_BY(mu_);
  std::shared_ptr<const Message> in_flight_ PARAM_GUARDED_BY(mu_);
  absl::Status final_ PARAM_GUARDED_BY(mu_);
  bool closing_ PARAM_GUARDED_BY(mu_) = false;
  bool finished_ PARAM_GUARDED_BY(mu_) = false;
};

}  // namespace param
