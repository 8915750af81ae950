#pragma once
// Locks with annotations that clang checks (-Wthread-safety).
// std::mutex, not absl::Mutex: ThreadSanitizer cannot see into a prebuilt Abseil.

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define PARAM_TSA(x) __attribute__((x))
#else
#define PARAM_TSA(x)
#endif
#define PARAM_GUARDED_BY(m) PARAM_TSA(guarded_by(m))
#define PARAM_REQUIRES(...) PARAM_TSA(requires_capability(__VA_ARGS__))
#define PARAM_EXCLUDES(...) PARAM_TSA(locks_excluded(__VA_ARGS__))

namespace param {

class PARAM_TSA(capability("mutex")) Mutex {
 public:
  void Lock() PARAM_TSA(acquire_capability()) { mu_.lock(); }
  void Unlock() PARAM_TSA(release_capability()) { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class PARAM_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mu) PARAM_TSA(acquire_capability(mu)) : mu_(mu) { mu_.Lock(); }
  ~MutexLock() PARAM_TSA(release_capability()) { mu_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

// A condition variable for Mutex. Callers loop: spurious wake-ups happen.
class CondVar {
 public:
  void Wait(Mutex& mu) PARAM_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when the time ran out.
  template <typename Rep, typename Period>
  bool WaitFor(Mutex& mu, std::chrono::duration<Rep, Period> timeout) PARAM_REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool signalled = cv_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return signalled;
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace param
