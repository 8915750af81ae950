// Every collective's plan, carried out by a model of NCCL on all ranks at once and compared with
// what the collective is by definition.

#include "agent/backends/nccl/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace param::nccl {
namespace {

using kit::Collective;
using kit::CollectiveKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Values = std::vector<std::int64_t>;
using K = CollectiveKind;

constexpr std::int64_t kUntouched = -1;

std::int64_t Input(std::int32_t rank, std::size_t i) {
  return 1'000'000 * (rank + 1) + static_cast<std::int64_t>(i);
}

// One rank: its memory, with src and dst in it as the boundary lays them out.
struct Node {
  Collective what;
  Plan plan;
  Values memory;
  std::size_t src_at = 0, dst_at = 0;
};

// Where a rank's own slot begins in the larger operand.
std::size_t OwnSlot(const Collective& c, std::size_t rank) {
  if (!c.send_counts.empty()) return kit::BlockOffsets(c.send_counts)[rank];
  return rank * std::min(c.src, c.dst);
}

void LayOut(std::int32_t rank, Node* node) {
  const Collective& c = node->what;
  const bool at_root_only = c.kind == K::kGather || c.kind == K::kScatter;
  const bool in_place = c.in_place && (!at_root_only || rank == c.root);
  const bool same =
      c.one_buffer() ||
      (in_place && (c.reduces() || c.kind == K::kAllToAll || c.kind == K::kAllToAllV) &&
       c.kind != K::kReduceScatter && c.kind != K::kReduceScatterV);
  if (same) {
    node->memory.assign(std::max(c.src, c.dst), kUntouched);
  } else if (!in_place) {
    node->dst_at = c.src;
    node->memory.assign(c.src + c.dst, kUntouched);
  } else {
    node->memory.assign(std::max(c.src, c.dst), kUntouched);
    const bool gathers = c.src < c.dst || c.kind == K::kAllGatherV || c.kind == K::kGather ||
                         c.kind == K::kAllGather;
    (gathers ? node->src_at : node->dst_at) = OwnSlot(c, static_cast<std::size_t>(rank));
  }
  for (std::size_t i = 0; i < c.src; ++i) node->memory[node->src_at + i] = Input(rank, i);
}

// What NCCL does with one group of calls on all ranks.
class Model {
 public:
  explicit Model(std::vector<Collective> all) {
    for (std::size_t r = 0; r < all.size(); ++r) {
      Node node;
      node.what = std::move(all[r]);
      node.plan =
          MakePlan(node.what, static_cast<std::int32_t>(r), static_cast<std::int32_t>(all.size()));
      LayOut(static_cast<std::int32_t>(r), &node);
      nodes_.push_back(std::move(node));
    }
    for (const Node& node : nodes_) before_.push_back(node.memory);
  }

  void Run() {
    for (std::size_t r = 0; r < nodes_.size(); ++r) Sends(r);
    for (std::size_t r = 0; r < nodes_.size(); ++r) Receives(r);
    for (const auto& [pair, waiting] : sent_) EXPECT_THAT(waiting, IsEmpty());
    Collectives();
  }

  Values Dst(std::size_t rank) const {
    const Node& node = nodes_[rank];
    const auto begin = node.memory.begin() + static_cast<std::ptrdiff_t>(node.dst_at);
    return {begin, begin + static_cast<std::ptrdiff_t>(node.what.dst)};
  }

