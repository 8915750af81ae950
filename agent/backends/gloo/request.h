#pragma once
// Operations that run on while the caller goes on.

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "agent/backends/gloo/plan.h"

namespace param::gloo_comm {

struct Comm;

// One operation in flight: what a param_request is.
struct Request {
  Comm* comm = nullptr;
  std::shared_ptr<Bound> bound;
  Request* next = nullptr;  // of a runner's queue
  bool queued = false;      // a runner finishes it; else its waiter does
  bool done = false;        // with queued: guarded by the runner's mutex, as are those below
  std::int32_t code = 0;
  param_error error = {};
};

// Finishes requests one after the other on a thread of its own, which begins with the first.
//
// Gloo's collectives block, so those in flight run in turn, in the same order on all ranks.
class Runner {
 public:
  explicit Runner(std::shared_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}
  // Waits for what is queued: abort the mesh first where that may not end.
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // `request` stays the caller's, until it is done.
  void Push(Request& request);
  bool IsDone(const Request& request) const;
  // Waits for a request that was pushed; its code.
  std::int32_t Wait(const Request& request, param_error* err);
  // Nothing is queued or running.
  bool idle() const;

 private:
  void Loop();

  const std::shared_ptr<Mesh> mesh_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Request* first_ = nullptr;
  Request* last_ = nullptr;
  bool running_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace param::gloo_comm
