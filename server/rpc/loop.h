#pragma once
// The coordinator's one thread, and a few threads for reads that block on the disk.

#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/sync.h"

namespace param {

// Warns of what kept everybody waiting. Thread safe as far as the clock and the log are, which
// outlive this.
class SlowWatch {
 public:
  SlowWatch(const Clock& clock, const Log& log, absl::Duration limit = absl::Seconds(1))
      : clock_(clock), log_(log), limit_(limit) {}

  void Took(absl::string_view what, absl::Duration took) const;
  // Calls it and looks at the time.
  void Run(absl::string_view what, const std::function<void()>& closure) const;

 private:
  const Clock& clock_;
  const Log& log_;
  const absl::Duration limit_;
};

// Runs closures in the order they were posted, and `tick` at least once per period. Post() is
// thread safe; closures run on the loop's thread alone. Stop() runs what was posted before it.
class Loop {
 public:
  // `watch` hears of each closure and tick; it outlives this. Null: nobody does.
  Loop(absl::Duration period, std::function<void()> tick, const SlowWatch* watch = nullptr);
  ~Loop() { Stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Start();
  void Post(std::function<void()> closure);
  void Stop();

 private:
  void Run();
  void RunOne(absl::string_view what, const std::function<void()>& closure) const;

  const absl::Duration period_;
  const std::function<void()> tick_;
  const SlowWatch* const watch_;
  Mutex mu_;
  CondVar changed_;
  std::vector<std::function<void()>> posted_ PARAM_GUARDED_BY(mu_);
  bool stopping_ PARAM_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Threads for store reads. The queue is bounded: Post() is false when it is full, and the caller
// answers RESOURCE_EXHAUSTED.
class ReaderPool {
 public:
  ReaderPool(int threads, std::size_t capacity);
  ~ReaderPool() { Stop(); }
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  bool Post(std::function<void()> closure);
  void Stop();  // finishes what is queued

 private:
  void Run();

  const std::size_t capacity_;
  Mutex mu_;
  CondVar changed_;
  std::vector<std::function<void()>> queue_ PARAM_GUARDED_BY(mu_);
  bool stopping_ PARAM_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace param
