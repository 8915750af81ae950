#include "agent/backends/gloo/plan.h"

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>

#include <algorithm>
#include <cstring>

#include "agent/backends/gloo/reduce.h"

namespace param::gloo_comm {
namespace {

using K = kit::CollectiveKind;
using Memory = std::unique_ptr<gloo::transport::UnboundBuffer>;

// As many buffers in turn as a loop may use, and messages in flight.
constexpr std::size_t kMostBound = 256;

// Gloo's slots begin with a number for the kind of collective, 1 to 8.
constexpr std::uint64_t kPeersSlot = std::uint64_t{0x41} << 56;
constexpr std::uint64_t kTransferSlot = std::uint64_t{0x42} << 56;

std::size_t Index(std::int32_t rank) { return static_cast<std::size_t>(rank); }

// A function is copied by who stores it; this shares what it works on.
template <typename T>
std::shared_ptr<T> Shared(T&& value) {
  return std::make_shared<T>(std::forward<T>(value));
}

// Calls `body` with a null pointer to an unsigned type of that size: Gloo's options are told the
// element's size by a type.
template <typename Body>
void WithElement(std::size_t size, Body&& body) {
  if (size == 1) return body(static_cast<std::uint8_t*>(nullptr));
  if (size == 2) return body(static_cast<std::uint16_t*>(nullptr));
  if (size == 4) return body(static_cast<std::uint32_t*>(nullptr));
  body(static_cast<std::uint64_t*>(nullptr));
}

void Average(const kit::Collective& c, unsigned char* at, std::size_t count, std::int32_t ranks) {
  if (c.redop == kit::RedOp::kAvg) (void)kit::FinishAvg(c.dtype, at, count, ranks);
}

std::vector<std::int64_t> Times(std::vector<std::int64_t> counts, std::size_t size) {
  for (std::int64_t& count : counts) count *= static_cast<std::int64_t>(size);
  return counts;
}

}  // namespace

// ---- making ------------------------------------------------------------------------------------

std::int32_t Plan::Make(const param_op_desc& desc, std::shared_ptr<Mesh> mesh, std::uint32_t tag,
                        std::unique_ptr<Plan>* out, param_error* err) {
  kit::Collective what;
  PARAM_KIT_TRY(kit::ParseCollective(desc, mesh->rank, mesh->size, &what, err));
  if (what.reduces() && ReduceFunctionOf(what.redop, what.dtype) == nullptr) {
    return kit::Fail(err, kit::kUnimplemented, "%s: backend gloo does not reduce %s", desc.name,
                     kit::DtypeName(what.dtype));
  }
  out->reset(new Plan(std::move(what), std::move(mesh), tag));
  if (!(*out)->is_transfer() || (*out)->what().root != (*out)->mesh_->rank) return kit::kOk;
  out->reset();
  return kit::Fail(err, kit::kUnimplemented, "%s: Gloo connects no rank with itself", desc.name);
}

Plan::Plan(kit::Collective what, std::shared_ptr<Mesh> mesh, std::uint32_t tag)
    : what_(std::move(what)), mesh_(std::move(mesh)), tag_(tag), workspace_(WorkspaceBytes()) {}

std::size_t Plan::WorkspaceBytes() const {
  const std::size_t size = what_.size();
  switch (what_.kind) {
    case K::kReduce:  // Gloo reduces in everyone's output; ours is the root's alone
      return mesh_->rank == what_.root ? 0 : what_.dst * size;
    case K::kAllToAll:
    case K::kAllToAllV:
      return what_.in_place ? what_.src * size : 0;
    case K::kReduceScatter:
    case K::kReduceScatterV:
      return what_.dst * size * Index(mesh_->size);
    default:
      return 0;
  }
}

std::string Plan::implementation() const {
  const std::string copied = what_.in_place ? ", from a copy of src" : "";
  const std::string averaged =
      what_.reduces() && what_.redop == kit::RedOp::kAvg ? ", the sum then divided" : "";
  switch (what_.kind) {
    case K::kAllReduce:
      return "gloo::allreduce" + averaged;
    case K::kReduce:
      return "gloo::reduce" + averaged;
    case K::kBroadcast:
      return "gloo::broadcast";
    case K::kAllGather:
      return "gloo::allgather";
    case K::kAllGatherV:
      return "gloo::allgatherv";
    case K::kGather:
      return "gloo::gather";
    case K::kScatter:
      return "gloo::scatter";
    case K::kAllToAll:
      return "gloo::alltoall" + copied;
    case K::kAllToAllV:
      return "gloo::alltoallv" + copied;
    case K::kReduceScatter:
      return "composed: gloo::alltoall, then reduced locally" + averaged;
    case K::kReduceScatterV:
      return "composed: gloo::alltoallv, then reduced locally" + averaged;
    case K::kIncast:
    case K::kMulticast:
      return "composed: sends and receives";
    case K::kBarrier:
      return "gloo::barrier";
    case K::kSend:
    case K::kRecv:
      return "gloo unbound buffers";
  }
  return "";
}

std::shared_ptr<Bound> Plan::At(const Place& place) {
  for (const std::shared_ptr<Bound>& one : bound_) {
    if (!one->in_flight && one->place == place) return one;
  }
  auto made = std::make_shared<Bound>();
  made->place = place;
  Bind(*made);
  if (bound_.size() < kMostBound) {
    bound_.push_back(made);
  } else {
    bound_[next_evicted_++ % kMostBound] = made;  // who runs it holds it
  }
  return made;
}

void Plan::Bind(Bound& bound) const {
  switch (what_.kind) {
    case K::kAllReduce:
    case K::kReduce:
      return BindReduction(bound);
    case K::kReduceScatter:
    case K::kReduceScatterV:
      return BindReduceScatter(bound);
    case K::kAllToAll:
    case K::kAllToAllV:
      return BindExchange(bound);
    case K::kIncast:
    case K::kMulticast:
      return BindPeers(bound);
    case K::kSend:
    case K::kRecv:
      return BindTransfer(bound);
    default:
      return BindGathering(bound);
  }
}

// ---- reductions --------------------------------------------------------------------------------

void Plan::BindReduction(Bound& bound) const {
  const kit::Collective& c = what_;
  const Place at = bound.place;
  const std::int32_t ranks = mesh_->size;
  if (c.src == 0) {
    bound.finish = [] {};
    return;
  }
  WithElement(c.size(), [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const auto typed = [](unsigned char* p) { return reinterpret_cast<T*>(p); };
    if (c.kind == K::kAllReduce) {
      const auto options = Shared(gloo::AllreduceOptions(mesh_));
      if (at.src != at.dst) options->setInput(typed(at.src), c.src);
      options->setOutput(typed(at.dst), c.src);
      options->setReduceFunction(ReduceFunctionOf(c.redop, c.dtype));
      options->setTag(tag_);
      bound.finish = [options, this, at, ranks] {
        gloo::allreduce(*options);
        Average(what_, at.dst, what_.dst, ranks);
      };
      return;
    }
    const bool is_root = mesh_->rank == c.root;
    unsigned char* const out = is_root ? at.dst : at.workspace;
    const auto options = Shared(gloo::ReduceOptions(mesh_));
    if (at.src != out) options->setInput(typed(at.src), c.src);
    options->setOutput(typed(out), c.src);
    options->setReduceFunction(ReduceFunctionOf(c.redop, c.dtype));
    options->setRoot(c.root);
    options->setTag(tag_);
    bound.finish = [options, this, out, is_root, ranks] {
      gloo::reduce(*options);
      if (is_root) Average(what_, out, what_.dst, ranks);
    };
  });
}

// Everyone sends each its share; the shares lie side by side in the workspace.
void Plan::BindReduceScatter(Bound& bound) const {
  const kit::Collective& c = what_;
  const Place at = bound.place;
  const std::vector<std::int64_t> own(Index(mesh_->size), static_cast<std::int64_t>(c.dst));
  std::function<void()> exchange;
  if (c.kind == K::kReduceScatterV) {
    exchange = MakeAllToAllV(at.src, c.send_counts, at.workspace, own);
  } else {
    exchange = MakeAllToAllV(at.src, own, at.workspace, own);
  }
  bound.finish = [exchange, this, at, reduce = ReduceFunctionOf(c.redop, c.dtype),
                  ranks = mesh_->size] {
    exchange();
    const std::size_t bytes = what_.dst * what_.size();
    if (bytes == 0) return;
    const unsigned char* const shares = at.workspace;
    if (ranks == 1) std::memcpy(at.dst, shares, bytes);
    for (std::int32_t r = 1; r < ranks; ++r) {
      reduce(at.dst, r == 1 ? shares : at.dst, shares + Index(r) * bytes, what_.dst);
    }
    Average(what_, at.dst, what_.dst, ranks);
  };
}

// ---- moving ------------------------------------------------------------------------------------

std::function<void()> Plan::MakeAllToAllV(unsigned char* from, std::vector<std::int64_t> sent,
                                          unsigned char* to,
                                          std::vector<std::int64_t> received) const {
  const auto options = Shared(gloo::AlltoallvOptions(mesh_));
  options->setInput(from, Times(std::move(sent), what_.size()));
  options->setOutput(to, Times(std::move(received), what_.size()));
  options->setTag(tag_);
  return [options] { gloo::alltoallv(*options); };
}

void Plan::BindExchange(Bound& bound) const {
  const kit::Collective& c = what_;
  const Place at = bound.place;
  unsigned char* const from = c.in_place ? at.workspace : at.src;
  std::function<void()> exchange;
  if (c.kind == K::kAllToAllV) {
    exchange = MakeAllToAllV(from, c.send_counts, at.dst, c.recv_counts);
  } else if (c.src > 0) {
    const auto options = Shared(gloo::AlltoallOptions(mesh_));
    options->setInput(from, c.src * c.size());
    options->setOutput(at.dst, c.dst * c.size());
    options->setTag(tag_);
    exchange = [options] { gloo::alltoall(*options); };
  } else {
    exchange = [] {};
  }
  if (!c.in_place) {
    bound.finish = std::move(exchange);
    return;
  }
  bound.finish = [exchange, at, bytes = c.src * c.size()] {
    if (bytes > 0) std::memcpy(at.workspace, at.src, bytes);
    exchange();
  };
}

void Plan::BindGathering(Bound& bound) const {
  const kit::Collective& c = what_;
  const Place at = bound.place;
  const std::size_t src = c.src * c.size();
  const std::size_t dst = c.dst * c.size();
  const bool is_root = mesh_->rank == c.root;
  if (c.kind == K::kBarrier) {
    const auto options = Shared(gloo::BarrierOptions(mesh_));
    options->setTag(tag_);
    bound.finish = [options] { gloo::barrier(*options); };
  } else if (c.kind == K::kAllGatherV) {
    const auto options = Shared(gloo::AllgathervOptions(mesh_));
    std::vector<std::size_t> bytes;
    for (const std::int64_t count : c.send_counts) {
      bytes.push_back(static_cast<std::size_t>(count) * c.size());
    }
    if (!c.in_place) options->setInput(at.src, src);
    options->setOutput(at.dst, std::move(bytes));
    options->setTag(tag_);
    bound.finish = [options] { gloo::allgatherv(*options); };
  } else if (src == 0) {
    bound.finish = [] {};
  } else if (c.kind == K::kBroadcast) {
    const auto options = Shared(gloo::BroadcastOptions(mesh_));
    options->setOutput(at.src, src);
    options->setRoot(c.root);
    options->setTag(tag_);
    bound.finish = [options] { gloo::broadcast(*options); };
  } else if (c.kind == K::kAllGather) {
    const auto options = Shared(gloo::AllgatherOptions(mesh_));
    if (!c.in_place) options->setInput(at.src, src);
    options->setOutput(at.dst, dst);
    options->setTag(tag_);
    bound.finish = [options] { gloo::allgather(*options); };
  } else if (c.kind == K::kGather) {
    const auto options = Shared(gloo::GatherOptions(mesh_));
    options->setInput(at.src, src);
    if (is_root) options->setOutput(at.dst, dst);
    options->setRoot(c.root);
    options->setTag(tag_);
    bound.finish = [options] { gloo::gather(*options); };
  } else {
    const auto options = Shared(gloo::ScatterOptions(mesh_));
    std::vector<unsigned char*> shares;
    shares.reserve(Index(mesh_->size));
    for (std::int32_t r = 0; r < mesh_->size; ++r) shares.push_back(at.src + Index(r) * dst);
    if (is_root) options->setInputs(std::move(shares), dst);
    options->setOutput(at.dst, dst);
    options->setRoot(c.root);
    options->setTag(tag_);
    bound.finish = [options] { gloo::scatter(*options); };
  }
}

// ---- sends and receives ------------------------------------------------------------------------

void Plan::BindPeers(Bound& bound) const {
  const kit::Collective& c = what_;
  const bool is_root = mesh_->rank == c.root;
  const bool named = std::find(c.peers.begin(), c.peers.end(), mesh_->rank) != c.peers.end();
  if (c.src == 0 || (!is_root && !named)) {
    bound.finish = [] {};
    return;
  }
  const std::size_t bytes = c.src * c.size();
  const bool gathers = c.kind == K::kIncast;
  const bool sends = gathers != is_root;
  unsigned char* const at = gathers && is_root ? bound.place.dst : bound.place.src;
  const std::size_t blocks = gathers && is_root ? c.peers.size() : 1;
  const std::shared_ptr<gloo::transport::UnboundBuffer> memory =
      mesh_->createUnboundBuffer(at, blocks * bytes);
  const std::vector<std::int32_t> peers = is_root ? c.peers : std::vector<std::int32_t>{c.root};
  bound.finish = [=, slot = kPeersSlot | tag_] {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const std::size_t offset = blocks > 1 ? i * bytes : 0;
      if (sends) {
        memory->send(peers[i], slot, offset, bytes);
      } else {
        memory->recv(peers[i], slot, offset, bytes);
      }
    }
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (sends) {
        memory->waitSend();
      } else {
        memory->waitRecv();
      }
    }
  };
}

void Plan::BindTransfer(Bound& bound) const {
  const std::size_t bytes = what_.src * what_.size();
  const std::shared_ptr<gloo::transport::UnboundBuffer> memory =
      mesh_->createUnboundBuffer(bound.place.src, bytes);
  const std::uint64_t slot = kTransferSlot | static_cast<std::uint64_t>(what_.tag);
  const std::int32_t peer = what_.root;
  if (what_.kind == K::kSend) {
    bound.post = [memory, slot, peer, bytes] { memory->send(peer, slot, 0, bytes); };
    bound.finish = [memory] { memory->waitSend(); };
  } else {
    bound.post = [memory, slot, peer, bytes] { memory->recv(peer, slot, 0, bytes); };
    bound.finish = [memory] { memory->waitRecv(); };
  }
}

}  // namespace param::gloo_comm
