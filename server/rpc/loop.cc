#include "server/rpc/loop.h"

#include <chrono>
#include <utility>

namespace param {

Loop::Loop(absl::Duration period, std::function<void()> tick)
    : period_(period), tick_(std::move(tick)) {}

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
    for (const auto& closure : batch) closure();
    if (std::chrono::steady_clock::now() >= next_tick) {
      tick_();
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
