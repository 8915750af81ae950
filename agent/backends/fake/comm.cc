// The fake backend's table "comm": real collectives by way of param_host.exchange, which is slow
// and works wherever a worker does. An exchange is among all ranks of the job, so there are no
// communicators of some of them, and no send and recv.

#include <algorithm>
#include <atomic>
#include <memory>

#include "agent/backend/kit_exchange.h"
#include "agent/backends/fake/collective.h"
#include "agent/backends/fake/state.h"

namespace param::fake {
namespace {

// Well below what a worker's line may carry.
constexpr std::size_t kChunk = 32 << 10;

// The table's context, a type of its own behind the opaque name.
struct CommContext {
  const param_host* host = nullptr;
  const param_device_v1* device = nullptr;
  param_ctx* device_ctx = nullptr;
  std::unique_ptr<Faults> faults;
};

struct Comm {
  std::int32_t rank = 0, size = 0;
  kit::AbortableExchange exchange;
};

struct CommOp {
  Comm* comm = nullptr;
  CollectiveView view;
};

CommContext* Of(param_ctx* ctx) { return reinterpret_cast<CommContext*>(ctx); }
Comm* Of(param_comm* comm) { return reinterpret_cast<Comm*>(comm); }
CommOp* Of(param_op* op) { return reinterpret_cast<CommOp*>(op); }

std::int32_t CommOpen(const param_host* host, const param_device_v1* device, param_ctx* device_ctx,
                      param_ctx** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    auto ctx = std::make_unique<CommContext>();
    Script script;
    PARAM_KIT_TRY(ParseScript(host->script, &script, err));
    ctx->host = host;
    ctx->device = device;
    ctx->device_ctx = device_ctx;
    ctx->faults = std::make_unique<Faults>(host, script.faults);
    *out = reinterpret_cast<param_ctx*>(ctx.release());
    return kit::kOk;
  });
}

void CommClose(param_ctx* ctx) { delete Of(ctx); }

std::int32_t UniqueId(param_ctx*, std::uint8_t id[PARAM_COMM_ID_BYTES], param_error*) {
  static std::atomic<std::uint64_t> count{0};
  std::memset(id, 0, PARAM_COMM_ID_BYTES);
  const std::uint64_t parts[2] = {static_cast<std::uint64_t>(MonotonicNs()), ++count};
  std::memcpy(id, parts, sizeof(parts));
  return kit::kOk;
}

std::int32_t CommCreate(param_ctx* raw, const std::uint8_t id[PARAM_COMM_ID_BYTES],
                        std::int32_t rank, std::int32_t size, std::int64_t deadline_ns,
                        param_comm** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    CommContext& ctx = *Of(raw);
    if (size < 1 || rank < 0 || rank >= size || size != ctx.host->size) {
      return kit::Fail(err, kit::kInvalidArgument, "rank %d of %d in a job of %d", rank, size,
                       ctx.host->size);
    }
    PARAM_KIT_TRY(ctx.faults->Reach("comm_init", err));
    if (ctx.host->progress != nullptr) ctx.host->progress(ctx.host->user, "connect");
    auto comm = std::make_unique<Comm>();
    comm->rank = rank;
    comm->size = size;
    std::vector<unsigned char> all;
    PARAM_KIT_TRY(
        comm->exchange.Run(ctx.host, {id, id + PARAM_COMM_ID_BYTES}, size, deadline_ns, &all, err));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == id[i % PARAM_COMM_ID_BYTES]) continue;
      return kit::Fail(err, kit::kFailedPrecondition, "rank %zu brought another unique id",
                       i / PARAM_COMM_ID_BYTES);
    }
    *out = reinterpret_cast<param_comm*>(comm.release());
    return kit::kOk;
  });
}

std::int32_t CommDestroy(param_ctx*, param_comm* comm, param_error*) {
  delete Of(comm);
  return kit::kOk;
}

void CommAbort(param_ctx*, param_comm* comm) { Of(comm)->exchange.Abort(); }

std::int32_t CommAsyncError(param_ctx*, param_comm* comm, param_error* err) {
  if (!Of(comm)->exchange.aborted()) return kit::kOk;
  return kit::Fail(err, kit::kAborted, "the communicator was aborted");
}

std::int32_t NothingToDo(param_ctx*, param_error*) { return kit::kOk; }

std::int32_t CommOpCreate(param_ctx*, param_comm* comm, const param_op_desc* desc, param_op** out,
                          param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    auto op = std::make_unique<CommOp>();
    op->comm = Of(comm);
    op->view.rank = op->comm->rank;
    op->view.ranks = op->comm->size;
    kit::Collective& c = op->view.what;
    PARAM_KIT_TRY(kit::ParseCollective(*desc, op->view.rank, op->view.ranks, &c, err));
    if (c.kind == kit::CollectiveKind::kSend || c.kind == kit::CollectiveKind::kRecv) {
      return kit::Fail(err, kit::kUnimplemented,
                       "%s: backend fake has only exchanges among all ranks", desc->name);
    }
    if (c.reduces() && !kit::Reduce(c.redop, c.dtype, nullptr, nullptr, 0)) {
      return kit::Fail(err, kit::kUnimplemented, "%s: backend fake does not reduce %s", desc->name,
                       kit::DtypeName(c.dtype));
    }
    *out = reinterpret_cast<param_op*>(op.release());
    return kit::kOk;
  });
}

void CommOpDestroy(param_ctx*, param_op* op) { delete Of(op); }
std::size_t CommOpWorkspace(param_ctx*, param_op*) { return 0; }

