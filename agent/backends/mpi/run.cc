// The hot path: pointers, one MPI call, what MPI leaves to do.

#include <algorithm>
#include <memory>

#include "agent/backends/mpi/state.h"

namespace param::mpi {
namespace {

using K = kit::CollectiveKind;

constexpr int kIncastTag = 32768;
constexpr int kMulticastTag = 32769;

// The blocking call, or its non-blocking form that yields a request.
template <bool kBlocking, typename Blocking, typename NonBlocking, typename... Args>
int Call(Blocking* blocking, NonBlocking* non_blocking, MPI_Request* request, Args... args) {
  if constexpr (kBlocking) {
    return blocking(args...);
  } else {
    return non_blocking(args..., request);
  }
}
#define PARAM_MPI_CALL(blocking, non_blocking, ...) \
  Call<kBlocking>(blocking, non_blocking, request, __VA_ARGS__)

template <bool kBlocking>
int Reduction(const param_op& op, const MpiPlaces& p, MPI_Request* request) {
  MPI_Comm comm = op.comm->handle;
  const bool in_place = op.c.in_place && !op.via_workspace;
  const void* const src = in_place ? MPI_IN_PLACE : p.src;
  switch (op.c.kind) {
    case K::kAllReduce:
      return PARAM_MPI_CALL(MPI_Allreduce, MPI_Iallreduce, src, p.out, op.n, op.type, op.reduction,
                            comm);
    case K::kReduce:
      return PARAM_MPI_CALL(MPI_Reduce, MPI_Ireduce, op.is_root ? src : p.src, p.out, op.n, op.type,
                            op.reduction, op.c.root, comm);
    case K::kReduceScatter:
      return PARAM_MPI_CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, src, p.out, op.n,
                            op.type, op.reduction, comm);
    default:
      return PARAM_MPI_CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, src, p.out,
                            op.send_counts.data(), op.type, op.reduction, comm);
  }
}

template <bool kBlocking>
int Movement(const param_op& op, const MpiPlaces& p, MPI_Request* request) {
  MPI_Comm comm = op.comm->handle;
  const bool at_root = op.c.in_place && op.is_root;
  const void* const src = op.c.in_place ? MPI_IN_PLACE : p.src;
  switch (op.c.kind) {
    case K::kBroadcast:
      return PARAM_MPI_CALL(MPI_Bcast, MPI_Ibcast, p.src, op.n, op.type, op.c.root, comm);
    case K::kAllGather:
      return PARAM_MPI_CALL(MPI_Allgather, MPI_Iallgather, src, op.n, op.type, p.dst, op.n, op.type,
                            comm);
    case K::kAllGatherV:
      return PARAM_MPI_CALL(MPI_Allgatherv, MPI_Iallgatherv, src, op.n, op.type, p.dst,
                            op.send_counts.data(), op.send_displs.data(), op.type, comm);
    case K::kAllToAll:
      return PARAM_MPI_CALL(MPI_Alltoall, MPI_Ialltoall, src, op.n, op.type, p.dst, op.n, op.type,
                            comm);
    case K::kAllToAllV:
      return PARAM_MPI_CALL(MPI_Alltoallv, MPI_Ialltoallv, src, op.send_counts.data(),
                            op.send_displs.data(), op.type, p.dst, op.recv_counts.data(),
                            op.recv_displs.data(), op.type, comm);
    case K::kGather:
      return PARAM_MPI_CALL(MPI_Gather, MPI_Igather, at_root ? MPI_IN_PLACE : p.src, op.n, op.type,
                            p.dst, op.n, op.type, op.c.root, comm);
    case K::kScatter:
      return PARAM_MPI_CALL(MPI_Scatter, MPI_Iscatter, p.src, op.n, op.type,
                            at_root ? MPI_IN_PLACE : p.dst, op.n, op.type, op.c.root, comm);
    case K::kSend:
      return PARAM_MPI_CALL(MPI_Send, MPI_Isend, p.src, op.n, op.type, op.c.root, op.c.tag, comm);
    case K::kRecv:
      if constexpr (kBlocking) {
        return MPI_Recv(p.src, op.n, op.type, op.c.root, op.c.tag, comm, MPI_STATUS_IGNORE);
      } else {
        return MPI_Irecv(p.src, op.n, op.type, op.c.root, op.c.tag, comm, request);
      }
    default:
      if constexpr (kBlocking) {
        return MPI_Barrier(comm);
      } else {
        return MPI_Ibarrier(comm, request);
      }
  }
}

bool IsSpread(const param_op& op) { return op.c.kind == K::kIncast || op.c.kind == K::kMulticast; }

