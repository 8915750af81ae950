#include "agent/backends/gloo/request.h"

namespace param::gloo_comm {

Runner::~Runner() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Runner::Push(Request& request) {
  const std::lock_guard lock(mutex_);
  request.queued = true;
  (first_ == nullptr ? first_ : last_->next) = &request;
  last_ = &request;
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  changed_.notify_all();
}

bool Runner::IsDone(const Request& request) const {
  const std::lock_guard lock(mutex_);
  return request.done;
}

std::int32_t Runner::Wait(const Request& request, param_error* err) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return request.done; });
  if (request.code != 0 && err != nullptr) *err = request.error;
  return request.code;
}

bool Runner::idle() const {
  const std::lock_guard lock(mutex_);
  return first_ == nullptr && !running_;
}

void Runner::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || first_ != nullptr; });
    if (first_ == nullptr) return;
    Request& request = *first_;
    first_ = request.next;
    running_ = true;
    lock.unlock();
    param_error error = {};
    const std::int32_t code = mesh_->Call(&error, request.bound->finish);
    lock.lock();
    running_ = false;
    request.code = code;
    request.error = error;
    request.done = true;
    changed_.notify_all();
  }
}

}  // namespace param::gloo_comm
