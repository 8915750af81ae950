// Waiting for what is in progress without waiting for ever, and ending what is.

#include <sched.h>

#include "agent/backends/nccl/state.h"

namespace param::nccl {
namespace {

constexpr unsigned kSpins = 2000;
constexpr std::chrono::microseconds kNap{50};
// Long enough for any call that does not wait for a peer.
constexpr std::chrono::milliseconds kPatience{1000};
constexpr std::chrono::milliseconds kWatchEvery{100};

// CANCELLED or DEADLINE_EXCEEDED, or 0.
std::int32_t CheckTime(const Context& ctx, const Comm& comm, const char* what, Deadline deadline,
                       param_error* err) {
  if (ctx.host->cancelled != nullptr && ctx.host->cancelled(ctx.host->user) != 0) {
    return kit::Fail(err, kit::kCancelled, "%s: the job was cancelled or another rank failed",
                     what);
  }
  if (deadline.has_value() && std::chrono::steady_clock::now() >= *deadline) {
    return kit::Fail(err, kit::kDeadlineExceeded,
                     "%s: rank %d waited in vain: not all %d ranks came before the deadline", what,
                     comm.rank, comm.size);
  }
  return kit::kOk;
}

// 0, or the error that NCCL found by itself; `call` is what it is blamed on.
std::int32_t Ask(Comm& comm, const char* call, ncclResult_t* state, param_error* err) {
  const ncclResult_t asked = ncclCommGetAsyncError(comm.raw, state);
  if (asked != ncclSuccess) return FailWith(err, "ncclCommGetAsyncError", asked, comm.raw);
  return IsFailure(*state) ? FailWith(err, call, *state, comm.raw) : kit::kOk;
}

}  // namespace

void Pause::Wait() {
  if (++rounds_ < kSpins) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

std::int32_t Enter(const Context& ctx, param_error* err) {
  // The runtime's current device belongs to the thread.
  thread_local int current = -1;
  if (current == ctx.cuda_device) return kit::kOk;
  PARAM_NCCL_CUDA_TRY(err, cudaSetDevice, ctx.cuda_device);
  current = ctx.cuda_device;
  return kit::kOk;
}

std::int32_t FailClosed(Comm& comm, param_error* err) {
  const std::lock_guard lock(comm.failure_mutex);
  if (comm.failure.code == kit::kOk) {
    return kit::Fail(err, kit::kAborted, "the communicator was aborted");
  }
  if (err != nullptr) *err = comm.failure;
  return comm.failure.code;
}

void Abort(Comm& comm) {
  // Whoever is still inside after that long is stuck there; NCCL's abort is made to end that.
  if (comm.gate.Close(kPatience)) static_cast<void>(ncclCommAbort(comm.raw));
}

std::int32_t AwaitReady(Context& ctx, Comm& comm, const char* call, Deadline deadline,
                        param_error* err) {
  for (Pause pause;; pause.Wait()) {
    if (!comm.gate.Enter()) return FailClosed(comm, err);
    ncclResult_t state = ncclInProgress;
    const std::int32_t code = Ask(comm, call, &state, err);
    comm.gate.Leave();
    if (code != kit::kOk || state != ncclInProgress) return code;
    if (pause.IsLong()) PARAM_KIT_TRY(CheckTime(ctx, comm, call, deadline, err));
  }
}

std::int32_t AwaitEvent(Context& ctx, Comm& comm, cudaEvent_t event, const char* what,
                        Deadline deadline, param_error* err) {
  for (Pause pause;; pause.Wait()) {
    // An abort makes the kernels leave, and the event comes to pass: no success all the same.
    if (comm.gate.closed()) return FailClosed(comm, err);
    const cudaError_t error = cudaEventQuery(event);
    if (error == cudaSuccess) return kit::kOk;
    if (error != cudaErrorNotReady) return FailWith(err, what, error);
    if (pause.IsLong()) PARAM_KIT_TRY(CheckTime(ctx, comm, what, deadline, err));
  }
}

void Watch::Start() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void Watch::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Watch::Run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kWatchEvery, [this] { return stopping_; })) {
    lock.unlock();
    {
      const std::lock_guard comms(ctx_.comms_mutex);
      for (const auto& comm : ctx_.comms) Look(*comm);
    }
    lock.lock();
  }
}

void Watch::Look(Comm& comm) {
  if (!comm.gate.TryEnter()) return;  // its own thread is at it, and hears of errors itself
  ncclResult_t state = ncclSuccess;
  param_error why = {};
  const std::int32_t code = Ask(comm, "asynchronous error", &state, &why);
  comm.gate.Leave();
  if (code == kit::kOk) return;
  {
    const std::lock_guard lock(comm.failure_mutex);
    comm.failure = why;
  }
  if (ctx_.host->log != nullptr) ctx_.host->log(ctx_.host->user, 3, why.message);
  Abort(comm);
}

}  // namespace param::nccl
