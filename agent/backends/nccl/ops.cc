// Prepared collectives, groups of them, and requests.

#include "agent/backends/nccl/state.h"
#include "agent/backends/nccl/types.h"

namespace param::nccl {
namespace {

// Where the operands of one enqueue lie; null where this rank needs none.
struct Places {
  char* src = nullptr;
  char* dst = nullptr;
};

std::int32_t PlaceOf(const Context& ctx, const param_operand& operand, const char* name, char** out,
                     param_error* err) {
  char* const data =
      operand.buffer == nullptr
          ? nullptr
          : static_cast<char*>(ctx.device->buffer_native(ctx.device_ctx, operand.buffer));
  if (data == nullptr) {
    return kit::Fail(err, kit::kInvalidArgument, "operand %s: no device memory", name);
  }
  *out = data + operand.offset;
  return kit::kOk;
}

std::int32_t FindPlaces(const Context& ctx, const Op& op, const param_operand* operands,
                        std::size_t count, Places* out, param_error* err) {
  const bool barrier = op.what.kind == kit::CollectiveKind::kBarrier;
  const std::size_t one = op.what.one_buffer() ? 1 : 2;
  const std::size_t wanted = barrier ? 0 : one;
  if (count != wanted) {
    return kit::Fail(err, kit::kInvalidArgument, "%zu operands, not %zu", count, wanted);
  }
  if (barrier) {
    out->src = out->dst = static_cast<char*>(ctx.scratch_data);
    return kit::kOk;
  }
  if (op.reads) PARAM_KIT_TRY(PlaceOf(ctx, operands[0], "src", &out->src, err));
  if (op.writes) PARAM_KIT_TRY(PlaceOf(ctx, operands[count - 1], "dst", &out->dst, err));
  return kit::kOk;
}

// Copies the input aside, where the plan says so, and takes the copy for the input.
std::int32_t CopyAside(const Context& ctx, const Op& op, param_buffer* workspace,
                       cudaStream_t stream, Places* places, param_error* err) {
  if (op.plan.copied == 0) return kit::kOk;
  char* copy = nullptr;
  PARAM_KIT_TRY(PlaceOf(ctx, {workspace, 0}, "workspace", &copy, err));
  PARAM_NCCL_CUDA_TRY(err, cudaMemcpyAsync, copy, places->src, op.plan.copied * op.what.size(),
                      cudaMemcpyDeviceToDevice, stream);
  places->src = copy;
  return kit::kOk;
}

ncclResult_t Issue(const Op& op, const Step& step, const Places& places, cudaStream_t stream) {
  auto* const comm = op.comm->raw;
  const std::size_t size = op.what.size();
  const char* const src = places.src == nullptr ? nullptr : places.src + step.src * size;
  char* const dst = places.dst == nullptr ? nullptr : places.dst + step.dst * size;
  switch (step.call) {
    case Call::kAllReduce:
      return ncclAllReduce(src, dst, step.count, op.type, op.redop, comm, stream);
    case Call::kReduce:
      return ncclReduce(src, dst, step.count, op.type, op.redop, step.peer, comm, stream);
    case Call::kBroadcast:
      return ncclBroadcast(src, dst, step.count, op.type, step.peer, comm, stream);
    case Call::kAllGather:
      return ncclAllGather(src, dst, step.count, op.type, comm, stream);
    case Call::kReduceScatter:
      return ncclReduceScatter(src, dst, step.count, op.type, op.redop, comm, stream);
    case Call::kSend:
      return ncclSend(src, step.count, op.type, step.peer, comm, stream);
    case Call::kRecv:
      return ncclRecv(dst, step.count, op.type, step.peer, comm, stream);
  }
  return ncclInternalError;
}

// All steps as one group. A group that was begun is ended, whatever happened in it.
ncclResult_t Launch(const Op& op, const Places& places, cudaStream_t stream) {
  const std::vector<Step>& steps = op.plan.steps;
  if (steps.empty()) return ncclSuccess;
  if (steps.size() == 1) return Issue(op, steps[0], places, stream);
  ncclResult_t result = ncclGroupStart();
  if (result != ncclSuccess) return result;
  for (const Step& step : steps) {
    result = Issue(op, step, places, stream);
    if (IsFailure(result)) break;
  }
  const ncclResult_t ended = ncclGroupEnd();
  return IsFailure(result) ? result : ended;
}

std::int32_t NewRequest(Context& ctx, param_error* err) {
  auto request = std::make_unique<Request>();
  PARAM_NCCL_CUDA_TRY(err, cudaEventCreateWithFlags, &request->event, cudaEventDisableTiming);
  ctx.idle_requests.reserve(ctx.requests.size() + 1);  // so that giving one back cannot fail
  ctx.requests.push_back(std::move(request));
  ctx.idle_requests.push_back(ctx.requests.back().get());
  return kit::kOk;
}

std::int32_t Record(Request& request, param_error* err) {
  PARAM_NCCL_CUDA_TRY(err, cudaEventRecord, request.event, request.stream);
  request.recorded = true;
  return kit::kOk;
}

// An event behind the operation; inside a group behind the group.
std::int32_t MakeRequest(Context& ctx, Comm& comm, cudaStream_t stream, param_request** out,
                         param_error* err) {
  if (ctx.idle_requests.empty()) PARAM_KIT_TRY(NewRequest(ctx, err));
  Request* const request = ctx.idle_requests.back();
  request->comm = &comm;
  request->stream = stream;
  request->recorded = false;
  if (ctx.group_depth > 0) {
    ctx.grouped_requests.push_back(request);
  } else {
    PARAM_KIT_TRY(Record(*request, err));
  }
  ctx.idle_requests.pop_back();
  *out = reinterpret_cast<param_request*>(request);
  return kit::kOk;
}

// Which operands this rank needs at all.
void FindNeeds(std::int32_t rank, Op* op) {
  for (const Step& step : op->plan.steps) {
    const bool root = step.peer == rank;
    op->reads |= step.call != Call::kRecv && (step.call != Call::kBroadcast || root);
    op->writes |= step.call != Call::kSend && (step.call != Call::kReduce || root);
  }
}

std::string Describe(const Context& ctx, const Op& op) {
  kit::JsonObject json;
  json.Text("library", "NCCL " + VersionText(ctx.version));
  json.Text("implementation", op.plan.implementation);
  const bool f8 = op.what.dtype == PARAM_DTYPE_F8E4M3 || op.what.dtype == PARAM_DTYPE_F8E5M2;
  if (f8 && op.type == ncclUint8) json.Text("type", "moved as bytes");
  if (op.what.reduces() && op.redop == ncclAvg) {
    json.Text("avg", "ncclAvg: floats are multiplied by 1/ranks before they are added");
  }
  if (op.plan.copied > 0) json.Text("in_place", "the input is copied aside first");
  using K = kit::CollectiveKind;
  if (op.what.kind == K::kSend || op.what.kind == K::kRecv) {
    json.Text("tag", "unused: NCCL matches sends and receives of two ranks by their order");
  }
  return json.Done();
}

}  // namespace

std::int32_t OpCreate(param_ctx* raw, param_comm* handle, const param_op_desc* desc, param_op** out,
                      param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    const Context& ctx = *Of(raw);
    Comm& comm = *Of(handle);
    auto op = std::make_unique<Op>();
    op->comm = &comm;
    PARAM_KIT_TRY(kit::ParseCollective(*desc, comm.rank, comm.size, &op->what, err));
    PARAM_KIT_TRY(CheckOwnBlock(op->what, comm.rank, err));
    PARAM_KIT_TRY(TypeOf(op->what, ctx.version, ctx.major, &op->type, err));
    op->redop = RedOpOf(op->what.redop);
    op->plan = MakePlan(op->what, comm.rank, comm.size);
    FindNeeds(comm.rank, op.get());
    *out = reinterpret_cast<param_op*>(op.release());
    return kit::kOk;
  });
}