// What the ranks send each other, known before the blocks are.
std::int32_t ExchangeMatrix(CommContext& ctx, CommOp& op, param_error* err) {
  const std::vector<std::int64_t>& row = op.view.what.send_counts;
  std::vector<unsigned char> mine(row.size() * sizeof(row[0]));
  std::memcpy(mine.data(), row.data(), mine.size());
  std::vector<unsigned char> all;
  PARAM_KIT_TRY(op.comm->exchange.Run(ctx.host, std::move(mine), op.comm->size, 0, &all, err));
  op.view.matrix.resize(all.size() / sizeof(row[0]));
  std::memcpy(op.view.matrix.data(), all.data(), all.size());
  return CheckMatrix(op.view, err);
}

// Gives this rank's share and collects everyone's, piece by piece.
std::int32_t Collect(CommContext& ctx, CommOp& op, const param_operand& from,
                     std::vector<unsigned char>* given, param_error* err) {
  const std::size_t bytes = GivenBytes(op.view);
  const std::size_t own = Reads(op.view) ? op.view.what.src * op.view.what.size() : 0;
  given->resize(bytes * static_cast<std::size_t>(op.comm->size));
  std::vector<unsigned char> all;
  for (std::size_t at = 0; at < bytes; at += kChunk) {
    const std::size_t now = std::min(kChunk, bytes - at);
    std::vector<unsigned char> mine(now);
    if (at < own) {
      PARAM_KIT_TRY(ctx.device->buffer_read(ctx.device_ctx, from.buffer, from.offset + at,
                                            mine.data(), std::min(now, own - at), err));
    }
    PARAM_KIT_TRY(op.comm->exchange.Run(ctx.host, std::move(mine), op.comm->size, 0, &all, err));
    for (std::size_t r = 0; r * now < all.size(); ++r) {
      std::memcpy(given->data() + r * bytes + at, all.data() + r * now, now);
    }
  }
  return kit::kOk;
}

std::int32_t RunCollective(CommContext& ctx, CommOp& op, const param_operand* operands,
                           std::size_t count, param_error* err) {
  std::vector<unsigned char> given;
  const kit::Collective& c = op.view.what;
  if (c.kind == kit::CollectiveKind::kBarrier) {
    return op.comm->exchange.Run(ctx.host, {0}, op.comm->size, 0, &given, err);
  }
  const std::size_t wanted = c.one_buffer() ? 1 : 2;
  if (count != wanted) {
    return kit::Fail(err, kit::kInvalidArgument, "%zu operands, not %zu", count, wanted);
  }
  if (ctx.device == nullptr) return kit::Fail(err, kit::kFailedPrecondition, "no device is open");
  if (c.kind == kit::CollectiveKind::kAllToAllV) PARAM_KIT_TRY(ExchangeMatrix(ctx, op, err));
  PARAM_KIT_TRY(Collect(ctx, op, operands[0], &given, err));
  if (!Writes(op.view)) return kit::kOk;
  std::vector<unsigned char> result = ResultOf(op.view, given);
  if (ctx.faults->IsWrong() && !result.empty()) result[0] ^= 0x40;
  const param_operand& to = operands[count - 1];
  return ctx.device->buffer_write(ctx.device_ctx, to.buffer, to.offset, result.data(),
                                  result.size(), err);
}

// By the script's clock, where the device is the fake one too.
void SpendTimeOf(CommContext& ctx, param_stream* stream) {
  if (stream == nullptr || ctx.device == nullptr) return;
  if (ctx.device->stream_create != DeviceTable()->stream_create) return;
  SpendTime(*ctx.device_ctx, *stream);
}

// Complete when it returns; a request only carries that fact.
std::int32_t CommOpEnqueue(param_ctx* raw, param_op* op, param_stream* stream,
                           const param_operand* operands, std::size_t count, param_buffer*,
                           param_request** request, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    CommContext& ctx = *Of(raw);
    const bool knows = ctx.host->struct_size >= sizeof(param_host) && ctx.host->phase != nullptr;
    if (knows) PARAM_KIT_TRY(ctx.faults->Reach(ctx.host->phase(ctx.host->user), err));
    PARAM_KIT_TRY(RunCollective(ctx, *Of(op), operands, count, err));
    SpendTimeOf(ctx, stream);
    if (request != nullptr) *request = reinterpret_cast<param_request*>(new char());
    return kit::kOk;
  });
}

std::int32_t RequestTest(param_ctx*, param_request*, std::int32_t* done, param_error*) {
  *done = 1;
  return kit::kOk;
}

std::int32_t RequestWait(param_ctx*, param_request* request, param_error*) {
  delete reinterpret_cast<char*>(request);
  return kit::kOk;
}

std::int32_t CommOpInfo(param_ctx*, param_op*, char* json, std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&] {
    return kit::PutText(
        kit::JsonObject().Text("library", "fake").Text("implementation", "exchange").Done(), json,
        capacity, err);
  });
}

constexpr param_comm_v1 MakeTable() {
  param_comm_v1 t = {};
  t.struct_size = sizeof(t);
  t.kind = "fake";
  t.probe = Probe;
  t.open = CommOpen;
  t.close = CommClose;
  t.unique_id = UniqueId;
  t.comm_create = CommCreate;
  t.comm_destroy = CommDestroy;
  t.comm_abort = CommAbort;
  t.comm_async_error = CommAsyncError;
  t.group_begin = NothingToDo;
  t.group_end = NothingToDo;
  t.op_create = CommOpCreate;
  t.op_destroy = CommOpDestroy;
  t.op_workspace_bytes = CommOpWorkspace;
  t.op_enqueue = CommOpEnqueue;
  t.request_test = RequestTest;
  t.request_wait = RequestWait;
  t.op_info = CommOpInfo;
  return t;
}

}  // namespace

const param_comm_v1* CommTable() {
  static constexpr param_comm_v1 kTable = MakeTable();
  return &kTable;
}

}  // namespace param::fake
