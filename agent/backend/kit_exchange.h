#pragma once
// For authors of comm backends: param_host.exchange that a deadline and an abort can leave behind.
// Header-only, the standard library and nothing else.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "agent/backend/kit.h"

namespace param::kit {

// One exchange at a time; Abort() and aborted() from any thread.
//
// The exchange itself runs on a thread of its own, which may outlive the call and this object: the
// host ends it when the worker ends.
class AbortableExchange {
 public:
  // Every rank gives `mine` and gets those of all `ranks`, one after the other. DEADLINE_EXCEEDED
  // after `deadline_ns` (0: never), ABORTED after Abort(), else what the host answers.
  std::int32_t Run(const param_host* host, std::vector<unsigned char> mine, std::int32_t ranks,
                   std::int64_t deadline_ns, std::vector<unsigned char>* all, param_error* err) {
    auto pending = std::make_shared<Pending>();
    pending->mine = std::move(mine);
    pending->all.resize(pending->mine.size() * static_cast<std::size_t>(ranks));
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) return Fail(err, kAborted, "the communicator was aborted");
      pending_ = pending;
    }
    std::thread([host, pending] { Call(host, *pending); }).detach();
    std::unique_lock lock(pending->mutex);
    const auto is_done = [&] { return pending->done; };
    if (deadline_ns <= 0) {
      pending->changed.wait(lock, is_done);
    } else if (!pending->changed.wait_for(lock, std::chrono::nanoseconds(deadline_ns), is_done)) {
      pending->done = true;
      return Fail(err, kDeadlineExceeded, "not all %d ranks came within %.3f s", ranks,
                  static_cast<double>(deadline_ns) * 1e-9);
    }
    if (pending->code != 0) {
      if (err != nullptr) *err = pending->error;
      return pending->code;
    }
    *all = std::move(pending->all);
    return kOk;
  }

  // What runs ends with ABORTED, and so does what comes later.
  void Abort() {
    std::shared_ptr<Pending> pending;
    {
      const std::lock_guard lock(mutex_);
      aborted_ = true;
      pending = pending_;
    }
    if (pending == nullptr) return;
    const std::lock_guard lock(pending->mutex);
    if (pending->done) return;
    pending->done = true;
    pending->code = Fail(&pending->error, kAborted, "the communicator was aborted");
    pending->changed.notify_all();
  }

  bool aborted() const {
    const std::lock_guard lock(mutex_);
    return aborted_;
  }

 private:
  struct Pending {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::int32_t code = 0;
    param_error error = {};
    std::vector<unsigned char> mine, all;
  };

  static void Call(const param_host* host, Pending& pending) {
    param_error error = {};
    const std::int32_t code = host->exchange(host->user, pending.mine.data(), pending.mine.size(),
                                             pending.all.data(), &error);
    const std::lock_guard lock(pending.mutex);
    if (pending.done) return;  // left behind: nobody reads `all`
    pending.done = true;
    pending.code = code;
    pending.error = error;
    pending.changed.notify_all();
  }

  mutable std::mutex mutex_;
  bool aborted_ = false;
  std::shared_ptr<Pending> pending_;
};

}  // namespace param::kit
