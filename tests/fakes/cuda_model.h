#pragma once
// A model of what the nccl backend takes of the CUDA runtime, on host memory: a stream is a thread.
// Linked in the runtime's place, with a table "device" over it.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "agent/backend/load_backend.h"

namespace param::cuda_model {

// A table "device" of kind "cuda" with any number of devices.
LoadedBackend Backend();

}  // namespace param::cuda_model

// Does its work in order, or, while capturing, notes it.
struct param_stream {
  using Work = std::function<void()>;

  param_stream() : thread_([this] { Run(); }) {}
  ~param_stream();
  void Add(Work work);
  void Drain();  // until nothing is left to do
  void BeginCapture();
  std::deque<Work> EndCapture();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_, captured_;
  bool busy_ = false, stopping_ = false, capturing_ = false;
  std::thread thread_;
};
