#pragma once
// Who may call into a communicator, and from when on nobody may: aborting one frees it, so a call
// of another thread must neither be inside nor come later. Knows neither CUDA nor NCCL.

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace param::nccl {

// Thread safe. One caller at a time is inside; callers stay for one call that does not wait for
// peers.
class Gate {
 public:
  // Waits for another caller to leave. False once closed; then there is nothing to leave.
  bool Enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !inside_; });
    if (closed_) return false;
    inside_ = true;
    return true;
  }

  // False when somebody is inside or it is closed.
  bool TryEnter() {
    const std::lock_guard lock(mutex_);
    if (closed_ || inside_) return false;
    inside_ = true;
    return true;
  }

  void Leave() {
    const std::lock_guard lock(mutex_);
    inside_ = false;
    changed_.notify_all();
  }

  // Lets nobody in any more and waits at most `patience` for the caller inside, who may be stuck in
  // the very thing that closing is to end. True for the first that closes: it does what closing is
  // for.
  bool Close(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (closed_) return false;
    closed_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, patience, [this] { return !inside_; });
    return true;
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool inside_ = false;
  bool closed_ = false;
};

}  // namespace param::nccl
