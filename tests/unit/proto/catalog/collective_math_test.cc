#include "proto/catalog/collective_math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace param {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::int64_t Sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

TEST(CollectiveNames, RoundTrip) {
  for (const absl::string_view name : kCollectiveOpNames) {
    ASSERT_TRUE(CollectiveOpFromName(name).has_value()) << name;
    EXPECT_EQ(CollectiveOpName(*CollectiveOpFromName(name)), name);
  }
  EXPECT_FALSE(CollectiveOpFromName("all_reduc").has_value());
  for (const absl::string_view name : kSplitNames) EXPECT_TRUE(SplitFromName(name).has_value());
  EXPECT_FALSE(SplitFromName("").has_value());
}

// nccl-tests, doc/PERFORMANCE.md.
TEST(BusFactor, IsThatOfNcclTests) {
  struct Row {
    int ranks;
    double all_reduce, shared, rooted;
  };
  constexpr Row kRows[] = {{1, 0, 0, 1},      {2, 1, 0.5, 1},   {3, 4.0 / 3, 2.0 / 3, 1},
                           {4, 1.5, 0.75, 1}, {5, 1.6, 0.8, 1}, {8, 1.75, 0.875, 1}};
  for (const Row& row : kRows) {
    EXPECT_DOUBLE_EQ(BusFactor(CollectiveOp::kAllReduce, row.ranks), row.all_reduce);
    for (const CollectiveOp op :
         {CollectiveOp::kAllGather, CollectiveOp::kAllGatherV, CollectiveOp::kReduceScatter,
          CollectiveOp::kReduceScatterV, CollectiveOp::kAllToAll, CollectiveOp::kAllToAllV,
          CollectiveOp::kGather, CollectiveOp::kScatter}) {
      EXPECT_DOUBLE_EQ(BusFactor(op, row.ranks), row.shared) << CollectiveOpName(op);
    }
    for (const CollectiveOp op : {CollectiveOp::kBroadcast, CollectiveOp::kReduce,
                                  CollectiveOp::kIncast, CollectiveOp::kMulticast}) {
      EXPECT_DOUBLE_EQ(BusFactor(op, row.ranks), row.rooted) << CollectiveOpName(op);
    }
    EXPECT_TRUE(std::isnan(BusFactor(CollectiveOp::kBarrier, row.ranks)));
  }
}

CollectiveLayout Of(CollectiveOp op, std::int64_t size, int ranks, int rank = 0, int root = 0,
                    Split split = Split::kEven) {
  const auto layout = LayOut({op, size, 4, ranks, root, split, 0}, rank);
  EXPECT_TRUE(layout.ok()) << layout.status();
  return layout.ok() ? *layout : CollectiveLayout();
}

TEST(LayOut, SizeIsWhatOneRankHoldsAtItsLargerSide) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const std::int64_t size = 4 * 840;  // 840 = 8 * 7 * 5 * 3
    const std::int64_t share = 840 / ranks;
    for (const CollectiveOp op :
         {CollectiveOp::kAllReduce, CollectiveOp::kReduce, CollectiveOp::kBroadcast}) {
      EXPECT_EQ(Of(op, size, ranks).src, 840);
      EXPECT_EQ(Of(op, size, ranks).dst, 840);
      EXPECT_EQ(Of(op, size, ranks).bytes_per_rank, size);
    }
    for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kGather}) {
      EXPECT_EQ(Of(op, size, ranks).src, share);
      EXPECT_EQ(Of(op, size, ranks).dst, 840);
      EXPECT_EQ(Of(op, size, ranks).bytes, size);
      EXPECT_EQ(Of(op, size, ranks).bytes_per_rank, share * 4);
    }
    for (const CollectiveOp op : {CollectiveOp::kReduceScatter, CollectiveOp::kScatter}) {
      EXPECT_EQ(Of(op, size, ranks).src, 840);
      EXPECT_EQ(Of(op, size, ranks).dst, share);
      EXPECT_EQ(Of(op, size, ranks).bytes, size);
    }
    EXPECT_EQ(Of(CollectiveOp::kAllToAll, size, ranks).src, 840);
    EXPECT_EQ(Of(CollectiveOp::kAllToAll, size, ranks).bytes_per_rank, share * 4);
    // All messages at the root, which PARAM's multicast leaves out.
    EXPECT_EQ(Of(CollectiveOp::kIncast, size, ranks).bytes, size * (ranks - 1));
    EXPECT_EQ(Of(CollectiveOp::kIncast, size, ranks).dst, 840 * (ranks - 1));
    EXPECT_EQ(Of(CollectiveOp::kMulticast, size, ranks).bytes, size * (ranks - 1));
  }
}