void OpDestroy(param_ctx*, param_op* op) { delete Of(op); }

std::size_t OpWorkspaceBytes(param_ctx*, param_op* op) {
  return Of(op)->plan.copied * Of(op)->what.size();
}

std::int32_t OpEnqueue(param_ctx* raw, param_op* handle, param_stream* on,
                       const param_operand* operands, std::size_t count, param_buffer* workspace,
                       param_request** request, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    const Op& op = *Of(handle);
    Comm& comm = *op.comm;
    PARAM_KIT_TRY(Enter(ctx, err));
    if (on == nullptr) return kit::Fail(err, kit::kInvalidArgument, "nccl needs a stream");
    auto* const stream = ctx.Native(on);
    Places places;
    PARAM_KIT_TRY(FindPlaces(ctx, op, operands, count, &places, err));
    PARAM_KIT_TRY(CopyAside(ctx, op, workspace, stream, &places, err));
    ncclResult_t result = ncclSuccess;
    {
      const Inside inside(ctx, comm);
      if (!inside.ok()) return FailClosed(comm, err);
      result = Launch(op, places, stream);
      if (IsFailure(result)) return FailWith(err, op.plan.implementation, result, comm.raw);
    }
    if (result == ncclInProgress && ctx.group_depth == 0) {
      PARAM_KIT_TRY(AwaitReady(ctx, comm, op.plan.implementation, std::nullopt, err));
    }
    return request == nullptr ? std::int32_t{kit::kOk}
                              : MakeRequest(ctx, comm, stream, request, err);
  });
}

