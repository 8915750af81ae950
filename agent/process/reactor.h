#pragma once
// The agent's one thread: descriptors, timers and closures from other threads.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/handle.h"
#include "proto/base/sync.h"

namespace param::agent {

// Everything but Post() and Quit() belongs to the thread that calls Run().
class Reactor {
 public:
  using FdHandler = std::function<void(std::uint32_t events)>;  // EPOLLIN, ...
  using TimerId = std::uint64_t;

  // `clock` outlives the reactor.
  static absl::StatusOr<std::unique_ptr<Reactor>> Make(const Clock& clock);

  // The descriptor stays the caller's, who removes it before closing it. Level-triggered.
  absl::Status Add(int fd, std::uint32_t events, FdHandler handler);
  void Modify(int fd, std::uint32_t events);
  // No handler of it runs after this, not even for events already seen.
  void Remove(int fd);

  TimerId After(absl::Duration delay, std::function<void()> what);
  void Cancel(TimerId timer);

  // Runs after each round; returns when it wants to run again at the latest (monotonic).
  void SetHook(std::function<absl::Duration()> hook) { hook_ = std::move(hook); }

  // From any thread. What is posted runs in order; after Run() has returned it never does.
  void Post(std::function<void()> what);
  // From any thread: Run() returns after the present round.
  void Quit();
  void Run();

 private:
  explicit Reactor(const Clock& clock) : clock_(clock) {}
  void Wake();
  void RunPosted();
  void RunTimers();
  int WaitMillis(absl::Duration hook_due) const;
  void Wait(int millis);

  struct Watch {
    int fd;
    FdHandler handler;
  };
  const Clock& clock_;
  Fd epoll_, wake_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, std::shared_ptr<Watch>> watches_;
  std::map<int, std::uint64_t> by_fd_;
  std::map<std::pair<absl::Duration, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, absl::Duration> timer_times_;
  std::function<absl::Duration()> hook_;
  Mutex mu_;
  std::vector<std::function<void()>> posted_ PARAM_GUARDED_BY(mu_);
  bool quit_ PARAM_GUARDED_BY(mu_) = false;
};

}  // namespace param::agent