// Requests that Spread() makes on this rank.
std::size_t PartsOf(const param_op& op) {
  if (!IsSpread(op)) return 1;
  if (op.is_root) return op.c.peers.size();
  return std::count(op.c.peers.begin(), op.c.peers.end(), op.comm->rank) != 0 ? 1 : 0;
}

// incast and multicast: messages between the root and each peer, all started at once.
int Spread(const param_op& op, const MpiPlaces& p, MPI_Request* requests) {
  MPI_Comm comm = op.comm->handle;
  const bool is_incast = op.c.kind == K::kIncast;
  if (!op.is_root) {
    if (PartsOf(op) == 0) return MPI_SUCCESS;
    return is_incast ? MPI_Isend(p.src, op.n, op.type, op.c.root, kIncastTag, comm, requests)
                     : MPI_Irecv(p.src, op.n, op.type, op.c.root, kMulticastTag, comm, requests);
  }
  const std::size_t bytes = op.c.src * op.c.size();
  for (std::size_t i = 0; i < op.c.peers.size(); ++i) {
    const int peer = op.c.peers[i];
    const int code = is_incast
                         ? MPI_Irecv(static_cast<char*>(p.dst) + i * bytes, op.n, op.type, peer,
                                     kIncastTag, comm, &requests[i])
                         : MPI_Isend(p.src, op.n, op.type, peer, kMulticastTag, comm, &requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int Blocking(param_op& op, const MpiPlaces& p) {
  if (op.c.reduces()) return Reduction<true>(op, p, nullptr);
  if (!IsSpread(op)) return Movement<true>(op, p, nullptr);
  const int code = Spread(op, p, op.parts.data());
  if (code != MPI_SUCCESS) return code;
  return MPI_Waitall(static_cast<int>(PartsOf(op)), op.parts.data(), MPI_STATUSES_IGNORE);
}

int Start(const param_op& op, const MpiPlaces& p, MPI_Request* requests) {
  if (op.c.reduces()) return Reduction<false>(op, p, requests);
  return IsSpread(op) ? Spread(op, p, requests) : Movement<false>(op, p, requests);
}

void Finish(const param_op& op, const MpiPlaces& p) {
  if (op.averages_here) kit::FinishAvg(op.c.dtype, p.out, op.c.dst, op.comm->size);
  if (op.via_workspace && op.c.dst > 0) std::memcpy(p.dst, p.out, op.c.dst * op.c.size());
}

// Null for an operand that this rank has no part in.
void* Pointer(const param_ctx& ctx, const param_operand& operand) {
  if (operand.buffer == nullptr) return nullptr;
  auto* const base = static_cast<char*>(ctx.device->buffer_native(ctx.device_ctx, operand.buffer));
  return base == nullptr ? nullptr : base + operand.offset;
}

std::int32_t Resolve(const param_ctx& ctx, const param_op& op, const param_operand* operands,
                     std::size_t count, param_buffer* workspace, MpiPlaces* p, param_error* err) {
  if (count != op.operands) {
    return kit::Fail(err, kit::kInvalidArgument, "%zu operands, not %zu", count, op.operands);
  }
  bool lost = false;
  if (count > 0) {
    p->src = Pointer(ctx, operands[0]);
    lost = p->src == nullptr && operands[0].buffer != nullptr;
  }
  if (count > 1) {
    p->dst = Pointer(ctx, operands[1]);
    lost |= p->dst == nullptr && operands[1].buffer != nullptr;
  }
  p->out = p->dst;
  if (lost) [[unlikely]] {
    return kit::Fail(err, kit::kFailedPrecondition,
                     "MPI works on host memory: a buffer of device "
                     "%s has no pointer",
                     ctx.device->kind);
  }
  if (op.via_workspace) {
    p->out = Pointer(ctx, {workspace, 0});
    if (p->out == nullptr && op.c.dst > 0) {
      return kit::Fail(err, kit::kInvalidArgument, "no workspace, where %zu bytes are needed",
                       op.c.dst * op.c.size());
    }
  }
  return kit::kOk;
}

std::int32_t CallFailed(param_ctx* ctx, const param_op& op, int code, param_error* err) {
  return FailWith(ctx, err, kit::kCollectiveNames[static_cast<int>(op.c.kind)], code);
}

// Into the open group, to be completed at its end.
std::int32_t Join(param_ctx* ctx, param_op* op, const MpiPlaces& p, param_error* err) {
  const std::size_t at = ctx->group.size();
  ctx->group.resize(at + PartsOf(*op), MPI_REQUEST_NULL);
  const int code = Start(*op, p, ctx->group.data() + at);
  if (code != MPI_SUCCESS) return CallFailed(ctx, *op, code, err);
  if (op->finishes) ctx->grouped.push_back({op, p});
  return kit::kOk;
}

std::int32_t StartRequest(param_ctx* ctx, param_op* op, const MpiPlaces& p, param_request** out,
                          param_error* err) {
  if (ctx->pool == nullptr) ctx->pool = new param_request();
  param_request* const request = ctx->pool;
  request->op = op;
  request->places = p;
  request->parts.assign(PartsOf(*op), MPI_REQUEST_NULL);
  const int code = Start(*op, p, request->parts.data());
  if (code != MPI_SUCCESS) return CallFailed(ctx, *op, code, err);
  ctx->pool = request->next;
  request->next = nullptr;
  *out = request;
  return kit::kOk;
}

// A call that only the end of the process could end: see state.h.
class InFlight {
 public:
  explicit InFlight(param_ctx* ctx) : ctx_(ctx) {
    ctx_->in_flight.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler; CommAbort waits
  }
  ~InFlight() { ctx_->in_flight.store(false, std::memory_order_release); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  param_ctx* ctx_;
};

}  // namespace

std::int32_t OpEnqueue(param_ctx* ctx, param_op* op, param_stream*, const param_operand* operands,
                       std::size_t count, param_buffer* workspace, param_request** request,
                       param_error* err) {
  MpiPlaces p;
  PARAM_KIT_TRY(Resolve(*ctx, *op, operands, count, workspace, &p, err));
  if (request == nullptr && !ctx->grouping) [[likely]] {
    const InFlight mark(ctx);
    if (ctx->aborted.load(std::memory_order_relaxed)) return Aborted(err);
    const int code = Blocking(*op, p);
    if (code != MPI_SUCCESS) return CallFailed(ctx, *op, code, err);
    if (op->finishes) Finish(*op, p);
    return kit::kOk;
  }
  return kit::Guard(err, [&]() -> std::int32_t {
    if (ctx->aborted.load(std::memory_order_relaxed)) return Aborted(err);
    if (request == nullptr) return Join(ctx, op, p, err);
    if (ctx->grouping) {
      return kit::Fail(err, kit::kInvalidArgument, "a request inside a group");
    }
    return StartRequest(ctx, op, p, request, err);
  });
}

std::int32_t RequestTest(param_ctx* ctx, param_request* request, std::int32_t* done,
                         param_error* err) {
  if (ctx->aborted.load(std::memory_order_relaxed)) return Aborted(err);
  int all = 0;
  const int code = MPI_Testall(static_cast<int>(request->parts.size()), request->parts.data(), &all,
                               MPI_STATUSES_IGNORE);
  if (code != MPI_SUCCESS) return CallFailed(ctx, *request->op, code, err);
  *done = all != 0 ? 1 : 0;
  return kit::kOk;
}

// A loop that looks for an abort: here it costs nothing, since MPI_Wait is the same loop.
std::int32_t RequestWait(param_ctx* ctx, param_request* request, param_error* err) {
  for (std::int32_t done = 0; done == 0;) {
    // After an error the request is left behind: MPI may still work on it.
    PARAM_KIT_TRY(RequestTest(ctx, request, &done, err));
  }
  if (request->op->finishes) Finish(*request->op, request->places);
  request->next = ctx->pool;
  ctx->pool = request;
  return kit::kOk;
}

std::int32_t GroupBegin(param_ctx* ctx, param_error* err) {
  if (ctx->grouping) return kit::Fail(err, kit::kFailedPrecondition, "a group is open already");
  ctx->grouping = true;
  ctx->group.clear();
  ctx->grouped.clear();
  return kit::kOk;
}

std::int32_t GroupEnd(param_ctx* ctx, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (!ctx->grouping) return kit::Fail(err, kit::kFailedPrecondition, "no group is open");
    ctx->grouping = false;
    ctx->group_statuses.resize(ctx->group.size());
    const InFlight mark(ctx);
    if (ctx->aborted.load(std::memory_order_relaxed)) return Aborted(err);
    int code = MPI_Waitall(static_cast<int>(ctx->group.size()), ctx->group.data(),
                           ctx->group_statuses.data());
    if (code == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& status : ctx->group_statuses) {
        if (status.MPI_ERROR == MPI_SUCCESS || status.MPI_ERROR == MPI_ERR_PENDING) continue;
        code = status.MPI_ERROR;
        break;
      }
    }
    if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Waitall", code);
    for (const param_ctx::Grouped& one : ctx->grouped) Finish(*one.op, one.places);
    return kit::kOk;
  });
}

}  // namespace param::mpi
