#include "agent/backends/gloo/comm.h"

#include <gloo/allgather.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/transport/tcp/device.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/backend/kit_exchange.h"
#include "agent/backends/gloo/interface.h"
#include "agent/backends/gloo/request.h"

namespace param::gloo_comm {

struct Comm {
  Comm(std::shared_ptr<Mesh> connected, std::int64_t deadline)
      : mesh(std::move(connected)), deadline_ns(deadline), collectives(mesh), transfers(mesh) {}

  const std::shared_ptr<Mesh> mesh;
  const std::int64_t deadline_ns;  // for making another of it
  std::uint32_t next_tag = 0;
  std::uint8_t splits = 0;
  // They are given out again: an operation in a loop makes none. A deque does not move them.
  std::deque<Request> requests;
  std::vector<Request*> free_requests;
  // Last, so that their threads end first.
  Runner collectives;
  Runner transfers;
};

namespace {

constexpr std::size_t kIdBytes = 16;
// Of what a communicator does for itself; those of operations count from 0.
constexpr std::uint32_t kDestroyTag = 0xffffffff;
constexpr std::uint32_t kSplitTag = 0xfffffffe;

struct Context {
  const param_host* host = nullptr;
  const param_device_v1* device = nullptr;
  param_ctx* device_ctx = nullptr;
  Interface interface;
  std::shared_ptr<gloo::transport::Device> transport;
  std::vector<std::unique_ptr<Comm>> comms;
  int groups = 0;  // group_begin without group_end
  std::vector<Request*> grouped;
};

struct Op {
  Comm* comm = nullptr;
  std::unique_ptr<Plan> plan;
};

Context& Of(param_ctx* ctx) { return *reinterpret_cast<Context*>(ctx); }
Comm& Of(param_comm* comm) { return *reinterpret_cast<Comm*>(comm); }
Op& Of(param_op* op) { return *reinterpret_cast<Op*>(op); }
Request& Of(param_request* request) { return *reinterpret_cast<Request*>(request); }

// ---- contexts and communicators ----------------------------------------------------------------

std::int32_t Probe(param_error* why) {
  if (!ListInterfaces().empty()) return 1;
  (void)kit::Fail(why, kit::kFailedPrecondition, "no network interface is up");
  return -1;
}

// Gloo writes to sockets in the plain way: that a peer left must be an error and not our end.
void IgnoreBrokenPipes() {
  struct sigaction now = {};
  if (::sigaction(SIGPIPE, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  (void)std::signal(SIGPIPE, SIG_IGN);
}

std::int32_t Open(const param_host* host, const param_device_v1* device, param_ctx* device_ctx,
                  param_ctx** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (device == nullptr || device->buffer_native == nullptr) {
      return kit::Fail(err, kit::kFailedPrecondition,
                       "gloo works on memory of the host, which this device does not give");
    }
    IgnoreBrokenPipes();
    auto ctx = std::make_unique<Context>();
    ctx->host = host;
    ctx->device = device;
    ctx->device_ctx = device_ctx;
    PARAM_KIT_TRY(ChooseInterface(*host, &ctx->interface, err));
    gloo::transport::tcp::attr attr(ctx->interface.address.c_str());
    ctx->transport = gloo::transport::tcp::CreateDevice(attr);
    if (host->log != nullptr) {
      host->log(host->user, 1,
                ("gloo: tcp over " + ctx->interface.name + ", " + ctx->interface.address).c_str());
    }
    *out = reinterpret_cast<param_ctx*>(ctx.release());
    return kit::kOk;
  });
}

void Close(param_ctx* ctx) {
  // What was not destroyed will not end by itself.
  for (const std::unique_ptr<Comm>& comm : Of(ctx).comms) comm->mesh->Abort();
  delete &Of(ctx);
}

std::int32_t UniqueId(param_ctx*, std::uint8_t id[PARAM_COMM_ID_BYTES], param_error* err) {
  std::memset(id, 0, PARAM_COMM_ID_BYTES);
  if (::getrandom(id, kIdBytes, 0) == static_cast<ssize_t>(kIdBytes)) return kit::kOk;
  return kit::Fail(err, kit::kInternal, "getrandom: errno %d", errno);
}

void Keep(Context& ctx, std::shared_ptr<Mesh> mesh, std::int64_t deadline_ns, param_comm** out) {
  ctx.comms.push_back(std::make_unique<Comm>(std::move(mesh), deadline_ns));
  *out = reinterpret_cast<param_comm*>(ctx.comms.back().get());
}

void Progress(const Context& ctx, const char* phase) {
  if (ctx.host->progress != nullptr) ctx.host->progress(ctx.host->user, phase);
}

std::int32_t CommCreate(param_ctx* raw, const std::uint8_t id[PARAM_COMM_ID_BYTES],
                        std::int32_t rank, std::int32_t size, std::int64_t deadline_ns,
                        param_comm** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = Of(raw);
    if (size < 1 || rank < 0 || rank >= size || size != ctx.host->size) {
      return kit::Fail(err, kit::kInvalidArgument, "rank %d of %d in a job of %d", rank, size,
                       ctx.host->size);
    }
    Progress(ctx, "bootstrap");
    kit::AbortableExchange exchange;
    const Share share = [&](std::vector<unsigned char> mine, std::vector<unsigned char>* all,
                            param_error* error) {
      return exchange.Run(ctx.host, std::move(mine), size, deadline_ns, all, error);
    };
    const Meeting meeting{ctx.transport, {id, id + kIdBytes}, rank, size, size, deadline_ns, [&] {
                            Progress(ctx, "connect");
                          }};
    std::shared_ptr<Mesh> mesh;
    PARAM_KIT_TRY(Mesh::Connect(meeting, share, &mesh, err));
    Keep(ctx, std::move(mesh), deadline_ns, out);
    return kit::kOk;
  });
}

