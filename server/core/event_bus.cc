#include "server/core/event_bus.h"

#include <algorithm>
#include <utility>

namespace param {

void EventBus::Subscribe(const std::string& job_id, std::shared_ptr<JobWatcher> watcher) {
  watchers_[job_id].push_back(std::move(watcher));
}

void EventBus::Unsubscribe(const std::string& job_id, const JobWatcher* watcher) {
  const auto it = watchers_.find(job_id);
  if (it == watchers_.end()) return;
  std::erase_if(it->second, [watcher](const auto& each) { return each.get() == watcher; });
  if (it->second.empty()) watchers_.erase(it);
}

int EventBus::Publish(const std::shared_ptr<const JobEvent>& event) {
  const auto it = watchers_.find(event->job_id);
  if (it == watchers_.end()) return 0;
  const bool may_drop = std::holds_alternative<Progress>(event->kind);
  int missed = 0;
  for (const auto& watcher : it->second) missed += watcher->Push(event, may_drop) ? 0 : 1;
  return missed;
}

void EventBus::CloseAll(const std::string& job_id, const absl::Status& status) {
  const auto node = watchers_.extract(job_id);
  if (node.empty()) return;
  for (const auto& watcher : node.mapped()) watcher->Close(status);
}

std::size_t EventBus::watchers() const {
  std::size_t count = 0;
  for (const auto& [job, list] : watchers_) count += list.size();
  return count;
}

}  // namespace param
