#include "server/rpc/loop.h"

#include <chrono>
#include <utility>

namespace param {

void SlowWatch::Took(absl::string_view what, absl::Duration took) const {
  if (took <= limit_) return;
  log_.Warn("slow: everything else waited for it",
            {F("what", what), F("took", absl::FormatDuration(took))});
}

void SlowWatch::Run(absl::string_view what, const std::function<void()>& closure) const {
  const absl::Duration begin = clock_.Monotonic();
  closure();
  Took(what, clock_.Monotonic() - begin);
}

Loop::Loop(absl::Duration period, std::function<void()> tick, const SlowWatch* watch)
    : period_(period), tick_(std::move(tick)), watch_(watch) {}

void Loop::RunOne(absl::string_view what, const std::function<void()>& closure) const {
  if (watch_ == nullptr) {
    closure();
  } else {
    watch_->Run(what, closure);
  }
}

void Loop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Loop::Post(std::function<void()> closure) {
  MutexLock lock(mu_);
  posted_.push_back(std::move(closure));
  changed_.NotifyOne();
}

void Loop::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Loop::Run() {
  auto next_tick = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(period_);
  for (;;) {
    std::vector<std::function<void()>> batch;
    {
      MutexLock lock(mu_);
      while (posted_.empty() && !stopping_) {
        const auto left = next_tick - std::chrono::steady_clock::now();
        if (left <= std::chrono::steady_clock::duration::zero()) break;
        changed_.WaitFor(mu_, left);
      }
      batch.swap(posted_);
      if (batch.empty() && stopping_) return;
    }
    for (const auto& closure : batch) RunOne("a closure of the coordinator's loop", closure);
    if (std::chrono::steady_clock::now() >= next_tick) {
      RunOne("a tick of the coordinator", tick_);
      next_tick = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(period_);
    }
  }
}

ReaderPool::ReaderPool(int threads, std::size_t capacity) : capacity_(capacity) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

bool ReaderPool::Post(std::function<void()> closure) {
  MutexLock lock(mu_);
  if (stopping_ || queue_.size() >= capacity_) return false;
  queue_.push_back(std::move(closure));
  changed_.NotifyOne();
  return true;
}

void ReaderPool::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ReaderPool::Run() {
  for (;;) {
    std::function<void()> closure;
    {
      MutexLock lock(mu_);
      while (queue_.empty() && !stopping_) changed_.Wait(mu_);
      if (queue_.empty()) return;
      closure = std::move(queue_.front());
      queue_.erase(queue_.begin());
    }
    closure();
  }
}

}  // namespace param
