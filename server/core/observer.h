#pragma once
// What the coordinator tells whoever counts: implemented by server/metrics, a no-op in tests.

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/core/job.h"

namespace param {

// Every call is cheap and thread safe; none may call back into the coordinator.
class CoordinatorObserver {
 public:
  virtual ~CoordinatorObserver() = default;
  virtual void JobSubmitted(absl::string_view benchmark, absl::string_view source) = 0;
  virtual void JobPlaced(const Job& job) = 0;  // of its first attempt
  virtual void JobFinished(const Job& job) = 0;
  virtual void CaseStored(const Job& job, const CaseRecord& result) = 0;
  virtual void PlacementFailed(absl::string_view reason) = 0;  // no_nodes | backend | no_wait
  virtual void QueueState(int queued, int starting, int running,
                          std::int64_t oldest_submitted_ns) = 0;  // 0: nothing waits
  virtual void NodeState(const std::string& node, absl::string_view state, bool up) = 0;
  virtual void NodeGone(const std::string& node) = 0;
  virtual void Heartbeat(const std::string& node, std::int64_t wall_ns) = 0;
  virtual void EventsDropped(absl::string_view sink, std::int64_t count) = 0;
};

class NullObserver final : public CoordinatorObserver {
 public:
  void JobSubmitted(absl::string_view, absl::string_view) override {}
  void JobPlaced(const Job&) override {}
  void JobFinished(const Job&) override {}
  void CaseStored(const Job&, const CaseRecord&) override {}
  void PlacementFailed(absl::string_view) override {}
  void QueueState(int, int, int, std::int64_t) override {}
  void NodeState(const std::string&, absl::string_view, bool) override {}
  void NodeGone(const std::string&) override {}
  void Heartbeat(const std::string&, std::int64_t) override {}
  void EventsDropped(absl::string_view, std::int64_t) override {}
};

}  // namespace param
