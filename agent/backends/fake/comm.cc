// The fake backend's table "comm": real collectives by way of param_host.exchange, which is slow
// and works wherever a worker does. "all_reduce" (tensors src, dst; attribute redop "sum"; f32,
// i32), "broadcast" (tensor data; attribute root) and "barrier".

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "agent/backends/fake/state.h"

namespace param::fake {
namespace {

// Well below what a worker's line may carry.
constexpr std::size_t kChunk = 32 << 10;

// One exchange in flight. It runs on a thread of its own so that a deadline and an abort can leave
// it behind; that thread may outlive the call, hence shared.
struct Pending {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::int32_t code = 0;
  param_error error = {};
  std::vector<unsigned char> mine, all;
};

// The table's context, a type of its own behind the opaque name.
struct CommContext {
  const param_host* host = nullptr;
  const param_device_v1* device = nullptr;
  param_ctx* device_ctx = nullptr;
  std::unique_ptr<Faults> faults;
};

struct Comm {
  std::int32_t rank = 0, size = 0;
  std::mutex mutex;
  bool aborted = false;
  std::shared_ptr<Pending> pending;
};

enum class Collective { kAllReduce, kBroadcast, kBarrier };

struct CommOp {
  Comm* comm = nullptr;
  Collective kind = Collective::kBarrier;
  param_dtype dtype = PARAM_DTYPE_F32;
  std::size_t bytes = 0;
  std::int32_t root = 0;
};

CommContext* Of(param_ctx* ctx) { return reinterpret_cast<CommContext*>(ctx); }
Comm* Of(param_comm* comm) { return reinterpret_cast<Comm*>(comm); }
CommOp* Of(param_op* op) { return reinterpret_cast<CommOp*>(op); }

// Every rank gives `mine` and gets all. Ends early when the communicator is aborted or at the
// deadline (0: none).
std::int32_t Exchange(CommContext& ctx, Comm& comm, std::vector<unsigned char> mine,
                      std::int64_t deadline_ns, std::vector<unsigned char>* all, param_error* err) {
  auto pending = std::make_shared<Pending>();
  pending->mine = std::move(mine);
  pending->all.resize(pending->mine.size() * static_cast<std::size_t>(comm.size));
  {
    const std::lock_guard lock(comm.mutex);
    if (comm.aborted) return kit::Fail(err, kit::kAborted, "the communicator was aborted");
    comm.pending = pending;
  }
  std::thread([host = ctx.host, pending] {
    param_error error = {};
    const std::int32_t code = host->exchange(host->user, pending->mine.data(), pending->mine.size(),
                                             pending->all.data(), &error);
    const std::lock_guard lock(pending->mutex);
    if (pending->done) return;
    pending->done = true;
    pending->code = code;
    pending->error = error;
    pending->changed.notify_all();
  }).detach();
  std::unique_lock lock(pending->mutex);
  const auto is_done = [&] { return pending->done; };
  if (deadline_ns <= 0) {
    pending->changed.wait(lock, is_done);
  } else if (!pending->changed.wait_for(lock, std::chrono::nanoseconds(deadline_ns), is_done)) {
    pending->done = true;
    return kit::Fail(err, kit::kDeadlineExceeded, "not all %d ranks came within %.3f s", comm.size,
                     static_cast<double>(deadline_ns) * 1e-9);
  }
  if (pending->code != 0) {
    if (err != nullptr) *err = pending->error;
    return pending->code;
  }
  *all = std::move(pending->all);
  return kit::kOk;
}

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
    PARAM_KIT_TRY(Exchange(ctx, *comm, {id, id + PARAM_COMM_ID_BYTES}, deadline_ns, &all, err));
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

void CommAbort(param_ctx*, param_comm* raw) {
  Comm& comm = *Of(raw);
  std::shared_ptr<Pending> pending;
  {
    const std::lock_guard lock(comm.mutex);
    comm.aborted = true;
    pending = comm.pending;
  }
  if (pending == nullptr) return;
  const std::lock_guard lock(pending->mutex);
  if (pending->done) return;
  pending->done = true;
  pending->code = kit::Fail(&pending->error, kit::kAborted, "the communicator was aborted");
  pending->changed.notify_all();
}

std::int32_t CommAsyncError(param_ctx*, param_comm* raw, param_error* err) {
  const std::lock_guard lock(Of(raw)->mutex);
  if (!Of(raw)->aborted) return kit::kOk;
  return kit::Fail(err, kit::kAborted, "the communicator was aborted");
}

std::int32_t NothingToDo(param_ctx*, param_error*) { return kit::kOk; }

std::int32_t PrepareAllReduce(const param_op_desc& desc, CommOp* op, param_error* err) {
  std::string redop = "sum";
  const param_tensor* src = nullptr;
  const param_tensor* dst = nullptr;
  std::size_t dst_bytes = 0;
  PARAM_KIT_TRY(kit::CheckAttrs(desc, {"redop"}, err));
  PARAM_KIT_TRY(kit::GetString(desc, "redop", &redop, err));
  PARAM_KIT_TRY(kit::GetTensor(desc, 0, "src", &src, err));
  PARAM_KIT_TRY(kit::GetTensor(desc, 1, "dst", &dst, err));
  if (redop != "sum" || (src->dtype != PARAM_DTYPE_F32 && src->dtype != PARAM_DTYPE_I32)) {
    return kit::Fail(err, kit::kUnimplemented, "all_reduce: only the sum of f32 and i32, not %s %s",
                     redop.c_str(), kit::DtypeName(src->dtype));
  }
  if (!kit::DenseBytes(*src, &op->bytes) || !kit::DenseBytes(*dst, &dst_bytes) ||
      dst_bytes != op->bytes || dst->dtype != src->dtype) {
    return kit::Fail(err, kit::kInvalidArgument, "all_reduce: src and dst differ or are not dense");
  }
  op->kind = Collective::kAllReduce;
  op->dtype = src->dtype;
  return kit::kOk;
}

std::int32_t PrepareBroadcast(const param_op_desc& desc, CommOp* op, param_error* err) {
  std::int64_t root = 0;
  const param_tensor* data = nullptr;
  PARAM_KIT_TRY(kit::CheckAttrs(desc, {"root"}, err));
  PARAM_KIT_TRY(kit::GetInt(desc, "root", &root, err));
  PARAM_KIT_TRY(kit::GetTensor(desc, 0, "data", &data, err));
  if (root < 0 || root >= op->comm->size || !kit::DenseBytes(*data, &op->bytes)) {
    return kit::Fail(err, kit::kInvalidArgument, "broadcast: root %lld of %d, or not dense",
                     static_cast<long long>(root), op->comm->size);
  }
  op->kind = Collective::kBroadcast;
  op->root = static_cast<std::int32_t>(root);
  return kit::kOk;
}

std::int32_t CommOpCreate(param_ctx*, param_comm* comm, const param_op_desc* desc, param_op** out,
                          param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    auto op = std::make_unique<CommOp>();
    op->comm = Of(comm);
    if (std::strcmp(desc->name, "all_reduce") == 0) {
      PARAM_KIT_TRY(PrepareAllReduce(*desc, op.get(), err));
    } else if (std::strcmp(desc->name, "broadcast") == 0) {
      PARAM_KIT_TRY(PrepareBroadcast(*desc, op.get(), err));
    } else if (std::strcmp(desc->name, "barrier") == 0) {
      PARAM_KIT_TRY(kit::CheckAttrs(*desc, {}, err));
    } else {
      return kit::Fail(err, kit::kUnimplemented, "backend fake has no collective \"%s\"",
                       desc->name);
    }
    *out = reinterpret_cast<param_op*>(op.release());
    return kit::kOk;
  });
}

