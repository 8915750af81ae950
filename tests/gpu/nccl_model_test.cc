// The nccl backend, and the checks that a machine with GPUs runs, on a model of NCCL: the backend's
// own part (plans, groups, requests, waiting, aborting) and that the checks can fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>

#include "tests/fakes/cuda_model.h"
#include "tests/fakes/nccl_model.h"
#include "tests/gpu/check_nccl.h"

namespace param::gpu_check {
namespace {

using ::testing::HasSubstr;

class NcclOnModel : public ::testing::Test {
 protected:
  ~NcclOnModel() override { nccl_model::SetFaults({}); }

  void Connect(int ranks) {
    absl::StatusOr<std::unique_ptr<NcclRanks>> opened = NcclRanks::Open(cuda_, nccl_, ranks);
    ASSERT_TRUE(opened.ok()) << opened.status();
    ranks_ = *std::move(opened);
    const absl::Status connected = ranks_->Connect();
    ASSERT_TRUE(connected.ok()) << connected;
  }

  const LoadedBackend cuda_ = cuda_model::Backend();
  const LoadedBackend nccl_ = nccl_model::NcclBackend();
  std::unique_ptr<NcclRanks> ranks_;
};

class NcclOnModelRanks : public NcclOnModel, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NcclOnModelRanks, ::testing::Values(1, 2, 3),
                         ::testing::PrintToStringParamName());

TEST_P(NcclOnModelRanks, PassesEveryCheckOfTheGpu) {
  const std::vector<Row> rows = CheckNccl(cuda_, nccl_, GetParam());
  EXPECT_GT(rows.size(), 30u);
  for (const Row& row : rows) EXPECT_EQ(row.verdict, "ok") << row.what << ": " << row.detail;
}

TEST_F(NcclOnModel, TakesTheNameOfTheJobsInterfaceAndLeavesANetworkAlone) {
  ::unsetenv("NCCL_SOCKET_IFNAME");
  ::setenv("PARAM_INTERFACE", "127.0.0.0/8", 1);
  Connect(1);
  EXPECT_EQ(std::getenv("NCCL_SOCKET_IFNAME"), nullptr);
  ::setenv("PARAM_INTERFACE", "lo", 1);
  Connect(1);
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "=lo");
  ::unsetenv("PARAM_INTERFACE");
  ::unsetenv("NCCL_SOCKET_IFNAME");
}

TEST_F(NcclOnModel, AWrongElementIsSeenByEveryOperation) {
  Connect(2);
  nccl_model::SetFaults({.wrong_element = true});
  for (const Row& row : CheckCollectives(*ranks_)) {
    if (row.what == "nccl barrier") continue;  // has no data
    EXPECT_EQ(row.verdict, "WRONG") << row.what << ": " << row.detail;
  }
}

OpDesc& Sum(OpDesc& desc) {
  desc.String("redop", "sum").Tensor("src", PARAM_DTYPE_I32, {4});
  return desc.Tensor("dst", PARAM_DTYPE_I32, {4});
}

TEST_F(NcclOnModel, AnAsynchronousErrorEndsWhatIsInFlightAndSaysWhy) {
  Connect(2);
  NcclRank& rank = (*ranks_)[0];
  absl::StatusOr<Buffer> buffer = rank.device().CreateBuffer(PARAM_MEMORY_DEVICE, 16);
  ASSERT_TRUE(buffer.ok());
  OpDesc desc("all_reduce");
  const absl::StatusOr<CommOp> op = rank.Prepare(Sum(desc));
  ASSERT_TRUE(op.ok()) << op.status();
  Buffer none;
  const std::vector<param_operand> operands = {buffer->At(0), buffer->At(0)};
  ASSERT_TRUE(rank.Enqueue(*op, operands, &none).ok());  // rank 1 never comes
  nccl_model::SetFaults({.remote_error = true});
  ASSERT_TRUE(rank.stream().Synchronize().ok());
  const absl::Status later = rank.Enqueue(*op, operands, &none);
  EXPECT_EQ(later.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(later.message()),
              HasSubstr("asynchronous error: words for an error (ncclRemoteError): the last one"));
}

TEST_F(NcclOnModel, AnAbortEndsARequestThatIsWaitedFor) {
  Connect(2);
  NcclRank& rank = (*ranks_)[0];
  absl::StatusOr<Buffer> buffer = rank.device().CreateBuffer(PARAM_MEMORY_DEVICE, 16);
  ASSERT_TRUE(buffer.ok());
  OpDesc desc("all_reduce");
  const absl::StatusOr<CommOp> op = rank.Prepare(Sum(desc));
  ASSERT_TRUE(op.ok()) << op.status();
  Buffer none;
  param_request* request = nullptr;
  ASSERT_TRUE(rank.Enqueue(*op, {buffer->At(0), buffer->At(0)}, &none, &request).ok());
  BackendError error;
  std::int32_t done = 1;
  EXPECT_EQ(rank.table().request_test(rank.ctx(), request, &done, &error), 0);
  EXPECT_EQ(done, 0);
  std::thread aborter([&] { rank.Abort(); });
  EXPECT_EQ(rank.table().request_wait(rank.ctx(), request, &error),
            static_cast<std::int32_t>(absl::StatusCode::kAborted));
  aborter.join();
  EXPECT_TRUE(rank.Destroy().ok());
}

TEST_F(NcclOnModel, BadUseIsRefusedWithTheReason) {
  Connect(2);
  NcclRank& rank = (*ranks_)[0];
  OpDesc unknown("no_such_collective");
  EXPECT_EQ(rank.Prepare(unknown).status().code(), absl::StatusCode::kUnimplemented);
  OpDesc desc("all_reduce");
  const absl::StatusOr<CommOp> op = rank.Prepare(Sum(desc));
  ASSERT_TRUE(op.ok()) << op.status();
  Buffer none;
  const absl::Status few = rank.Enqueue(*op, {}, &none);
  EXPECT_EQ(few.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(few.message(), "0 operands, not 2");
  BackendError error;
  EXPECT_EQ(rank.table().group_end(rank.ctx(), &error),
            static_cast<std::int32_t>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(
      rank.table().op_enqueue(rank.ctx(), op->get(), nullptr, nullptr, 0, nullptr, nullptr, &error),
      static_cast<std::int32_t>(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace param::gpu_check
