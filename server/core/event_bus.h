#pragma once
// Live fan-out of a job's events to any number of watchers, with bounded memory.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/core/job.h"

namespace param {

// Progress of an attempt: may be left out for a reader that lags.
struct Progress {
  std::string phase;
  int case_index = -1;
  std::int64_t samples = 0;  // of the case so far, over all ranks
};

// `seq` is the number of cases that had ended with this event: it is the same before and after a
// restart of the coordinator, so a watch can be resumed with after_seq.
struct JobEvent {
  std::uint64_t seq = 0;
  std::string job_id;
  std::int64_t time_ns = 0;
  std::variant<Job, std::shared_ptr<const CaseRecord>, Progress> kind;
};

// One watcher. Called on the coordinator's thread; never blocks, never calls back inline.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  // What happened before, in order; not counted against the watcher's bound.
  virtual void Replay(std::vector<std::shared_ptr<const JobEvent>> events) = 0;
  // False when the event was dropped (only progress may be) or the watcher was ended.
  virtual bool Push(const std::shared_ptr<const JobEvent>& event, bool may_drop) = 0;
  virtual void Close(absl::Status status) = 0;
};

// Not thread safe: lives on the coordinator's thread.
class EventBus {
 public:
  void Subscribe(const std::string& job_id, std::shared_ptr<JobWatcher> watcher);
  void Unsubscribe(const std::string& job_id, const JobWatcher* watcher);
  // Returns how many watchers did not take it.
  int Publish(const std::shared_ptr<const JobEvent>& event);
  // The job ended: watchers get OK after what is queued.
  void CloseAll(const std::string& job_id, const absl::Status& status);
  std::size_t watchers() const;

 private:
  std::map<std::string, std::vector<std::shared_ptr<JobWatcher>>> watchers_;
};

}  // namespace param
