#include "tests/fakes/nccl_model.h"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/backend/kit.h"
#include "agent/bench/element.h"
#include "tests/fakes/cuda_model.h"

namespace param::nccl_model {
namespace {

using Bytes = std::vector<char>;

std::atomic<bool> wrong_element{false};
std::atomic<bool> remote_error{false};

// One communicator's ranks together.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0;
  int here = 0;
  std::map<std::pair<int, int>, std::deque<Bytes>> mail;  // by sender and receiver
  std::map<int, std::vector<Bytes>> inputs;               // of the n-th collective, by rank
  std::map<int, std::vector<int>> published;              // how often, by rank: graphs run again
  struct Split {
    std::vector<std::pair<int, int>> color_key;
    int here = 0;
    std::map<int, std::shared_ptr<World>> worlds;  // by color
  };
  std::map<int, Split> splits;
};

}  // namespace
}  // namespace param::nccl_model

struct ncclComm {
  std::shared_ptr<param::nccl_model::World> world;
  int rank = 0;
  int collectives = 0, splits = 0;  // begun so far
  int looks = 0;                    // until what was begun is through
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
  bool freed = false;
  ncclComm_t* split_out = nullptr;  // where the running split puts its communicator
  int split_color = 0;
};

namespace param::nccl_model {
namespace {

struct Call {
  enum Kind { kSend, kRecv, kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter } kind;
  const void* src;
  void* dst;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;
  ncclComm_t comm;
  param_stream* stream;
  int index;  // of a collective in its communicator
};

thread_local int depth = 0;
thread_local std::vector<Call> group;

void Demand(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "model of NCCL: %s\n", what);
  std::abort();
}

ncclComm_t Alive(ncclComm_t comm) {
  Demand(comm != nullptr && !comm->freed, "a call on a communicator that was freed");
  return comm;
}

// NCCL takes nothing new for a communicator that is not through with what it was told.
ncclComm_t Ready(ncclComm_t comm) {
  Demand(Alive(comm)->looks < 0, "a call on a communicator that is still at the last one");
  return comm;
}

param_dtype DtypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return PARAM_DTYPE_I8;
    case ncclUint8:
      return PARAM_DTYPE_U8;
    case ncclInt32:
      return PARAM_DTYPE_I32;
    case ncclInt64:
      return PARAM_DTYPE_I64;
    case ncclFloat16:
      return PARAM_DTYPE_F16;
    case ncclFloat32:
      return PARAM_DTYPE_F32;
    case ncclFloat64:
      return PARAM_DTYPE_F64;
    case ncclBfloat16:
      return PARAM_DTYPE_BF16;
    case ncclFloat8e4m3:
      return PARAM_DTYPE_F8E4M3;
    default:
      Demand(type == ncclFloat8e5m2, "a type that the backend has no use for");
      return PARAM_DTYPE_F8E5M2;
  }
}

std::size_t BytesOf(const Call& call) { return call.count * kit::DtypeSize(DtypeOf(call.type)); }

Bytes CopyOf(const void* from, std::size_t bytes) {
  const char* const begin = static_cast<const char*>(from);
  return {begin, begin + bytes};
}

// `count` elements of all ranks' inputs from element `skip` on, combined.
void Combine(const Call& call, const std::vector<Bytes>& inputs, std::size_t skip, char* out) {
  const param_dtype dtype = DtypeOf(call.type);
  for (std::size_t i = 0; i < call.count; ++i) {
    double all = LoadElement(dtype, inputs[0].data(), skip + i);
    for (std::size_t r = 1; r < inputs.size(); ++r) {
      const double one = LoadElement(dtype, inputs[r].data(), skip + i);
      if (call.op == ncclProd) {
        all *= one;
      } else if (call.op == ncclMin) {
        all = std::min(all, one);
      } else if (call.op == ncclMax) {
        all = std::max(all, one);
      } else {
        all += one;
      }
    }
    if (call.op == ncclAvg) all /= static_cast<double>(inputs.size());
    if (call.op == ncclAvg && TraitsOf(dtype).integer) all = static_cast<double>(std::int64_t(all));
    StoreElement(dtype, out, i, all);
  }
}

void Corrupt(void* dst, std::size_t bytes) {
  if (wrong_element && bytes > 0) static_cast<char*>(dst)[0] ^= 0x41;
}