// Everyone's bytes, over a communicator that exists.
std::int32_t AllGather(Comm& comm, const std::vector<unsigned char>& mine,
                       std::vector<unsigned char>* all, param_error* err) {
  all->resize(mine.size() * static_cast<std::size_t>(comm.mesh->size));
  std::vector<unsigned char> copy = mine;
  return comm.mesh->Call(err, [&] {
    gloo::AllgatherOptions options(comm.mesh);
    options.setInput(copy.data(), copy.size());
    options.setOutput(all->data(), all->size());
    options.setTag(kSplitTag);
    gloo::allgather(options);
  });
}

struct Wish {
  std::int32_t color = 0, key = 0, rank = 0;
};

std::int32_t CommSplit(param_ctx* raw, param_comm* parent, std::int32_t color, std::int32_t key,
                       param_comm** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Comm& comm = Of(parent);
    *out = nullptr;
    const Wish wish{color, key, comm.mesh->rank};
    std::vector<unsigned char> mine(sizeof(wish));
    std::memcpy(mine.data(), &wish, sizeof(wish));
    std::vector<unsigned char> all;
    PARAM_KIT_TRY(AllGather(comm, mine, &all, err));
    std::vector<Wish> members(static_cast<std::size_t>(comm.mesh->size));
    std::memcpy(members.data(), all.data(), all.size());
    std::erase_if(members, [&](const Wish& one) { return one.color != color; });
    std::sort(members.begin(), members.end(), [](const Wish& a, const Wish& b) {
      return std::pair(a.key, a.rank) < std::pair(b.key, b.rank);
    });
    const auto own = std::find_if(members.begin(), members.end(),
                                  [&](const Wish& one) { return one.rank == comm.mesh->rank; });
    // All ranks of the parent take part; each group picks its own members' addresses.
    const Share share = [&](const std::vector<unsigned char>& record,
                            std::vector<unsigned char>* group, param_error* error) -> std::int32_t {
      std::vector<unsigned char> everyone;
      PARAM_KIT_TRY(AllGather(comm, record, &everyone, error));
      group->clear();
      for (const Wish& one : members) {
        const auto at = everyone.begin() + static_cast<std::ptrdiff_t>(record.size()) * one.rank;
        group->insert(group->end(), at, at + static_cast<std::ptrdiff_t>(record.size()));
      }
      return kit::kOk;
    };
    std::vector<unsigned char> id(kIdBytes);
    std::memcpy(id.data(), &color, sizeof(color));
    id[sizeof(color)] = ++comm.splits;
    const Meeting meeting{Of(raw).transport,
                          std::move(id),
                          static_cast<std::int32_t>(own - members.begin()),
                          static_cast<std::int32_t>(members.size()),
                          comm.mesh->size,
                          comm.deadline_ns,
                          nullptr};
    std::shared_ptr<Mesh> mesh;
    PARAM_KIT_TRY(Mesh::Connect(meeting, share, &mesh, err));
    Keep(Of(raw), std::move(mesh), comm.deadline_ns, out);
    return kit::kOk;
  });
}

