#include "agent/bench/collective_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/backend/kit.h"
#include "agent/backend/kit_reduce.h"
#include "agent/bench/element.h"

namespace param {
namespace {

using ::testing::HasSubstr;

constexpr param_dtype kDtypes[] = {PARAM_DTYPE_I8,  PARAM_DTYPE_U8,  PARAM_DTYPE_I32,
                                   PARAM_DTYPE_I64, PARAM_DTYPE_F16, PARAM_DTYPE_BF16,
                                   PARAM_DTYPE_F32, PARAM_DTYPE_F64};
constexpr std::pair<Redop, kit::RedOp> kRedops[] = {{Redop::kSum, kit::RedOp::kSum},
                                                    {Redop::kProd, kit::RedOp::kProd},
                                                    {Redop::kMin, kit::RedOp::kMin},
                                                    {Redop::kMax, kit::RedOp::kMax},
                                                    {Redop::kAvg, kit::RedOp::kAvg}};

std::vector<char> InputOf(const CollectivePattern& pattern, int rank, std::int64_t count) {
  std::vector<char> bytes(static_cast<std::size_t>(count) * kit::DtypeSize(pattern.dtype));
  FillPattern(pattern, rank, 0, count, bytes.data());
  return bytes;
}

// Combines in the type itself, in two orders: the numbers are exact in any.
TEST(CollectivePattern, IsExactInEveryTypeAndOrder) {
  constexpr std::int64_t kCount = 500;
  for (const int ranks : {2, 3, 5, 8, 300}) {
    for (const param_dtype dtype : kDtypes) {
      for (const auto& [redop, kit_redop] : kRedops) {
        const CollectivePattern pattern = {dtype, redop, ranks, 7};
        for (const int step : {1, -1}) {
          const int first = step > 0 ? 0 : ranks - 1;
          std::vector<char> all = InputOf(pattern, first, kCount);
          for (int rank = first + step; rank >= 0 && rank < ranks; rank += step) {
            const std::vector<char> next = InputOf(pattern, rank, kCount);
            ASSERT_TRUE(kit::Reduce(kit_redop, dtype, all.data(), next.data(), kCount));
          }
          if (redop == Redop::kAvg) kit::FinishAvg(dtype, all.data(), kCount, ranks);
          if (!pattern.CanCheck().ok()) continue;
          OutputChecker checker(pattern, {{0, kCount, -1, 0}});
          checker.Check(all.data(), 0, kCount);
          EXPECT_EQ(checker.problem(), "")
              << kit::DtypeName(dtype) << " " << kit::RedOpName(kit_redop) << " on " << ranks;
          EXPECT_EQ(checker.checked(), kCount);
        }
      }
    }
  }
}

// As NCCL does it for floats: each input is scaled by 1 / W first, and rounded.
TEST(CollectivePattern, TakesTheAverageOfALibraryThatScalesFirst) {
  constexpr std::int64_t kCount = 3000;
  for (const int ranks : {2, 3, 5, 6, 7, 8}) {
    for (const param_dtype dtype : {PARAM_DTYPE_F16, PARAM_DTYPE_BF16, PARAM_DTYPE_F32}) {
      const CollectivePattern pattern = {dtype, Redop::kAvg, ranks, 7};
      std::vector<char> sum(static_cast<std::size_t>(kCount) * kit::DtypeSize(dtype));
      for (int rank = 0; rank < ranks; ++rank) {
        for (std::size_t i = 0; i < kCount; ++i) {
          double scaled = 0;
          char element[8];
          StoreElement(dtype, element, 0,
                       pattern.Input(rank, static_cast<std::int64_t>(i)) / ranks);
          scaled = LoadElement(dtype, element, 0);
          StoreElement(dtype, sum.data(), i, LoadElement(dtype, sum.data(), i) + scaled);
        }
      }
      OutputChecker checker(pattern, {{0, kCount, -1, 0}});
      checker.Check(sum.data(), 0, kCount);
      EXPECT_EQ(checker.problem(), "") << kit::DtypeName(dtype) << " on " << ranks;
      OutputChecker shifted(pattern, {{0, kCount - 1, -1, 1}});
      shifted.Check(sum.data(), 0, kCount - 1);
      EXPECT_GT(shifted.wrong(), kCount / 3) << kit::DtypeName(dtype) << " on " << ranks;
    }
  }
}

TEST(CollectivePattern, SaysWhatItCannotCheck) {
  EXPECT_TRUE((CollectivePattern{PARAM_DTYPE_I8, Redop::kAvg, 127, 0}).CanCheck().ok());
  EXPECT_EQ((CollectivePattern{PARAM_DTYPE_I8, Redop::kAvg, 128, 0}).CanCheck().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_TRUE((CollectivePattern{PARAM_DTYPE_I8, Redop::kSum, 1000, 0}).CanCheck().ok());
}

TEST(OutputOf, MulticastReachesItsPeersOnly) {
  CollectiveRequest request = {CollectiveOp::kMulticast, 400, 4, 4, 0};
  request.peers = {2};
  for (int rank = 0; rank < 4; ++rank) {
    const bool reached = rank == 0 || rank == 2;
    EXPECT_EQ(OutputOf(request, *LayOut(request, rank), rank).size(), reached ? 1u : 0u);
  }
}

TEST(CollectivePattern, TellsRanksAndPlacesApart) {
  for (const param_dtype dtype : kDtypes) {
    const CollectivePattern pattern = {dtype, Redop::kNone, 4, 0};
    constexpr std::int64_t kCount = 1000;
    const std::vector<char> input = InputOf(pattern, 1, kCount);
    OutputChecker other_rank(pattern, {{0, kCount, 2, 0}});
    other_rank.Check(input.data(), 0, kCount);
    EXPECT_GT(other_rank.wrong(), kCount * 9 / 10) << kit::DtypeName(dtype);
    OutputChecker shifted(pattern, {{0, kCount, 1, 1}});
    shifted.Check(input.data(), 0, kCount);
    EXPECT_GT(shifted.wrong(), kCount * 9 / 10) << kit::DtypeName(dtype);
    OutputChecker right(pattern, {{0, kCount, 1, 0}});
    right.Check(input.data(), 0, kCount);
    EXPECT_EQ(right.wrong(), 0);
  }
}

TEST(CollectivePattern, NamesTheFirstWrongElement) {
  const CollectivePattern pattern = {PARAM_DTYPE_I32, Redop::kSum, 2, 0};
  constexpr std::int64_t kCount = 100;
  std::vector<std::int32_t> sum(kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    sum[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(pattern.Combined(i));
  }
  sum[42] += 1;
  sum[77] -= 5;
  OutputChecker checker(pattern, {{0, kCount, -1, 0}});
  checker.Check(sum.data(), 0, 60);
  checker.Check(sum.data() + 60, 60, 40);
  EXPECT_THAT(checker.problem(), HasSubstr("index 42: expected "));
  EXPECT_EQ(checker.wrong(), 2);
  EXPECT_EQ(checker.checked(), kCount);
}

TEST(CollectivePattern, FillsPiecesAsIfTheyWereOne) {
  const CollectivePattern pattern = {PARAM_DTYPE_F32, Redop::kNone, 2, 3};
  const std::vector<char> whole = InputOf(pattern, 1, 200);
  std::vector<char> piece(4 * 50);
  FillPattern(pattern, 1, 120, 50, piece.data());
  EXPECT_EQ(std::vector<char>(whole.begin() + 480, whole.begin() + 680), piece);
}

// Every element of the larger side comes from somewhere, once.
TEST(OutputOf, CoversTheOutputExactly) {
  for (const absl::string_view name : kCollectiveOpNames) {
    const CollectiveOp op = *CollectiveOpFromName(name);
    for (int rank = 0; rank < 4; ++rank) {
      const CollectiveRequest request = {op, 4000, 4, 4, 1, Split::kHot, 5};
      const CollectiveLayout layout = *LayOut(request, rank);
      const auto blocks = OutputOf(request, layout, rank);
      const bool only_root =
          op == CollectiveOp::kReduce || op == CollectiveOp::kGather || op == CollectiveOp::kIncast;
      if (op == CollectiveOp::kBarrier || (only_root && rank != 1)) {
        EXPECT_TRUE(blocks.empty()) << name;
        continue;
      }
      std::int64_t at = 0;
      for (const OutputBlock& block : blocks) {
        EXPECT_EQ(block.begin, at) << name;
        at += block.count;
      }
      EXPECT_EQ(at, layout.dst) << name;
    }
  }
}

TEST(OutputOf, AllToAllVTakesWhatTheSenderSetAside) {
  const CollectiveRequest request = {CollectiveOp::kAllToAllV, 400, 4, 3, 0, Split::kZipf, 5};
  const CollectiveLayout sender = *LayOut(request, 0);
  const auto blocks = OutputOf(request, *LayOut(request, 2), 2);
  EXPECT_EQ(blocks[0].source, 0);
  EXPECT_EQ(blocks[0].count, sender.send_counts[2]);
  EXPECT_EQ(blocks[0].source_begin, sender.send_counts[0] + sender.send_counts[1]);
}

}  // namespace
}  // namespace param
