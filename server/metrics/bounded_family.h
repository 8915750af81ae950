#pragma once
// A family of metrics that cannot grow without bound.

#include <prometheus/counter.h>
#include <prometheus/family.h>

#include <cstddef>
#include <map>
#include <utility>

#include "proto/base/sync.h"

namespace param {

// Adds series until there are `limit`, then counts what it refuses: a label that comes from outside
// must not fill the memory of the coordinator or of Prometheus. Thread safe; the family and the
// counter outlive it.
template <typename T>
class BoundedFamily {
 public:
  BoundedFamily(prometheus::Family<T>& family, prometheus::Counter& dropped, std::size_t limit)
      : family_(family), dropped_(dropped), limit_(limit) {}

  // The series of these labels, or null at the limit. `args` make it when it is new.
  template <typename... Args>
  T* Get(const prometheus::Labels& labels, const Args&... args) {
    const MutexLock lock(mu_);
    if (const auto it = series_.find(labels); it != series_.end()) return it->second;
    if (series_.size() >= limit_) {
      dropped_.Increment();
      return nullptr;
    }
    T* const made = &family_.Add(labels, args...);
    series_.emplace(labels, made);
    return made;
  }

 private:
  prometheus::Family<T>& family_;
  prometheus::Counter& dropped_;
  const std::size_t limit_;
  Mutex mu_;
  std::map<prometheus::Labels, T*> series_ PARAM_GUARDED_BY(mu_);
};

}  // namespace param
