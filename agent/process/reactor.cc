#include "agent/process/reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "proto/base/status.h"

namespace param::agent {

absl::StatusOr<std::unique_ptr<Reactor>> Reactor::Make(const Clock& clock) {
  std::unique_ptr<Reactor> reactor(new Reactor(clock));
  reactor->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!reactor->epoll_) return ErrnoStatus(errno, "epoll_create1");
  reactor->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!reactor->wake_) return ErrnoStatus(errno, "eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;  // no watch has this id
  if (::epoll_ctl(reactor->epoll_.get(), EPOLL_CTL_ADD, reactor->wake_.get(), &event) != 0) {
    return ErrnoStatus(errno, "epoll_ctl");
  }
  return reactor;
}

absl::Status Reactor::Add(int fd, std::uint32_t events, FdHandler handler) {
  const std::uint64_t id = next_id_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoStatus(errno, "epoll_ctl");
  }
  watches_[id] = std::make_shared<Watch>(Watch{fd, std::move(handler)});
  by_fd_[fd] = id;
  return absl::OkStatus();
}

void Reactor::Modify(int fd, std::uint32_t events) {
  const auto id = by_fd_.find(fd);
  if (id == by_fd_.end()) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id->second;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Reactor::Remove(int fd) {
  const auto id = by_fd_.find(fd);
  if (id == by_fd_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(id->second);
  by_fd_.erase(id);
}

Reactor::TimerId Reactor::After(absl::Duration delay, std::function<void()> what) {
  const TimerId id = next_id_++;
  const absl::Duration at = clock_.Monotonic() + delay;
  timers_[{at, id}] = std::move(what);
  timer_times_[id] = at;
  return id;
}

void Reactor::Cancel(TimerId timer) {
  const auto at = timer_times_.find(timer);
  if (at == timer_times_.end()) return;
  timers_.erase({at->second, timer});
  timer_times_.erase(at);
}

void Reactor::Wake() {
  const std::uint64_t one = 1;
  // A full counter wakes as well as one more.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void Reactor::Post(std::function<void()> what) {
  {
    MutexLock lock(mu_);
    posted_.push_back(std::move(what));
  }
  Wake();
}

void Reactor::Quit() {
  {
    MutexLock lock(mu_);
    quit_ = true;
  }
  Wake();
}

void Reactor::RunPosted() {
  std::vector<std::function<void()>> now;
  {
    MutexLock lock(mu_);
    now.swap(posted_);
  }
  for (const auto& what : now) what();
}

void Reactor::RunTimers() {
  const absl::Duration now = clock_.Monotonic();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const auto first = timers_.begin();
    const std::function<void()> what = std::move(first->second);
    timer_times_.erase(first->first.second);
    timers_.erase(first);
    what();
  }
}

int Reactor::WaitMillis(absl::Duration hook_due) const {
  absl::Duration due = hook_due;
  if (!timers_.empty()) due = std::min(due, timers_.begin()->first.first);
  if (due == absl::InfiniteDuration()) return -1;
  const absl::Duration left = due - clock_.Monotonic();
  // Rounded up: waking too early would spin until the time has come.
  const std::int64_t millis = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<std::int64_t>(millis, 0, 60'000));
}

void Reactor::Wait(int millis) {
  std::array<epoll_event, 64> events{};
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), millis);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == 0) {
      std::uint64_t seen = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &seen, sizeof(seen));
      continue;
    }
    const auto found = watches_.find(event.data.u64);
    if (found == watches_.end()) continue;               // removed by a handler of this round
    const std::shared_ptr<Watch> watch = found->second;  // it may remove itself
    watch->handler(event.events);
  }
}

void Reactor::Run() {
  while (true) {
    RunPosted();
    RunTimers();
    const absl::Duration due = hook_ ? hook_() : absl::InfiniteDuration();
    bool is_more_posted = false;
    {
      MutexLock lock(mu_);
      if (quit_) {
        quit_ = false;
        return;
      }
      is_more_posted = !posted_.empty();
    }
    Wait(is_more_posted ? 0 : WaitMillis(due));
  }
}

}  // namespace param::agent