TEST(LayOut, RoundsDownToAWholeShareAndSaysSo) {
  const CollectiveLayout layout = Of(CollectiveOp::kAllGather, 1000, 3);  // 250 f32: 83 a rank
  EXPECT_EQ(layout.src, 83);
  EXPECT_EQ(layout.dst, 249);
  EXPECT_EQ(layout.bytes, 996);
  EXPECT_EQ(Of(CollectiveOp::kAllReduce, 1000, 3).bytes, 1000);
}

TEST(LayOut, NeverMakesRowsOfZeroBytes) {
  const auto small = LayOut({CollectiveOp::kAllToAll, 8, 4, 4}, 0);
  EXPECT_EQ(small.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(small.status().message()), HasSubstr("needs 16 B at least"));
  EXPECT_TRUE(LayOut({CollectiveOp::kAllToAll, 16, 4, 4}, 0).ok());
  EXPECT_TRUE(LayOut({CollectiveOp::kAllReduce, 4, 4, 4}, 0).ok());
}

// Begin sizes of PARAM's conformance vectors: all_to_all with 2-byte elements on 16 ranks needs 32.
TEST(LayOut, TheLeastSizeIsThatOfParam) {
  EXPECT_FALSE(LayOut({CollectiveOp::kAllToAll, 30, 2, 16}, 0).ok());
  EXPECT_TRUE(LayOut({CollectiveOp::kAllToAll, 32, 2, 16}, 0).ok());
  EXPECT_TRUE(LayOut({CollectiveOp::kAllReduce, 2, 2, 16}, 0).ok());
}