 private:
  Values Read(std::size_t rank, std::size_t at, std::size_t count) const {
    const auto begin =
        before_[rank].begin() + static_cast<std::ptrdiff_t>(nodes_[rank].src_at + at);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

  void Write(std::size_t rank, std::size_t at, const Values& values) {
    Node& node = nodes_[rank];
    ASSERT_LE(at + values.size(), node.what.dst);
    std::copy(values.begin(), values.end(),
              node.memory.begin() + static_cast<std::ptrdiff_t>(node.dst_at + at));
  }

  void Sends(std::size_t rank) {
    const Node& node = nodes_[rank];
    for (const Step& step : node.plan.steps) {
      if (step.call != Call::kSend) continue;
      ASSERT_LE(step.src + step.count, node.what.src);
      CheckNothingReceivedThere(node, step);
      sent_[{rank, static_cast<std::size_t>(step.peer)}].push_back(
          Read(rank, step.src, step.count));
    }
  }

  // A block that is received where another is sent from may come too early.
  static void CheckNothingReceivedThere(const Node& node, const Step& send) {
    if (node.plan.copied > 0) {
      EXPECT_EQ(node.plan.copied, node.what.src);
      return;
    }
    const std::size_t from = node.src_at + send.src;
    for (const Step& step : node.plan.steps) {
      if (step.call != Call::kRecv) continue;
      const std::size_t to = node.dst_at + step.dst;
      EXPECT_TRUE(from + send.count <= to || to + step.count <= from);
    }
  }

  void Receives(std::size_t rank) {
    for (const Step& step : nodes_[rank].plan.steps) {
      if (step.call != Call::kRecv) continue;
      auto& waiting = sent_[{static_cast<std::size_t>(step.peer), rank}];
      ASSERT_FALSE(waiting.empty()) << "rank " << rank << " waits for " << step.peer;
      ASSERT_EQ(waiting.front().size(), step.count);
      Write(rank, step.dst, waiting.front());
      waiting.pop_front();
    }
  }

  static bool IsCollective(const Step& step) {
    return step.call != Call::kSend && step.call != Call::kRecv;
  }

  void Collectives() {
    for (std::size_t k = 0; k < nodes_[0].plan.steps.size(); ++k) {
      const Step& step = nodes_[0].plan.steps[k];
      if (!IsCollective(step)) continue;
      for (const Node& node : nodes_) {  // all make the same call, or NCCL hangs
        ASSERT_LT(k, node.plan.steps.size());
        ASSERT_EQ(node.plan.steps[k].call, step.call);
        ASSERT_EQ(node.plan.steps[k].peer, step.peer);
        ASSERT_EQ(node.plan.steps[k].count, step.count);
      }
      Carry(k, step);
    }
  }

  Values SumAt(std::size_t k, std::size_t skip, std::size_t count) const {
    Values sum(count, 0);
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      const Values one = Read(r, nodes_[r].plan.steps[k].src + skip, count);
      for (std::size_t i = 0; i < count; ++i) sum[i] += one[i];
    }
    return sum;
  }

  void Carry(std::size_t k, const Step& step) {
    const auto root = static_cast<std::size_t>(step.peer);
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      const std::size_t dst = nodes_[r].plan.steps[k].dst;
      switch (step.call) {
        case Call::kAllReduce:
          Write(r, dst, SumAt(k, 0, step.count));
          break;
        case Call::kReduce:
          if (r == root) Write(r, dst, SumAt(k, 0, step.count));
          break;
        case Call::kReduceScatter:
          Write(r, dst, SumAt(k, r * step.count, step.count));
          break;
        case Call::kBroadcast:
          Write(r, dst, Read(root, nodes_[root].plan.steps[k].src, step.count));
          break;
        case Call::kAllGather:
          for (std::size_t p = 0; p < nodes_.size(); ++p) {
            Write(r, dst + p * step.count, Read(p, nodes_[p].plan.steps[k].src, step.count));
          }
          break;
        case Call::kSend:
        case Call::kRecv:
          break;
      }
    }
  }

  std::vector<Node> nodes_;
  std::vector<Values> before_;  // memory as it was
  std::map<std::pair<std::size_t, std::size_t>, std::deque<Values>> sent_;
};

// ---- the collectives, and what they are
// ----------------------------------------------------------

std::size_t At(const Values& counts, std::size_t i) { return static_cast<std::size_t>(counts[i]); }

// Rank s sends d so many elements; some of them none.
std::int64_t Share(std::size_t s, std::size_t d) {
  return static_cast<std::int64_t>((3 * s + 5 * d) % 4);
}

struct Job {
  CollectiveKind kind;
  std::size_t ranks;
  bool in_place;
  std::size_t n = 3;
  std::int32_t root() const { return static_cast<std::int32_t>(ranks - 1); }
};

// The ranks other than the root, last first: order is not by rank.
std::vector<std::int32_t> Peers(const Job& job) {
  std::vector<std::int32_t> peers;
  for (std::int32_t r = job.root() - 1; r >= 0; --r) {
    if (r != 1) peers.push_back(r);  // one that takes no part
  }
  return peers;
}