// What a rank gets of a collective once all inputs are there.
void Deliver(const Call& call, int rank, const std::vector<Bytes>& inputs) {
  char* const dst = static_cast<char*>(call.dst);
  const std::size_t bytes = BytesOf(call);
  switch (call.kind) {
    case Call::kAllReduce:
      Combine(call, inputs, 0, dst);
      break;
    case Call::kReduce:
      if (rank != call.peer) return;
      Combine(call, inputs, 0, dst);
      break;
    case Call::kReduceScatter:
      Combine(call, inputs, static_cast<std::size_t>(rank) * call.count, dst);
      break;
    case Call::kBroadcast:
      std::copy_n(inputs[static_cast<std::size_t>(call.peer)].data(), bytes, dst);
      break;
    case Call::kAllGather:
      for (std::size_t r = 0; r < inputs.size(); ++r) {
        std::copy_n(inputs[r].data(), bytes, dst + r * bytes);
      }
      break;
    case Call::kSend:
    case Call::kRecv:
      return;
  }
  Corrupt(dst, bytes);
}

// The bytes that a rank puts into a collective.
Bytes InputOf(const Call& call, const World& world, int rank) {
  if (call.kind == Call::kBroadcast && rank != call.peer) return {};
  const auto parts = static_cast<std::size_t>(call.kind == Call::kReduceScatter ? world.size : 1);
  return CopyOf(call.src, parts * BytesOf(call));
}

// One group on one rank, on its stream's thread. Leaves early when the communicator is aborted.
void Perform(const std::vector<Call>& calls, World& world, int rank,
             const std::atomic<bool>& aborted) {
  std::unique_lock lock(world.mutex);
  for (const Call& call : calls) {
    if (call.kind == Call::kSend) {
      world.mail[{rank, call.peer}].push_back(CopyOf(call.src, BytesOf(call)));
    } else if (call.kind != Call::kRecv) {
      auto& inputs = world.inputs[call.index];
      inputs.resize(static_cast<std::size_t>(world.size));
      inputs[static_cast<std::size_t>(rank)] = InputOf(call, world, rank);
      auto& published = world.published[call.index];
      published.resize(static_cast<std::size_t>(world.size));
      ++published[static_cast<std::size_t>(rank)];
    }
  }
  world.changed.notify_all();
  for (const Call& call : calls) {
    if (call.kind == Call::kSend) continue;
    if (call.kind == Call::kRecv) {
      auto& mail = world.mail[{call.peer, rank}];
      world.changed.wait(lock, [&] { return aborted || !mail.empty(); });
      if (aborted) return;
      Demand(mail.front().size() == BytesOf(call), "a receive of another size than the send");
      std::copy(mail.front().begin(), mail.front().end(), static_cast<char*>(call.dst));
      mail.pop_front();
      Corrupt(call.dst, BytesOf(call));
      continue;
    }
    const std::vector<int>& published = world.published[call.index];
    const int mine = published[static_cast<std::size_t>(rank)];
    world.changed.wait(lock, [&] {
      return aborted || *std::min_element(published.begin(), published.end()) >= mine;
    });
    if (aborted) return;
    Deliver(call, rank, world.inputs[call.index]);
  }
}

ncclResult_t Launch() {
  std::map<std::pair<ncclComm_t, param_stream*>, std::vector<Call>> by_comm;
  for (const Call& call : group) by_comm[{call.comm, call.stream}].push_back(call);
  group.clear();
  for (auto& [key, calls] : by_comm) {
    const ncclComm_t comm = Alive(key.first);
    comm->looks = 3;
    key.second->Add([calls = std::move(calls), world = comm->world, rank = comm->rank,
                     aborted = comm->aborted] { Perform(calls, *world, rank, *aborted); });
  }
  return by_comm.empty() ? ncclSuccess : ncclInProgress;
}

ncclResult_t Add(Call call, cudaStream_t stream) {
  Ready(call.comm);
  call.stream = reinterpret_cast<param_stream*>(stream);
  const bool collective = call.kind != Call::kSend && call.kind != Call::kRecv;
  call.index = collective ? call.comm->collectives++ : 0;
  if (call.count == 0) return ncclSuccess;
  group.push_back(call);
  return depth > 0 ? ncclSuccess : Launch();
}

std::map<std::string, std::shared_ptr<World>>& Worlds() {
  static auto* const worlds = new std::map<std::string, std::shared_ptr<World>>();
  return *worlds;
}
std::mutex worlds_mutex;

// The new communicator of a split, once all ranks have asked for it.
void TrySplit(ncclComm_t comm) {
  World& world = *comm->world;
  const std::lock_guard lock(world.mutex);
  World::Split& split = world.splits[comm->splits - 1];
  if (split.here < world.size) return;
  ncclComm_t* const out = std::exchange(comm->split_out, nullptr);
  if (comm->split_color < 0) return;
  auto made = std::make_unique<ncclComm>();
  std::shared_ptr<World>& child = split.worlds[comm->split_color];
  if (child == nullptr) child = std::make_shared<World>();
  made->world = child;
  const auto me = split.color_key[static_cast<std::size_t>(comm->rank)];
  child->size = 0;
  for (std::size_t r = 0; r < split.color_key.size(); ++r) {
    const auto other = split.color_key[r];
    if (other.first != me.first) continue;
    ++child->size;
    if (std::pair(other.second, static_cast<int>(r)) < std::pair(me.second, comm->rank))
      ++made->rank;
  }
  ++child->here;
  *out = made.release();
}

}  // namespace