void CommOpDestroy(param_ctx*, param_op* op) { delete Of(op); }
std::size_t CommOpWorkspace(param_ctx*, param_op*) { return 0; }

template <typename T>
std::vector<unsigned char> SumOf(const std::vector<unsigned char>& all, std::size_t bytes) {
  std::vector<T> sum(bytes / sizeof(T));
  std::vector<T> one(bytes / sizeof(T));
  for (std::size_t at = 0; at + bytes <= all.size() && bytes > 0; at += bytes) {
    std::memcpy(one.data(), all.data() + at, bytes);
    for (std::size_t i = 0; i < one.size(); ++i) sum[i] = static_cast<T>(sum[i] + one[i]);
  }
  std::vector<unsigned char> out(bytes);
  if (bytes > 0) std::memcpy(out.data(), sum.data(), bytes);
  return out;
}

// What this rank ends up with of one chunk, from those of all ranks.
std::vector<unsigned char> Combine(const CommOp& op, const std::vector<unsigned char>& all,
                                   std::size_t bytes) {
  if (op.kind == Collective::kBroadcast) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(bytes) * op.root;
    return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
  }
  return op.dtype == PARAM_DTYPE_F32 ? SumOf<float>(all, bytes) : SumOf<std::int32_t>(all, bytes);
}

std::int32_t RunCollective(CommContext& ctx, const CommOp& op, const param_operand* operands,
                           std::size_t count, param_error* err) {
  std::vector<unsigned char> all;
  if (op.kind == Collective::kBarrier) return Exchange(ctx, *op.comm, {0}, 0, &all, err);
  const std::size_t wanted = op.kind == Collective::kAllReduce ? 2 : 1;
  if (count != wanted) {
    return kit::Fail(err, kit::kInvalidArgument, "%zu operands, not %zu", count, wanted);
  }
  if (ctx.device == nullptr) return kit::Fail(err, kit::kFailedPrecondition, "no device is open");
  const param_operand& from = operands[0];
  const param_operand& to = operands[count - 1];
  for (std::size_t at = 0; at < op.bytes; at += kChunk) {
    std::vector<unsigned char> mine(std::min(kChunk, op.bytes - at));
    PARAM_KIT_TRY(ctx.device->buffer_read(ctx.device_ctx, from.buffer, from.offset + at,
                                          mine.data(), mine.size(), err));
    const std::size_t bytes = mine.size();
    PARAM_KIT_TRY(Exchange(ctx, *op.comm, std::move(mine), 0, &all, err));
    std::vector<unsigned char> result = Combine(op, all, bytes);
    if (ctx.faults->IsWrong() && at == 0) result[0] ^= 0x40;
    PARAM_KIT_TRY(ctx.device->buffer_write(ctx.device_ctx, to.buffer, to.offset + at, result.data(),
                                           bytes, err));
  }
  return kit::kOk;
}

// Complete when it returns; a request only carries that fact.
std::int32_t CommOpEnqueue(param_ctx* raw, param_op* op, param_stream*,
                           const param_operand* operands, std::size_t count, param_buffer*,
                           param_request** request, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    CommContext& ctx = *Of(raw);
    const bool knows = ctx.host->struct_size >= sizeof(param_host) && ctx.host->phase != nullptr;
    if (knows) PARAM_KIT_TRY(ctx.faults->Reach(ctx.host->phase(ctx.host->user), err));
    PARAM_KIT_TRY(RunCollective(ctx, *Of(op), operands, count, err));
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