Collective Make(const Job& job, std::size_t rank) {
  Collective c;
  c.kind = job.kind;
  c.in_place = job.in_place;
  c.root = job.root();
  c.src = c.dst = job.n;
  switch (job.kind) {
    case K::kAllGather:
    case K::kGather:
      c.dst = job.n * job.ranks;
      break;
    case K::kReduceScatter:
    case K::kScatter:
      c.src = job.n * job.ranks;
      break;
    case K::kAllToAll:
      c.src = c.dst = job.n * job.ranks;
      break;
    case K::kAllGatherV:
    case K::kReduceScatterV: {
      for (std::size_t r = 0; r < job.ranks; ++r) c.send_counts.push_back(Share(r, 1));
      const std::size_t all = kit::internal::Sum(c.send_counts);
      c.src = job.kind == K::kAllGatherV ? At(c.send_counts, rank) : all;
      c.dst = job.kind == K::kAllGatherV ? all : At(c.send_counts, rank);
      break;
    }
    case K::kAllToAllV:
      for (std::size_t r = 0; r < job.ranks; ++r) {
        c.send_counts.push_back(Share(rank, r));
        c.recv_counts.push_back(Share(r, rank));
      }
      c.src = kit::internal::Sum(c.send_counts);
      c.dst = kit::internal::Sum(c.recv_counts);
      break;
    case K::kIncast:
      c.peers = Peers(job);
      c.dst = job.n * c.peers.size();
      break;
    case K::kMulticast:
      c.peers = Peers(job);
      break;
    default:
      break;
  }
  return c;
}

void Append(std::int32_t from, std::size_t at, std::size_t count, Values* out) {
  for (std::size_t i = 0; i < count; ++i) out->push_back(Input(from, at + i));
}

Values Sums(std::size_t ranks, std::size_t at, std::size_t count) {
  Values sums(count, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += Input(static_cast<int>(r), at + i);
  }
  return sums;
}

// What dst holds on `rank`; nothing where the collective says nothing about it.
std::optional<Values> Expected(const Job& job, std::size_t rank) {
  const Collective c = Make(job, rank);
  const bool root = static_cast<std::int32_t>(rank) == job.root();
  Values all;
  switch (job.kind) {
    case K::kAllReduce:
      return Sums(job.ranks, 0, job.n);
    case K::kReduce:
      return root ? std::optional(Sums(job.ranks, 0, job.n)) : std::nullopt;
    case K::kReduceScatter:
      return Sums(job.ranks, rank * job.n, job.n);
    case K::kReduceScatterV:
      return Sums(job.ranks, kit::BlockOffsets(c.send_counts)[rank], At(c.send_counts, rank));
    case K::kBroadcast:
      Append(job.root(), 0, job.n, &all);
      return all;
    case K::kGather:
      if (!root) return std::nullopt;
      [[fallthrough]];
    case K::kAllGather:
    case K::kAllGatherV:
      for (std::size_t r = 0; r < job.ranks; ++r) {
        Append(static_cast<int>(r), 0, c.send_counts.empty() ? job.n : At(c.send_counts, r), &all);
      }
      return all;
    case K::kScatter:
      Append(job.root(), rank * job.n, job.n, &all);
      return all;
    case K::kAllToAll:
      for (std::size_t r = 0; r < job.ranks; ++r) {
        Append(static_cast<int>(r), rank * job.n, job.n, &all);
      }
      return all;
    case K::kAllToAllV:
      for (std::size_t r = 0; r < job.ranks; ++r) {
        const Collective sender = Make(job, r);
        Append(static_cast<int>(r), kit::BlockOffsets(sender.send_counts)[rank],
               At(sender.send_counts, rank), &all);
      }
      return all;
    case K::kIncast:
      if (!root) return std::nullopt;
      for (const std::int32_t source : c.peers) Append(source, 0, job.n, &all);
      return all;
    case K::kMulticast: {
      const bool gets = root || std::count(c.peers.begin(), c.peers.end(), int(rank)) > 0;
      Append(gets ? job.root() : static_cast<std::int32_t>(rank), 0, job.n, &all);
      return all;
    }
    default:
      return std::nullopt;
  }
}

constexpr CollectiveKind kKinds[] = {
    K::kAllReduce,  K::kReduce,         K::kBroadcast, K::kAllGather, K::kReduceScatter,
    K::kAllToAll,   K::kGather,         K::kScatter,   K::kIncast,    K::kMulticast,
    K::kAllGatherV, K::kReduceScatterV, K::kAllToAllV};

bool HasInPlace(CollectiveKind kind) {
  return kind != K::kBroadcast && kind != K::kIncast && kind != K::kMulticast;
}

