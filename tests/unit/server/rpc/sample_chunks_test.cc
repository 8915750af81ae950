#include "server/rpc/sample_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/memory_store.h"

namespace param {
namespace {

using testing::HasSubstr;

constexpr int kCases = 10, kRanks = 3, kValues = 100;
constexpr std::size_t kRankBytes = kValues * sizeof(double) + 200;  // and what is around the values

class SampleChunksTest : public testing::Test {
 protected:
  SampleChunksTest() {
    job_.job_id = "j-1";
    job_.request_id = "r-1";
    job_.spec.benchmark = "gemm";
    job_.attempt = 1;
    std::vector<CaseRecord> cases(kCases);
    for (int i = 0; i < kCases; ++i) cases[static_cast<std::size_t>(i)].index = i;
    std::vector<Write> writes = {PutJob{job_}, PutCases{"j-1", cases}, Open(1)};
    for (CaseRecord& record : cases) {
      PutCaseResult result{{"j-1", 1}, record, {}};
      for (int rank = 0; rank < kRanks; ++rank) {
        result.samples.push_back(
            {record.index, rank, "time", {}, std::vector<double>(kValues, record.index)});
      }
      writes.push_back(std::move(result));
    }
    Put(std::move(writes));
  }
  static PutAttempt Open(int attempt) {
    PutAttempt put;
    put.attempt.job_id = "j-1";
    put.attempt.attempt = attempt;
    put.attempt.state = "OPEN";
    return put;
  }
  void Put(std::vector<Write> writes) {
    store_.Submit(std::move(writes),
                  [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  }

  Job job_;
  MemoryStore store_;
};

TEST_F(SampleChunksTest, EveryBlobComesOnceInOrderInBoundedChunks) {
  constexpr std::size_t kChunk = 4 * kRankBytes;
  SampleChunks chunks(store_, "j-1", kChunk);
  std::vector<std::pair<int, int>> seen;
  int count = 0;
  while (!chunks.is_over()) {
    const auto blobs = chunks.Next();
    ASSERT_TRUE(blobs.ok()) << blobs.status();
    std::size_t bytes = 0;
    for (const v1::SampleBlob& blob : *blobs) {
      bytes += blob.ByteSizeLong();
      seen.emplace_back(blob.case_index(), blob.rank());
      EXPECT_EQ(blob.values_size(), kValues);
    }
    EXPECT_LE(bytes, kChunk + kRankBytes);
    ++count;
  }
  EXPECT_GT(count, 5);
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(kCases * kRanks));
  for (int i = 0; i < kCases * kRanks; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], std::make_pair(i / kRanks, i % kRanks));
  }
}

TEST_F(SampleChunksTest, AChunkHoldsARankOfACaseWhole) {
  SampleChunks chunks(store_, "j-1", 1);
  const auto first = chunks.Next();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->size(), 1u);
  EXPECT_FALSE(chunks.is_over());
}

TEST_F(SampleChunksTest, ANewAttemptInBetweenIsSaid) {
  SampleChunks chunks(store_, "j-1", 1);
  ASSERT_TRUE(chunks.Next().ok());
  job_.attempt = 2;
  Put({PutJob{job_}, Open(2)});
  const absl::Status status = chunks.Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("attempt 2"));
}

TEST_F(SampleChunksTest, AnUnknownJobIsNotFound) {
  SampleChunks chunks(store_, "j-2");
  EXPECT_EQ(chunks.Next().status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace param
