#pragma once
// Which calls one rank makes for a collective: NCCL's own where it has one, else a group of
// point-to-point or rooted calls. Pure: knows neither CUDA nor NCCL.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "agent/backend/kit_collective.h"

namespace param::nccl {

enum class Call { kAllReduce, kReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kRecv };

// One call. Places are in elements from the beginning of the operand.
struct Step {
  Call call = Call::kAllReduce;
  std::int32_t peer = 0;  // of kSend and kRecv; of rooted calls the root
  std::size_t src = 0;    // place in the operand src (or data); unused by kRecv
  std::size_t dst = 0;    // place in the operand dst (or data); unused by kSend
  std::size_t count = 0;  // elements, as that call counts them
  bool operator==(const Step&) const = default;
};

struct Plan {
  std::vector<Step> steps;  // one group
  // Elements of src to copy to the workspace first, and then to take as src: in place, a block
  // could be received before what lies there was sent. 0: none.
  std::size_t copied = 0;
  // What runs, for the record: "ncclAllReduce", "grouped ncclSend and ncclRecv".
  const char* implementation = "";
};

namespace internal {

inline constexpr const char* kSendRecv = "grouped ncclSend and ncclRecv";

struct Exchange {
  Plan* plan;
  void Send(std::int32_t peer, std::size_t src, std::size_t count) const {
    if (count > 0) plan->steps.push_back({Call::kSend, peer, src, 0, count});
  }
  void Recv(std::int32_t peer, std::size_t dst, std::size_t count) const {
    if (count > 0) plan->steps.push_back({Call::kRecv, peer, 0, dst, count});
  }
};

// Blocks to and from every rank. Starts at the own rank, so that not everybody sends to rank 0
// first.
inline void PlanAllToAll(const kit::Collective& c, std::int32_t rank,
                         const std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from,
                         Plan* plan) {
  const std::vector<std::size_t> src = kit::BlockOffsets(to);
  const std::vector<std::size_t> dst = kit::BlockOffsets(from);
  const auto ranks = static_cast<std::int32_t>(to.size());
  const Exchange exchange{plan};
  if (c.in_place && ranks > 1) plan->copied = c.src;
  for (std::int32_t i = 0; i < ranks; ++i) {
    const std::int32_t peer = (rank + i) % ranks;
    const auto p = static_cast<std::size_t>(peer);
    if (peer == rank && c.in_place && src[p] == dst[p]) continue;  // lies there already
    exchange.Send(peer, src[p], static_cast<std::size_t>(to[p]));
    exchange.Recv(peer, dst[p], static_cast<std::size_t>(from[p]));
  }
}

inline void PlanGather(const kit::Collective& c, std::int32_t rank, std::int32_t ranks,
                       Plan* plan) {
  const Exchange exchange{plan};
  if (rank != c.root || !c.in_place) exchange.Send(c.root, 0, c.src);
  for (std::int32_t peer = 0; rank == c.root && peer < ranks; ++peer) {
    if (peer == rank && c.in_place) continue;
    exchange.Recv(peer, static_cast<std::size_t>(peer) * c.src, c.src);
  }
}

inline void PlanScatter(const kit::Collective& c, std::int32_t rank, std::int32_t ranks,
                        Plan* plan) {
  const Exchange exchange{plan};
  for (std::int32_t peer = 0; rank == c.root && peer < ranks; ++peer) {
    if (peer == rank && c.in_place) continue;
    exchange.Send(peer, static_cast<std::size_t>(peer) * c.dst, c.dst);
  }
  if (rank != c.root || !c.in_place) exchange.Recv(c.root, 0, c.dst);
}

// One rooted call for each rank's share, in the same order on all ranks.
inline void PlanByRoot(const kit::Collective& c, Call call, Plan* plan) {
  const std::vector<std::size_t> offsets = kit::BlockOffsets(c.send_counts);
  for (std::size_t root = 0; root < offsets.size(); ++root) {
    const auto count = static_cast<std::size_t>(c.send_counts[root]);
    if (count == 0) continue;
    const bool gathers = call == Call::kBroadcast;
    plan->steps.push_back({call, static_cast<std::int32_t>(root), gathers ? 0 : offsets[root],
                           gathers ? offsets[root] : 0, count});
  }
}

inline void PlanPeers(const kit::Collective& c, std::int32_t rank, Plan* plan) {
  const Exchange exchange{plan};
  const bool incast = c.kind == kit::CollectiveKind::kIncast;
  for (std::size_t i = 0; i < c.peers.size(); ++i) {
    if (rank == c.root) {
      if (incast) {
        exchange.Recv(c.peers[i], i * c.src, c.src);
      } else {
        exchange.Send(c.peers[i], 0, c.src);
      }
    } else if (rank == c.peers[i]) {
      if (incast) {
        exchange.Send(c.root, 0, c.src);
      } else {
        exchange.Recv(c.root, 0, c.dst);
      }
    }
  }
}

}  // namespace internal

// INVALID_ARGUMENT when a rank's block for itself is not what it expects from itself: no peer would
// ever notice.
inline std::int32_t CheckOwnBlock(const kit::Collective& c, std::int32_t rank, param_error* err) {
  if (c.kind != kit::CollectiveKind::kAllToAllV) return kit::kOk;
  const auto r = static_cast<std::size_t>(rank);
  if (c.send_counts[r] == c.recv_counts[r]) return kit::kOk;
  return kit::Fail(err, kit::kInvalidArgument,
                   "all_to_allv: rank %d sends itself %lld elements and expects %lld", rank,
                   static_cast<long long>(c.send_counts[r]),
                   static_cast<long long>(c.recv_counts[r]));
}

// The plan of rank `rank` of `ranks` for a checked collective.
inline Plan MakePlan(const kit::Collective& c, std::int32_t rank, std::int32_t ranks) {
  using K = kit::CollectiveKind;
  Plan plan;
  const auto native = [&](const char* name, Call call, std::size_t count) {
    plan.implementation = name;
    plan.steps.push_back({call, c.root, 0, 0, count});
  };
  plan.implementation = internal::kSendRecv;
  switch (c.kind) {
    case K::kAllReduce:
      native("ncclAllReduce", Call::kAllReduce, c.src);
      break;
    case K::kReduce:
      native("ncclReduce", Call::kReduce, c.src);
      break;
    case K::kBroadcast:
      native("ncclBroadcast", Call::kBroadcast, c.src);
      break;
    case K::kAllGather:
      native("ncclAllGather", Call::kAllGather, c.src);
      break;
    case K::kReduceScatter:
      native("ncclReduceScatter", Call::kReduceScatter, c.dst);
      break;
    case K::kBarrier:
      native("ncclAllReduce of one element: NCCL has no barrier", Call::kAllReduce, 1);
      break;
    case K::kSend:
      native("ncclSend", Call::kSend, c.src);
      break;
    case K::kRecv:
      native("ncclRecv", Call::kRecv, c.dst);
      break;
    case K::kAllToAll: {
      const std::vector<std::int64_t> each(
          static_cast<std::size_t>(ranks),
          static_cast<std::int64_t>(c.src / static_cast<std::size_t>(ranks)));
      internal::PlanAllToAll(c, rank, each, each, &plan);
      break;
    }
    case K::kAllToAllV:
      internal::PlanAllToAll(c, rank, c.send_counts, c.recv_counts, &plan);
      break;
    case K::kGather:
      internal::PlanGather(c, rank, ranks, &plan);
      break;
    case K::kScatter:
      internal::PlanScatter(c, rank, ranks, &plan);
      break;
    case K::kAllGatherV:
      plan.implementation = "grouped ncclBroadcast, one for each rank";
      internal::PlanByRoot(c, Call::kBroadcast, &plan);
      break;
    case K::kReduceScatterV:
      plan.implementation = "grouped ncclReduce, one for each rank";
      internal::PlanByRoot(c, Call::kReduce, &plan);
      break;
    case K::kIncast:
    case K::kMulticast:
      internal::PlanPeers(c, rank, &plan);
      break;
  }
  return plan;
}

}  // namespace param::nccl