class NcclPlan : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NcclPlan, ::testing::Values(1, 2, 3, 4, 5, 8),
                         ::testing::PrintToStringParamName());

void CheckAll(std::size_t ranks, bool in_place) {
  for (const CollectiveKind kind : kKinds) {
    if (in_place && !HasInPlace(kind)) continue;
    const Job job = {kind, ranks, in_place};
    SCOPED_TRACE(kit::kCollectiveNames[static_cast<int>(kind)]);
    std::vector<Collective> all;
    for (std::size_t r = 0; r < ranks; ++r) all.push_back(Make(job, r));
    Model model(std::move(all));
    model.Run();
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::optional<Values> expected = Expected(job, r);
      if (!expected.has_value()) continue;
      EXPECT_EQ(model.Dst(r), *expected) << "rank " << r;
    }
  }
}

TEST_P(NcclPlan, DoesWhatTheCollectiveIs) { CheckAll(GetParam(), /*in_place=*/false); }

TEST_P(NcclPlan, DoesItInPlace) { CheckAll(GetParam(), /*in_place=*/true); }

TEST(NcclPlanDetails, AllToAllInPlaceCopiesItsInputAsideUnlessAlone) {
  EXPECT_EQ(MakePlan(Make({K::kAllToAll, 4, true}, 1), 1, 4).copied, 12u);
  EXPECT_EQ(MakePlan(Make({K::kAllToAll, 4, false}, 1), 1, 4).copied, 0u);
  const Plan alone = MakePlan(Make({K::kAllToAll, 1, true}, 0), 0, 1);
  EXPECT_EQ(alone.copied, 0u);
  EXPECT_THAT(alone.steps, IsEmpty());
}

TEST(NcclPlanDetails, AllToAllStartsAtTheOwnRank) {
  EXPECT_THAT(MakePlan(Make({K::kAllToAll, 3, false, 2}, 1), 1, 3).steps,
              ElementsAre(Step{Call::kSend, 1, 2, 0, 2}, Step{Call::kRecv, 1, 0, 2, 2},
                          Step{Call::kSend, 2, 4, 0, 2}, Step{Call::kRecv, 2, 0, 4, 2},
                          Step{Call::kSend, 0, 0, 0, 2}, Step{Call::kRecv, 0, 0, 0, 2}));
}

TEST(NcclPlanDetails, SendAndRecvAreOneCallEach) {
  Collective c;
  c.root = 2;
  c.src = c.dst = 7;
  c.kind = K::kSend;
  EXPECT_THAT(MakePlan(c, 0, 3).steps, ElementsAre(Step{Call::kSend, 2, 0, 0, 7}));
  c.kind = K::kRecv;
  EXPECT_THAT(MakePlan(c, 0, 3).steps, ElementsAre(Step{Call::kRecv, 2, 0, 0, 7}));
}

TEST(NcclPlanDetails, ABarrierReducesOneElementAndSaysSo) {
  Collective c;
  c.kind = K::kBarrier;
  const Plan plan = MakePlan(c, 1, 3);
  EXPECT_THAT(plan.steps, ElementsAre(Step{Call::kAllReduce, 0, 0, 0, 1}));
  EXPECT_STREQ(plan.implementation, "ncclAllReduce of one element: NCCL has no barrier");
}

TEST(NcclPlanDetails, NamesWhatRuns) {
  const auto name = [](CollectiveKind kind) {
    return std::string(MakePlan(Make({kind, 2, false}, 0), 0, 2).implementation);
  };
  EXPECT_EQ(name(K::kAllReduce), "ncclAllReduce");
  EXPECT_EQ(name(K::kScatter), "grouped ncclSend and ncclRecv");
  EXPECT_EQ(name(K::kAllGatherV), "grouped ncclBroadcast, one for each rank");
  EXPECT_EQ(name(K::kReduceScatterV), "grouped ncclReduce, one for each rank");
}

TEST(NcclPlanDetails, ABlockForItselfMustBeWhatItExpectsFromItself) {
  Collective c = Make({K::kAllToAllV, 3, false}, 1);
  param_error error = {};
  EXPECT_EQ(CheckOwnBlock(c, 1, &error), kit::kOk);
  c.recv_counts[1] += 2;
  EXPECT_EQ(CheckOwnBlock(c, 1, &error), kit::kInvalidArgument);
  EXPECT_STREQ(error.message, "all_to_allv: rank 1 sends itself 0 elements and expects 2");
}

}  // namespace
}  // namespace param::nccl
