// How much a rank may say; what it may say at all is tested with the supervisor.

#include "agent/core/rank_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace param::agent {
namespace {

using ::testing::HasSubstr;

class RankProtocolTest : public ::testing::Test {
 protected:
  absl::Status Times(std::int64_t index, std::size_t count, line::Labels labels = {}) {
    return protocol_.Check(
        line::Samples{index, "time", "s", std::move(labels), std::vector<double>(count, 0.001)});
  }
  RankProtocol protocol_{**FindBenchmark("gemm"), 2};
};

TEST_F(RankProtocolTest, TakesAMillionSamplesPerCaseAndSetOfLabelsAndNoMore) {
  for (const std::int64_t index : {0, 1}) {
    ASSERT_TRUE(protocol_.Check(line::CaseBegin{index}).ok());
    for (const char* const algorithm : {"ring", "tree"}) {
      for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(Times(index, 50'000, {{"algorithm", algorithm}}).ok()) << i;
      }
    }
    if (index == 1) break;
    ASSERT_TRUE(protocol_.Check(line::CaseEnd{0, line::CaseStatus::kPassed, "", {}, {}}).ok());
  }
  EXPECT_THAT(std::string(Times(1, 1, {{"algorithm", "tree"}}).message()),
              HasSubstr("more than 1000000 samples of time of case 1"));
}

TEST_F(RankProtocolTest, TakesAThousandSetsOfLabelsPerCaseAndNoMore) {
  ASSERT_TRUE(protocol_.Check(line::CaseBegin{0}).ok());
  for (int i = 0; i < 1024; ++i) {
    ASSERT_TRUE(Times(0, 1, {{"step", std::to_string(i)}}).ok()) << i;
  }
  EXPECT_TRUE(Times(0, 1, {{"step", "7"}}).ok());
  EXPECT_THAT(std::string(Times(0, 1, {{"step", "more"}}).message()),
              HasSubstr("more than 1024 sets of labels"));
}

}  // namespace
}  // namespace param::agent