TEST(LayOut, NamesWhatCannotBe) {
  const auto message = [](const CollectiveRequest& request) {
    const auto layout = LayOut(request, 0);
    EXPECT_EQ(layout.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(layout.status().message());
  };
  EXPECT_THAT(message({CollectiveOp::kAllReduce, 1024, 4, 1}), HasSubstr("one rank alone"));
  EXPECT_THAT(message({CollectiveOp::kReduce, 1024, 4, 4, 4}), HasSubstr("--root 4"));
  EXPECT_THAT(message({CollectiveOp::kAllReduce, 7, 4, 4}), HasSubstr("--size 7"));
}

TEST(DealOut, AddsUpWhateverTheSplit) {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    for (const std::int64_t total : {1, 7, 1000, 123'457}) {
      for (const Split split :
           {Split::kEven, Split::kZipf, Split::kHot, Split::kZeroRows, Split::kZeroNext}) {
        for (int row = 0; row < ranks; ++row) {
          const auto counts = DealOut(split, total, ranks, row, 42);
          EXPECT_EQ(Sum(counts), total);
          EXPECT_THAT(counts, Each(::testing::Ge(0)));
          EXPECT_EQ(counts, DealOut(split, total, ranks, row, 42));
        }
      }
    }
  }
}

TEST(DealOut, HasTheShapeItPromises) {
  EXPECT_THAT(DealOut(Split::kEven, 10, 4, 0, 1), ElementsAre(3, 3, 2, 2));
  auto hot = DealOut(Split::kHot, 800, 5, 0, 1);
  std::sort(hot.begin(), hot.end());
  EXPECT_THAT(hot, ElementsAre(100, 100, 100, 100, 400));
  auto zero = DealOut(Split::kZeroRows, 1000, 4, 0, 1);
  EXPECT_EQ(std::count(zero.begin(), zero.end(), 0), 2);
  auto zipf = DealOut(Split::kZipf, 12 * 25, 4, 0, 1);  // 1, 1/2, 1/3, 1/4 of 25/12
  std::sort(zipf.begin(), zipf.end());
  EXPECT_THAT(zipf, ElementsAre(36, 48, 72, 144));
}

TEST(LayOut, AllToAllVIsOneMatrixOnAllRanks) {
  constexpr int kRanks = 4;
  const CollectiveRequest request = {CollectiveOp::kAllToAllV, 4000, 4, kRanks, 0, Split::kZipf, 9};
  std::vector<CollectiveLayout> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(*LayOut(request, rank));
  std::int64_t most = 1000;
  for (std::size_t from = 0; from < kRanks; ++from) {
    EXPECT_EQ(Sum(ranks[from].send_counts), ranks[from].src);
    EXPECT_EQ(Sum(ranks[from].recv_counts), ranks[from].dst);
    most = std::max(most, ranks[from].dst);
    for (std::size_t to = 0; to < kRanks; ++to) {
      EXPECT_EQ(ranks[from].send_counts[to], ranks[to].recv_counts[from]);
    }
  }
  for (const CollectiveLayout& rank : ranks) EXPECT_EQ(rank.bytes, most * 4);
}

// PARAM's conformance vector of --include-0B: W = 4, N = 4.
TEST(DealOut, ZeroNextIsPARAMsIncludeZeroBytes) {
  EXPECT_THAT(DealOut(Split::kZeroNext, 4, 4, 0, 0), ElementsAre(2, 0, 1, 1));
  EXPECT_THAT(DealOut(Split::kZeroNext, 4, 4, 1, 0), ElementsAre(1, 2, 0, 1));
  EXPECT_THAT(DealOut(Split::kZeroNext, 4, 4, 2, 0), ElementsAre(1, 1, 2, 0));
  EXPECT_THAT(DealOut(Split::kZeroNext, 4, 4, 3, 0), ElementsAre(0, 1, 1, 2));
  const CollectiveLayout layout =
      *LayOut({CollectiveOp::kAllToAllV, 16, 4, 4, 0, Split::kZeroNext, 0, {}}, 0);
  EXPECT_THAT(layout.recv_counts, ElementsAre(2, 1, 1, 0));
}

TEST(ParseRanks, ReadsListsAndRanges) {
  EXPECT_THAT(*ParseRanks("0,2,4,6", 8), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(*ParseRanks("0:7", 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(*ParseRanks("5", 8), ElementsAre(5));
  EXPECT_THAT(*ParseRanks("3+1+3", 8), ElementsAre(3, 1));
  for (const char* const bad : {"", "8", "-1", "a", "3:1", "1:2:3", "1++2", "0:99999999999"}) {
    EXPECT_FALSE(ParseRanks(bad, 8).ok()) << bad;
  }
}

TEST(LayOut, PeersCanBeChosen) {
  CollectiveRequest request = {CollectiveOp::kIncast, 4, 4, 4, 2};
  request.peers = {3, 2, 0};
  EXPECT_THAT(LayOut(request, 0)->peers, ElementsAre(3, 0));
  EXPECT_EQ(LayOut(request, 2)->bytes, 8);
  request.peers = {4};
  EXPECT_THAT(std::string(LayOut(request, 0).status().message()), HasSubstr("rank 4"));
}

TEST(LayOut, TheBusFactorOfUnevenSharesIsWhatCrossesTheBusiestLink) {
  for (const CollectiveOp op :
       {CollectiveOp::kAllToAllV, CollectiveOp::kAllGatherV, CollectiveOp::kReduceScatterV}) {
    EXPECT_DOUBLE_EQ(LayOut({op, 4000, 4, 4, 0, Split::kEven, 0, {}}, 0)->bus_factor, 0.75);
  }
  // Everything stays where it is: the neighbour is the only other rank and gets nothing.
  EXPECT_DOUBLE_EQ(
      LayOut({CollectiveOp::kAllToAllV, 4000, 4, 2, 0, Split::kZeroNext, 0, {}}, 0)->bus_factor, 0);
  // A rank without a share of its own needs all of it.
  EXPECT_DOUBLE_EQ(
      LayOut({CollectiveOp::kAllGatherV, 4000, 4, 4, 0, Split::kZeroRows, 0, {}}, 0)->bus_factor,
      1);
}

TEST(LayOut, PeersMustBeSomebody) {
  CollectiveRequest request = {CollectiveOp::kIncast, 4, 4, 4, 2};
  request.peers = {2};
  EXPECT_THAT(std::string(LayOut(request, 0).status().message()), HasSubstr("nobody is left"));
}

TEST(LayOut, PeersAreAllButTheRoot) {
  EXPECT_THAT(Of(CollectiveOp::kIncast, 4, 4, 0, 2).peers, ElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace param
