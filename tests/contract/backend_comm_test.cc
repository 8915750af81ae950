// Every backend with a table "comm", with threads of this process as ranks.

#include <functional>
#include <future>
#include <thread>

#include "tests/contract/comm_fixture.h"

namespace param {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Of another process than ours: threads cannot be its ranks.
constexpr struct {
  const char* name;
  const char* why;
} kNotAsThreads[] = {
    {"mpi", "its ranks are processes that mpirun starts"},
};

class CommContract : public CommTest, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    for (const auto& [name, why] : kNotAsThreads) {
      if (GetParam() == name) GTEST_SKIP() << why;
    }
    Load(GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Installed, CommContract, ::testing::ValuesIn(NamesWith("comm")),
                         [](const auto& test) { return test.param; });

TEST_P(CommContract, UniqueIdsDiffer) {
  MakeRanks(1);
  std::uint8_t other[PARAM_COMM_ID_BYTES] = {};
  BackendError error;
  ASSERT_EQ(backend_.comm->unique_id(ranks_[0]->ctx, other, &error), 0) << error.message;
  EXPECT_NE(std::memcmp(id_, other, sizeof(other)), 0);
}

// One rank alone, pairs, an odd number.
TEST_P(CommContract, EveryCollectiveIsRight) {
  for (const int size : {1, 2, 3}) {
    SCOPED_TRACE(size);
    Connect(size);
    if (HasFatalFailure()) return;
    int ran = 0;
    EXPECT_THAT(Check(&ran), IsEmpty());
    EXPECT_GT(ran, 700);
    EXPECT_THAT(OnAll([](Rank& rank) { return rank.Destroy(); }), Each(absl::OkStatus()));
    ranks_.clear();
  }
}

TEST_P(CommContract, ABarrierEndsOnAllRanks) {
  Connect(4);
  EXPECT_THAT(OnAll([](Rank& rank) {
                OpDesc desc("barrier");
                return rank.Run(desc, {});
              }),
              Each(absl::OkStatus()));
}

TEST_P(CommContract, ARequestCompletes) {
  Connect(2);
  EXPECT_THAT(OnAll([](Rank& rank) {
                OpDesc desc("barrier");
                return rank.Run(desc, {}, /*with_request=*/true);
              }),
              Each(absl::OkStatus()));
}

TEST_P(CommContract, CreateEndsAtItsDeadlineWhenARankIsMissing) {
  MakeRanks(2);
  EXPECT_EQ(ranks_[0]->Create(id_, 20'000'000).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(CommContract, ARankOutsideTheJobIsAnError) {
  MakeRanks(1);
  BackendError error;
  param_comm* comm = nullptr;
  EXPECT_EQ(backend_.comm->comm_create(ranks_[0]->ctx, id_, 5, 2, kLong, &comm, &error),
            static_cast<std::int32_t>(absl::StatusCode::kInvalidArgument));
}

TEST_P(CommContract, AbortEndsWhatIsInFlight) {
  Connect(2);
  broken_ = true;
  absl::Status ended;
  std::promise<void> begins;
  std::thread alone([&] {
    OpDesc desc("barrier");
    begins.set_value();
    ended = ranks_[0]->Run(desc, {});
  });
  // Whether the abort comes before the barrier or while it waits, the answer is the same.
  begins.get_future().wait();
  backend_.comm->comm_abort(ranks_[0]->ctx, ranks_[0]->comm);
  alone.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kAborted) << ended;
  BackendError error;
  EXPECT_NE(backend_.comm->comm_async_error(ranks_[0]->ctx, ranks_[0]->comm, &error), 0);
}

TEST_P(CommContract, AbortEndsARequest) {
  Connect(2);
  broken_ = true;
  OpDesc desc("barrier");
  std::thread aborter;
  const absl::Status ended = ranks_[0]->Run(desc, {}, /*with_request=*/true, [&] {
    aborter = std::thread([&] { backend_.comm->comm_abort(ranks_[0]->ctx, ranks_[0]->comm); });
  });
  aborter.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kAborted) << ended;
}

TEST_P(CommContract, AnUnknownCollectiveIsUnimplemented) {
  Connect(1);
  OpDesc desc("no_such_collective");
  EXPECT_EQ(ranks_[0]->Run(desc, {}).code(), absl::StatusCode::kUnimplemented);
}

// The checks themselves: a corrupted element does not pass, and its place is named.
class CollectiveChecks : public CommContract {};

INSTANTIATE_TEST_SUITE_P(Installed, CollectiveChecks, ::testing::Values("fake"),
                         [](const auto& test) { return test.param; });

TEST_P(CollectiveChecks, NameAWrongElement) {
  Connect(2, R"({"faults": [{"at": "comm_init", "kind": "wrong", "rank": 1}]})");
  const std::vector<std::string> failures = Check();
  EXPECT_THAT(failures, Each(AllOf(HasSubstr("rank 1 of 2"), HasSubstr("element 0: expected "))));
  // Each kind, type and reduction once at least; a barrier has no element to corrupt.
  for (const char* const kind :
       {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather",
        "scatter", "all_gather_v", "reduce_scatter_v", "all_to_allv", "incast", "multicast"}) {
    EXPECT_THAT(failures, Contains(StartsWith(std::string(kind) + " ")));
  }
}

}  // namespace
}  // namespace param