// Nobody closes a connection that another still reads from: they meet first. Where there was a
// failure they cannot.
std::int32_t CommDestroy(param_ctx* raw, param_comm* gone, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Comm& comm = Of(gone);
    std::int32_t code = comm.mesh->Failure(err);
    if (code == 0) {
      code = comm.mesh->Call(err, [&] {
        gloo::BarrierOptions options(comm.mesh);
        options.setTag(kDestroyTag);
        gloo::barrier(options);
      });
    }
    if (code != 0) comm.mesh->Abort();
    std::erase_if(Of(raw).comms,
                  [&](const std::unique_ptr<Comm>& one) { return one.get() == &comm; });
    return code;
  });
}

void CommAbort(param_ctx*, param_comm* comm) { Of(comm).mesh->Abort(); }

std::int32_t CommAsyncError(param_ctx*, param_comm* comm, param_error* err) {
  return Of(comm).mesh->Failure(err);
}

// ---- operations --------------------------------------------------------------------------------

std::int32_t OpCreate(param_ctx*, param_comm* raw, const param_op_desc* desc, param_op** out,
                      param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Comm& comm = Of(raw);
    auto op = std::make_unique<Op>();
    op->comm = &comm;
    PARAM_KIT_TRY(Plan::Make(*desc, comm.mesh, comm.next_tag, &op->plan, err));
    // Sends and receives have their own tags, and not all ranks make them.
    if (!op->plan->is_transfer()) ++comm.next_tag;
    *out = reinterpret_cast<param_op*>(op.release());
    return kit::kOk;
  });
}

void OpDestroy(param_ctx*, param_op* op) { delete &Of(op); }

std::size_t OpWorkspaceBytes(param_ctx*, param_op* op) { return Of(op).plan->workspace_bytes(); }

unsigned char* NativeOf(const Context& ctx, param_buffer* buffer, std::size_t offset) {
  if (buffer == nullptr) return nullptr;
  void* const native = ctx.device->buffer_native(ctx.device_ctx, buffer);
  return native == nullptr ? nullptr : static_cast<unsigned char*>(native) + offset;
}

std::int32_t PlaceOf(const Context& ctx, const Plan& plan, const param_operand* operands,
                     std::size_t count, param_buffer* workspace, Place* out, param_error* err) {
  const kit::Collective& c = plan.what();
  const std::size_t both = c.one_buffer() ? 1 : 2;
  const std::size_t wanted = c.kind == kit::CollectiveKind::kBarrier ? 0 : both;
  if (count != wanted) {
    return kit::Fail(err, kit::kInvalidArgument, "%zu operands, not %zu", count, wanted);
  }
  if (wanted > 0) {
    out->src = NativeOf(ctx, operands[0].buffer, operands[0].offset);
    out->dst = NativeOf(ctx, operands[wanted - 1].buffer, operands[wanted - 1].offset);
    if (out->src == nullptr || out->dst == nullptr) {
      return kit::Fail(err, kit::kFailedPrecondition, "%s: an operand is no memory of the host",
                       kit::kCollectiveNames[static_cast<int>(c.kind)]);
    }
  }
  out->workspace = NativeOf(ctx, workspace, 0);
  if (plan.workspace_bytes() > 0 && out->workspace == nullptr) {
    return kit::Fail(err, kit::kInvalidArgument, "%s needs a workspace of %zu bytes",
                     kit::kCollectiveNames[static_cast<int>(c.kind)], plan.workspace_bytes());
  }
  return kit::kOk;
}

Request& NewRequest(Comm& comm, std::shared_ptr<Bound> bound) {
  if (comm.free_requests.empty()) comm.free_requests.push_back(&comm.requests.emplace_back());
  Request& request = *comm.free_requests.back();
  comm.free_requests.pop_back();
  request = Request();
  request.comm = &comm;
  request.bound = std::move(bound);
  request.bound->in_flight = true;
  return request;
}

// Sends and receives are with Gloo already; a collective runs on the communicator's thread.
void Start(Comm& comm, const Plan& plan, Request& request) {
  if (!plan.is_transfer()) comm.collectives.Push(request);
}

bool IsTransfer(const Request& request) { return request.bound->post != nullptr; }

std::int32_t Complete(Request& request, param_error* err) {
  Comm& comm = *request.comm;
  std::int32_t code = 0;
  if (!request.queued) {
    code = comm.mesh->Call(err, request.bound->finish);
  } else {
    code = (IsTransfer(request) ? comm.transfers : comm.collectives).Wait(request, err);
  }
  request.bound->in_flight = false;
  request.bound.reset();
  comm.free_requests.push_back(&request);
  return code;
}

