#pragma once
// The write side of a streaming call: one write in flight, bounded, finished once. Knows no gRPC.

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/sync.h"

namespace param {

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

  Outbox(Port& port, std::size_t capacity) : port_(port), capacity_(capacity) {}

  // What the reader asked to be told first; does not count against the capacity.
  void Preload(std::vector<std::shared_ptr<const Message>> messages) PARAM_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closing_) return;
    preloaded_ += messages.size();
    for (auto& message : messages) queue_.push_back(std::move(message));
    Pump();
  }
  // False when the message was dropped or ended the call.
  bool Push(std::shared_ptr<const Message> message, Loss loss) PARAM_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closing_) return false;
    bool taken = true;
    if (queue_.size() < capacity_ + preloaded_) {
      queue_.push_back(std::move(message));
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
  void Abort(absl::Status status) PARAM_REQUIRES(mu_) {
    queue_.clear();
    preloaded_ = 0;
    if (!finished_) final_ = std::move(status);
    closing_ = true;
  }
  void Pump() PARAM_REQUIRES(mu_) {
    if (in_flight_ != nullptr || finished_) return;  // one write at a time
    if (!queue_.empty()) {
      in_flight_ = std::move(queue_.front());  // kept alive until WriteDone
      queue_.pop_front();
      if (preloaded_ > 0) --preloaded_;
      port_.Write(*in_flight_);
    } else if (closing_) {
      finished_ = true;  // exactly once, and no write is in flight
      port_.Finish(final_);
    }
  }

  Port& port_;
  const std::size_t capacity_;
  Mutex mu_;
  std::deque<std::shared_ptr<const Message>> queue_ PARAM_GUARDED_BY(mu_);
  std::size_t preloaded_ PARAM_GUARDED_BY(mu_) = 0;
  std::shared_ptr<const Message> in_flight_ PARAM_GUARDED_BY(mu_);
  absl::Status final_ PARAM_GUARDED_BY(mu_);
  bool closing_ PARAM_GUARDED_BY(mu_) = false;
  bool finished_ PARAM_GUARDED_BY(mu_) = false;
};

}  // namespace param