LoadedBackend NcclBackend() {
  const param_backend_v1* const entry = param_backend_entry_v1();
  LoadedBackend backend;
  backend.name = entry->name;
  backend.comm = *static_cast<const param_comm_v1*>(entry->table("comm"));
  return backend;
}

void SetFaults(Faults faults) {
  wrong_element = faults.wrong_element;
  remote_error = faults.remote_error;
}

}  // namespace param::nccl_model

// ---- NCCL
// ----------------------------------------------------------------------------------------

using param::nccl_model::Add;
using param::nccl_model::Alive;
using param::nccl_model::Call;
using param::nccl_model::depth;
using param::nccl_model::Ready;
using param::nccl_model::World;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> count{0};
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "world %d", ++count);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  param::nccl_model::Demand(config->blocking == 0, "a blocking communicator");
  auto comm = std::make_unique<ncclComm>();
  comm->rank = rank;
  {
    const std::lock_guard lock(param::nccl_model::worlds_mutex);
    auto& world = param::nccl_model::Worlds()[id.internal];
    if (world == nullptr) world = std::make_shared<World>();
    comm->world = world;
  }
  const std::lock_guard lock(comm->world->mutex);
  comm->world->size = ranks;
  ++comm->world->here;
  *out = comm.release();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* out) {
  Alive(comm);
  if (comm->split_out != nullptr) param::nccl_model::TrySplit(comm);
  bool all = false;
  {
    const std::lock_guard lock(comm->world->mutex);
    all = comm->world->here >= comm->world->size;
  }
  const bool ready = all && comm->split_out == nullptr && --comm->looks < 0;
  *out = ready ? ncclSuccess : ncclInProgress;
  if (param::nccl_model::remote_error) *out = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* out,
                           ncclConfig_t* config) {
  Ready(comm);
  param::nccl_model::Demand(config->blocking == 0, "a blocking communicator");
  const std::lock_guard lock(comm->world->mutex);
  World::Split& split = comm->world->splits[comm->splits++];
  split.color_key.resize(static_cast<std::size_t>(comm->world->size));
  split.color_key[static_cast<std::size_t>(comm->rank)] = {color, key};
  ++split.here;
  comm->split_out = out;
  comm->split_color = color;
  return ncclInProgress;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Ready(comm)->looks = 3;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Alive(comm)->freed = true;  // the memory stays, so that later calls are seen
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Alive(comm)->freed = true;
  const std::lock_guard lock(comm->world->mutex);
  *comm->aborted = true;
  comm->world->changed.notify_all();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* out) {
  *out = Alive(comm)->world->size;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* out) {
  *out = Alive(comm)->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* data, size_t bytes, void** handle) {
  Ready(comm);
  *handle = data;
  return bytes > 0 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDeregister(ncclComm_t comm, void*) {
  Ready(comm);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t) { return "words for an error"; }
const char* ncclGetLastError(ncclComm_t) { return "the last one"; }

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() { return --depth > 0 ? ncclSuccess : param::nccl_model::Launch(); }

ncclResult_t ncclSend(const void* src, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return Add({Call::kSend, src, nullptr, count, type, ncclSum, peer, comm, nullptr, 0}, stream);
}

ncclResult_t ncclRecv(void* dst, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return Add({Call::kRecv, nullptr, dst, count, type, ncclSum, peer, comm, nullptr, 0}, stream);
}

ncclResult_t ncclAllReduce(const void* src, void* dst, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return Add({Call::kAllReduce, src, dst, count, type, op, 0, comm, nullptr, 0}, stream);
}

ncclResult_t ncclReduce(const void* src, void* dst, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return Add({Call::kReduce, src, dst, count, type, op, root, comm, nullptr, 0}, stream);
}

ncclResult_t ncclBroadcast(const void* src, void* dst, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return Add({Call::kBroadcast, src, dst, count, type, ncclSum, root, comm, nullptr, 0}, stream);
}

ncclResult_t ncclAllGather(const void* src, void* dst, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return Add({Call::kAllGather, src, dst, count, type, ncclSum, 0, comm, nullptr, 0}, stream);
}

ncclResult_t ncclReduceScatter(const void* src, void* dst, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return Add({Call::kReduceScatter, src, dst, count, type, op, 0, comm, nullptr, 0}, stream);
}

}  // extern "C"
