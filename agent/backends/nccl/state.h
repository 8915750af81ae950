#pragma once
// What stands behind the opaque handles of the table "comm".

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "agent/backend/kit_collective.h"
#include "agent/backends/nccl/errors.h"
#include "agent/backends/nccl/gate.h"
#include "agent/backends/nccl/plan.h"

namespace param::nccl {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

struct Comm {
  ncclComm_t raw = nullptr;  // used by who is inside the gate only
  std::int32_t rank = 0, size = 0;
  Gate gate;
  std::vector<void*> registered;  // handles of ncclCommRegister
  bool grouped = false;           // entered for the open group; the calling thread's
  std::mutex failure_mutex;
  param_error failure = {};  // why the watch closed it; code 0: it did not
};

struct Op {
  Comm* comm = nullptr;
  kit::Collective what;
  Plan plan;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t redop = ncclSum;
  bool reads = false, writes = false;  // this rank needs the operand src, the operand dst
};

struct Request {
  cudaEvent_t event = nullptr;
  Comm* comm = nullptr;
  cudaStream_t stream = nullptr;
  bool recorded = false;  // false until the group that it belongs to ends
};

struct Context;

// A thread that asks every communicator for asynchronous errors and aborts one that has some: the
// kernels of a collective whose peer is gone would otherwise run for ever, and with them who waits
// for their stream.
class Watch {
 public:
  explicit Watch(Context& ctx) : ctx_(ctx) {}
  ~Watch() { Stop(); }
  void Start();  // once is enough
  void Stop();

 private:
  void Run();
  void Look(Comm& comm);

  Context& ctx_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

// One device's communicators. One thread at a time, as the boundary says; abort from any.
struct Context {
  const param_host* host = nullptr;
  const param_device_v1* device = nullptr;
  param_ctx* device_ctx = nullptr;
  int cuda_device = 0;
  int major = 0;    // compute capability
  int version = 0;  // of NCCL, as ncclGetVersion says
  // One element for barriers, and a stream for the first of them.
  param_buffer* scratch = nullptr;
  void* scratch_data = nullptr;
  param_stream* stream = nullptr;

  std::mutex comms_mutex;  // the watch looks while it holds it
  std::vector<std::unique_ptr<Comm>> comms;

  int group_depth = 0;
  std::vector<Comm*> grouped;
  std::vector<Request*> grouped_requests;

  std::vector<std::unique_ptr<Request>> requests;  // all that were ever made
  std::vector<Request*> idle_requests;

  Watch watch{*this};

  cudaStream_t Native(param_stream* of) const {
    return static_cast<cudaStream_t>(device->stream_native(device_ctx, of));
  }
};

inline Context* Of(param_ctx* ctx) { return reinterpret_cast<Context*>(ctx); }
inline Comm* Of(param_comm* comm) { return reinterpret_cast<Comm*>(comm); }
inline Op* Of(param_op* op) { return reinterpret_cast<Op*>(op); }
inline Request* Of(param_request* request) { return reinterpret_cast<Request*>(request); }

// Inside a communicator's gate for a scope, or, while a group is open, until that ends.
class Inside {
 public:
  Inside(Context& ctx, Comm& comm) : comm_(comm) {
    if (comm.grouped) {
      ok_ = !comm.gate.closed();
      return;
    }
    ok_ = comm.gate.Enter();
    if (ok_ && ctx.group_depth > 0) {
      comm.grouped = true;
      ctx.grouped.push_back(&comm);
    } else {
      held_ = ok_;
    }
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    if (held_) comm_.gate.Leave();
  }
  bool ok() const { return ok_; }

 private:
  Comm& comm_;
  bool ok_ = false;
  bool held_ = false;
};

// Spins at first, since most of what is waited for takes microseconds, then sleeps between looks.
class Pause {
 public:
  void Wait();
  // Every so often: what is asked then costs more than a look.
  bool IsLong() const { return rounds_ % 64 == 63; }

 private:
  unsigned rounds_ = 0;
};

// ---- wait.cc ------------------------------------------------------------------------------------

// Makes the context's device the calling thread's current one.
std::int32_t Enter(const Context& ctx, param_error* err);
// Why a closed communicator is closed: ABORTED, or what the watch found.
std::int32_t FailClosed(Comm& comm, param_error* err);
// Ends what is in flight on it and frees it, once; never waits for a peer. Any thread.
void Abort(Comm& comm);
// Until the communicator is through with what it was told. CANCELLED and DEADLINE_EXCEEDED leave it
// as it is. `call` is named in the message.
std::int32_t AwaitReady(Context& ctx, Comm& comm, const char* call, Deadline deadline,
                        param_error* err);
// Until the event has come to pass.
std::int32_t AwaitEvent(Context& ctx, Comm& comm, cudaEvent_t event, const char* what,
                        Deadline deadline, param_error* err);

// ---- table entries, by file ---------------------------------------------------------------------

// backend.cc
std::int32_t Probe(param_error* why);
std::int32_t Open(const param_host* host, const param_device_v1* device, param_ctx* device_ctx,
                  param_ctx** out, param_error* err);
void Close(param_ctx* ctx);

// comm.cc
std::int32_t UniqueId(param_ctx* ctx, std::uint8_t id[PARAM_COMM_ID_BYTES], param_error* err);
std::int32_t CommCreate(param_ctx* ctx, const std::uint8_t id[PARAM_COMM_ID_BYTES],
                        std::int32_t rank, std::int32_t size, std::int64_t deadline_ns,
                        param_comm** out, param_error* err);
std::int32_t CommSplit(param_ctx* ctx, param_comm* comm, std::int32_t color, std::int32_t key,
                       param_comm** out, param_error* err);
std::int32_t CommDestroy(param_ctx* ctx, param_comm* comm, param_error* err);
void CommAbort(param_ctx* ctx, param_comm* comm);
std::int32_t CommAsyncError(param_ctx* ctx, param_comm* comm, param_error* err);
std::int32_t BufferRegister(param_ctx* ctx, param_comm* comm, param_buffer* buffer,
                            param_error* err);

// ops.cc
std::int32_t OpCreate(param_ctx* ctx, param_comm* comm, const param_op_desc* desc, param_op** out,
                      param_error* err);
void OpDestroy(param_ctx* ctx, param_op* op);
std::size_t OpWorkspaceBytes(param_ctx* ctx, param_op* op);
std::int32_t OpEnqueue(param_ctx* ctx, param_op* op, param_stream* stream,
                       const param_operand* operands, std::size_t count, param_buffer* workspace,
                       param_request** request, param_error* err);
std::int32_t OpInfo(param_ctx* ctx, param_op* op, char* json, std::size_t capacity,
                    param_error* err);
std::int32_t GroupBegin(param_ctx* ctx, param_error* err);
std::int32_t GroupEnd(param_ctx* ctx, param_error* err);
std::int32_t RequestTest(param_ctx* ctx, param_request* request, std::int32_t* done,
                         param_error* err);
std::int32_t RequestWait(param_ctx* ctx, param_request* request, param_error* err);

}  // namespace param::nccl