std::int32_t OpInfo(param_ctx* ctx, param_op* op, char* json, std::size_t capacity,
                    param_error* err) {
  return kit::Guard(err,
                    [&] { return kit::PutText(Describe(*Of(ctx), *Of(op)), json, capacity, err); });
}

std::int32_t GroupBegin(param_ctx* raw, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    PARAM_KIT_TRY(Enter(ctx, err));
    const ncclResult_t result = ncclGroupStart();
    if (result != ncclSuccess) return FailWith(err, "ncclGroupStart", result, nullptr);
    ++ctx.group_depth;
    return kit::kOk;
  });
}

std::int32_t GroupEnd(param_ctx* raw, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    if (ctx.group_depth == 0) {
      return kit::Fail(err, kit::kFailedPrecondition, "group_end without group_begin");
    }
    PARAM_KIT_TRY(Enter(ctx, err));
    const ncclResult_t result = ncclGroupEnd();
    std::int32_t code =
        IsFailure(result) ? FailWith(err, "ncclGroupEnd", result, nullptr) : std::int32_t{kit::kOk};
    if (--ctx.group_depth > 0) return code;
    // Out of all gates first: an abort must not wait for the polling.
    const std::vector<Comm*> comms = std::move(ctx.grouped);
    const std::vector<Request*> requests = std::move(ctx.grouped_requests);
    ctx.grouped.clear();
    ctx.grouped_requests.clear();
    for (Comm* const comm : comms) {
      comm->grouped = false;
      comm->gate.Leave();
    }
    for (Comm* const comm : comms) {
      if (code == kit::kOk) code = AwaitReady(ctx, *comm, "ncclGroupEnd", std::nullopt, err);
    }
    for (Request* const request : requests) {
      if (code == kit::kOk) code = Record(*request, err);
    }
    return code;
  });
}

std::int32_t RequestTest(param_ctx* raw, param_request* handle, std::int32_t* done,
                         param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    const Request& request = *Of(handle);
    *done = 0;
    if (request.comm->gate.closed()) return FailClosed(*request.comm, err);
    if (!request.recorded) return kit::kOk;
    PARAM_KIT_TRY(Enter(*Of(raw), err));
    const cudaError_t error = cudaEventQuery(request.event);
    if (error != cudaSuccess && error != cudaErrorNotReady) {
      return FailWith(err, "cudaEventQuery", error);
    }
    *done = error == cudaSuccess ? 1 : 0;
    return kit::kOk;
  });
}

std::int32_t RequestWait(param_ctx* raw, param_request* handle, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = *Of(raw);
    Request& request = *Of(handle);
    std::int32_t code = Enter(ctx, err);
    if (code == kit::kOk && !request.recorded) {
      code = kit::Fail(err, kit::kFailedPrecondition,
                       "request_wait before group_end, or after one that failed");
    }
    if (code == kit::kOk) {
      code = AwaitEvent(ctx, *request.comm, request.event, "request_wait", std::nullopt, err);
    }
    std::erase(ctx.grouped_requests, &request);
    ctx.idle_requests.push_back(&request);
    return code;
  });
}

}  // namespace param::nccl