std::int32_t OpEnqueue(param_ctx* raw, param_op* raw_op, param_stream*,
                       const param_operand* operands, std::size_t count, param_buffer* workspace,
                       param_request** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = Of(raw);
    Op& op = Of(raw_op);
    Comm& comm = *op.comm;
    Place place;
    PARAM_KIT_TRY(PlaceOf(ctx, *op.plan, operands, count, workspace, &place, err));
    std::shared_ptr<Bound> bound = op.plan->At(place);
    if (bound->post != nullptr) PARAM_KIT_TRY(comm.mesh->Call(err, bound->post));
    // With collectives in flight a blocking one has to wait its turn: the order is one on all
    // ranks.
    const bool now =
        out == nullptr && ctx.groups == 0 && (op.plan->is_transfer() || comm.collectives.idle());
    if (now) return comm.mesh->Call(err, bound->finish);
    Request& request = NewRequest(comm, std::move(bound));
    Start(comm, *op.plan, request);
    if (out != nullptr) {
      *out = reinterpret_cast<param_request*>(&request);
      return kit::kOk;
    }
    if (ctx.groups == 0) return Complete(request, err);
    ctx.grouped.push_back(&request);
    return kit::kOk;
  });
}

std::int32_t GroupBegin(param_ctx* ctx, param_error*) {
  ++Of(ctx).groups;
  return kit::kOk;
}

std::int32_t GroupEnd(param_ctx* raw, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Context& ctx = Of(raw);
    if (ctx.groups == 0) return kit::Fail(err, kit::kFailedPrecondition, "no group was begun");
    if (--ctx.groups > 0) return kit::kOk;
    std::int32_t first = kit::kOk;
    for (Request* const request : ctx.grouped) {
      const std::int32_t code = Complete(*request, first == kit::kOk ? err : nullptr);
      if (first == kit::kOk) first = code;
    }
    ctx.grouped.clear();
    return first;
  });
}

// ---- requests ----------------------------------------------------------------------------------

// Gloo answers only who waits, so the first question hands a transfer to a thread that does.
std::int32_t RequestTest(param_ctx*, param_request* raw, std::int32_t* done, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    Request& request = Of(raw);
    Runner& runner = IsTransfer(request) ? request.comm->transfers : request.comm->collectives;
    if (!request.queued) runner.Push(request);
    *done = runner.IsDone(request) ? 1 : 0;
    return kit::kOk;
  });
}

std::int32_t RequestWait(param_ctx*, param_request* raw, param_error* err) {
  return kit::Guard(err, [&] { return Complete(Of(raw), err); });
}

std::int32_t OpInfo(param_ctx* raw, param_op* op, char* json, std::size_t capacity,
                    param_error* err) {
  return kit::Guard(err, [&] {
    const Interface& interface = Of(raw).interface;
    const std::string version = std::to_string(GLOO_VERSION_MAJOR) + "." +
                                std::to_string(GLOO_VERSION_MINOR) + "." +
                                std::to_string(GLOO_VERSION_PATCH);
    return kit::PutText(kit::JsonObject()
                            .Text("library", "Gloo " + version)
                            .Text("implementation", Of(op).plan->implementation())
                            .Text("transport", "tcp")
                            .Text("interface", interface.name + " " + interface.address)
                            .Text("requests", Of(op).plan->is_transfer()
                                                  ? "posted at once"
                                                  : "in turn, on a thread of the communicator")
                            .Done(),
                        json, capacity, err);
  });
}

constexpr param_comm_v1 MakeTable() {
  param_comm_v1 t = {};
  t.struct_size = sizeof(t);
  t.kind = "gloo";
  t.probe = Probe;
  t.open = Open;
  t.close = Close;
  t.unique_id = UniqueId;
  t.comm_create = CommCreate;
  t.comm_split = CommSplit;
  t.comm_destroy = CommDestroy;
  t.comm_abort = CommAbort;
  t.comm_async_error = CommAsyncError;
  t.group_begin = GroupBegin;
  t.group_end = GroupEnd;
  t.op_create = OpCreate;
  t.op_destroy = OpDestroy;
  t.op_workspace_bytes = OpWorkspaceBytes;
  t.op_enqueue = OpEnqueue;
  t.request_test = RequestTest;
  t.request_wait = RequestWait;
  t.op_info = OpInfo;
  return t;
}

}  // namespace

const param_comm_v1* CommTable() {
  static constexpr param_comm_v1 kTable = MakeTable();
  return &kTable;
}

}  // namespace param::gloo_comm
