// Cases, results and samples: what any Store answers.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/contract/store_suite.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::uint64_t> Bits(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

TEST_P(StoreContract, ThePlanComesBackInOrderWithTypedParameters) {
  ASSERT_EQ(Put({PutJob{MakeJob("j-1")}, PutCases{"j-1", {MakeCase(1), MakeCase(0)}}}),
            absl::OkStatus());
  const auto cases = store().GetCases("j-1");
  ASSERT_EQ(cases.status(), absl::OkStatus());
  ASSERT_EQ(cases->size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const CaseRecord& record = (*cases)[static_cast<std::size_t>(i)];
    const CaseRecord expected = MakeCase(i);
    EXPECT_EQ(record.index, i);
    EXPECT_EQ(record.planned.id, expected.planned.id);
    EXPECT_EQ(record.planned.params, expected.planned.params);
    EXPECT_EQ(record.planned.set_row, expected.planned.set_row);
    EXPECT_EQ(record.planned.application, expected.planned.application);
    EXPECT_FALSE(record.ended);
  }
}

TEST_P(StoreContract, AJobIsPlannedOnce) {
  ASSERT_EQ(Put({PutJob{MakeJob("j-1")}, PutCases{"j-1", {MakeCase(0)}}}), absl::OkStatus());
  EXPECT_EQ(Put({PutCases{"j-1", {MakeCase(1)}}}),
            absl::AlreadyExistsError("job j-1 has its cases already"));
  EXPECT_EQ(Put({PutCases{"j-2", {}}}), absl::NotFoundError("no job j-2"));
  EXPECT_EQ(Put({PutJob{MakeJob("j-3")}, PutCases{"j-3", {MakeCase(4), MakeCase(4)}}}),
            absl::InvalidArgumentError("job j-3: case 4 is planned twice"));
}

TEST_P(StoreContract, AResultComesBackSortedWithEveryField) {
  PutRunningJob("j-1", 2);
  PutCaseResult write = MakeResult("j-1", 1, 1, 1.5);
  write.result.status = line::CaseStatus::kWrong;
  write.result.reason = "rank 1: element 5";
  const Measurement all = MakeMeasurement(-1, "time", 1.5);
  const Measurement labelled = MakeMeasurement(0, "time", 2, {{"op", "a,b=c%"}, {"phase", ""}});
  const Measurement flops = MakeMeasurement(0, "flops", 3);
  write.result.measurements = {labelled, all, flops};
  write.result.ranks = {{1, "n2", line::CaseStatus::kWrong, "element 5"},
                        {0, "n1", line::CaseStatus::kPassed, ""}};
  ASSERT_EQ(Put({write}), absl::OkStatus());
  const auto cases = store().GetCases("j-1");
  ASSERT_EQ(cases.status(), absl::OkStatus());
  EXPECT_FALSE((*cases)[0].ended);
  const CaseRecord& record = (*cases)[1];
  EXPECT_TRUE(record.ended);
  EXPECT_EQ(record.planned.id, MakeCase(1).planned.id);  // the plan stands
  EXPECT_EQ(record.status, line::CaseStatus::kWrong);
  EXPECT_EQ(record.reason, "rank 1: element 5");
  EXPECT_EQ(record.info, write.result.info);
  EXPECT_THAT(record.measurements, ElementsAre(all, flops, labelled));
  EXPECT_THAT(record.ranks, ElementsAre(write.result.ranks[1], write.result.ranks[0]));
}

TEST_P(StoreContract, NumbersThatAreNotFiniteComeBack) {
  PutRunningJob("j-1", 1);
  PutCaseResult write = MakeResult("j-1", 1, 0, 1.0);
  write.result.measurements[0].summary.p50 = kNan;
  write.result.measurements[0].summary.max = kInfinity;
  write.result.measurements[0].summary.min = 4.9e-324;
  ASSERT_EQ(Put({write}), absl::OkStatus());
  const Summary summary = store().GetCases("j-1")->front().measurements.front().summary;
  EXPECT_TRUE(std::isnan(summary.p50));
  EXPECT_EQ(summary.max, kInfinity);
  EXPECT_EQ(summary.min, 4.9e-324);
}

TEST_P(StoreContract, SamplesComeBackBitByBit) {
  PutRunningJob("j-1", 1);
  PutCaseResult write = MakeResult("j-1", 1, 0, 1.0);
  const std::vector<double> odd = {
      0.0,       -0.0,       4.9e-324, 1.0 / 3,
      kInfinity, -kInfinity, kNan,     std::bit_cast<double>(std::uint64_t{0x7ff8dead0000beef})};
  write.samples = {{0, 0, "time", {}, odd}, {0, 1, "time", {}, {}}};
  ASSERT_EQ(Put({write}), absl::OkStatus());
  const std::vector<SampleBlob> blobs = Samples("j-1");
  ASSERT_EQ(blobs.size(), 2U);
  EXPECT_EQ(Bits(blobs[0].values), Bits(odd));
  EXPECT_THAT(blobs[1].values, IsEmpty());
}

TEST_P(StoreContract, SamplesAreOrderedByCaseRankMetricAndLabels) {
  PutRunningJob("j-1", 2);
  PutCaseResult second = MakeResult("j-1", 1, 1, 1.0);
  PutCaseResult first = MakeResult("j-1", 1, 0, 1.0);
  first.samples = {{0, 1, "time", {}, {1}},
                   {0, 0, "time", {{"a-b", "1"}}, {2}},
                   {0, 0, "time", {{"a", "1"}}, {3}},
                   {0, 0, "busbw", {}, {4}}};
  ASSERT_EQ(Put({second, first}), absl::OkStatus());
  std::vector<double> order;
  for (const SampleBlob& blob : Samples("j-1")) order.push_back(blob.values.front());
  EXPECT_THAT(order, ElementsAre(4, 2, 3, 1, 1.0));
}

TEST_P(StoreContract, SamplesAreReadFromAPositionOn) {
  PutRunningJob("j-1", 3);
  std::vector<Write> writes;
  for (int i = 0; i < 3; ++i) {
    PutCaseResult write = MakeResult("j-1", 1, i, 1.0);
    write.samples.clear();
    for (int rank = 0; rank < 2; ++rank) {
      write.samples.push_back({i, rank, "busbw", {}, {10.0 * i + rank}});
      write.samples.push_back({i, rank, "time", {}, {10.0 * i + rank + 0.5}});
    }
    writes.push_back(write);
  }
  ASSERT_EQ(Put(writes), absl::OkStatus());
  const auto from = [&](SamplePosition position) {
    std::vector<double> seen;
    EXPECT_EQ(store().ReadSamples("j-1", position,
                                  [&seen](const SampleBlob& blob) {
                                    seen.push_back(blob.values.front());
                                    return absl::OkStatus();
                                  }),
              absl::OkStatus());
    return seen;
  };
  EXPECT_EQ(from({}).size(), 12U);
  EXPECT_THAT(from({1, 1}), ElementsAre(11, 11.5, 20, 20.5, 21, 21.5));
  EXPECT_THAT(from({1, 2}), ElementsAre(20, 20.5, 21, 21.5));
  EXPECT_THAT(from({2, 1}), ElementsAre(21, 21.5));
  EXPECT_THAT(from({3, 0}), IsEmpty());
}

TEST_P(StoreContract, AReaderOfSamplesMayStop) {
  PutRunningJob("j-1", 2);
  ASSERT_EQ(Put({MakeResult("j-1", 1, 0, 1.0), MakeResult("j-1", 1, 1, 1.0)}), absl::OkStatus());
  int calls = 0;
  const absl::Status status = store().ReadSamples("j-1", {}, [&calls](const SampleBlob&) {
    ++calls;
    return absl::CancelledError("enough");
  });
  EXPECT_EQ(status, absl::CancelledError("enough"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(store().GetJob("j-1").status(), absl::OkStatus());
}

TEST_P(StoreContract, ALaterAttemptReplacesResults) {
  PutRunningJob("j-1", 2);
  ASSERT_EQ(Put({MakeResult("j-1", 1, 0, 1.0), MakeResult("j-1", 1, 1, 1.0)}), absl::OkStatus());
  Job job = *store().GetJob("j-1");
  job.attempt = 2;
  ASSERT_EQ(Put({PutJob{job}, PutAttempt{MakeAttempt("j-1", 2)}}), absl::OkStatus());
  EXPECT_FALSE(store().GetCases("j-1")->front().ended);  // what attempt 1 found counts no more
  EXPECT_THAT(Samples("j-1"), IsEmpty());
  ASSERT_EQ(Put({MakeResult("j-1", 2, 0, 2.0)}), absl::OkStatus());
  const auto cases = store().GetCases("j-1");
  EXPECT_TRUE((*cases)[0].ended);
  ASSERT_EQ((*cases)[0].measurements.size(), 1U);
  EXPECT_EQ((*cases)[0].measurements[0].summary.p50, 2.0);
  EXPECT_FALSE((*cases)[1].ended);
  EXPECT_THAT((*cases)[1].measurements, IsEmpty());
  EXPECT_EQ(Samples("j-1").size(), 1U);
}

TEST_P(StoreContract, AResultOfAnEarlierAttemptComesTooLate) {
  PutRunningJob("j-1", 1);
  Job job = *store().GetJob("j-1");
  job.attempt = 2;
  ASSERT_EQ(Put({PutJob{job}, MakeResult("j-1", 2, 0, 2.0)}), absl::OkStatus());
  ASSERT_EQ(Put({MakeResult("j-1", 1, 0, 1.0)}), absl::OkStatus());
  EXPECT_EQ(store().GetCases("j-1")->front().measurements.front().summary.p50, 2.0);
}

TEST_P(StoreContract, TheSameAttemptMayStoreAResultAgain) {
  PutRunningJob("j-1", 1);
  ASSERT_EQ(Put({MakeResult("j-1", 1, 0, 1.0)}), absl::OkStatus());
  ASSERT_EQ(Put({MakeResult("j-1", 1, 0, 3.0)}), absl::OkStatus());
  const auto cases = store().GetCases("j-1");
  ASSERT_EQ(cases->front().measurements.size(), 1U);
  EXPECT_EQ(cases->front().measurements.front().summary.p50, 3.0);
}

TEST_P(StoreContract, AResultThatContradictsItselfIsRefused) {
  PutRunningJob("j-1", 1);
  PutCaseResult twice = MakeResult("j-1", 1, 0, 1.0);
  twice.result.measurements.push_back(MakeMeasurement(-1, "time", 2));
  EXPECT_EQ(Put({twice}),
            absl::InvalidArgumentError("case 0: rank -1: metric time is given twice"));
  PutCaseResult foreign = MakeResult("j-1", 1, 0, 1.0);
  foreign.samples[0].case_index = 5;
  EXPECT_EQ(Put({foreign}), absl::InvalidArgumentError("case 0: samples of case 5"));
  PutCaseResult ranks = MakeResult("j-1", 1, 0, 1.0);
  ranks.result.ranks[1].rank = 0;
  EXPECT_EQ(Put({ranks}), absl::InvalidArgumentError("case 0: rank 0 is given twice"));
  EXPECT_FALSE(store().GetCases("j-1")->front().ended);
}

TEST_P(StoreContract, ResultsAreThoseOfFinishedJobsNewestFirst) {
  for (const auto& [id, finished] :
       std::vector<std::pair<std::string, int>>{{"j-a", 10}, {"j-b", 30}, {"j-c", 20}}) {
    PutRunningJob(id, 2);
    Job job = *store().GetJob(id);
    job.state = JobState::kFailed;
    job.timeline.finished = finished;
    job.nodes = {id == "j-b" ? "n1" : "n2"};
    ASSERT_EQ(Put({MakeResult(id, 1, 0, 1.0), PutJob{job}}), absl::OkStatus());
  }
  ASSERT_EQ(Put({MakeResult("j-c", 1, 1, 1.0)}), absl::OkStatus());
  PutRunningJob("j-running", 1);
  ASSERT_EQ(Put({MakeResult("j-running", 1, 0, 1.0)}), absl::OkStatus());

  EXPECT_THAT(ListedResults({}), ElementsAre("j-b/0", "j-c/0", "j-c/1", "j-a/0"));
  EXPECT_THAT(ListedResults({"", "", "", 2}), ElementsAre("j-b/0", "j-c/0"));
  EXPECT_THAT(ListedResults({"", "", "n1", 9}), ElementsAre("j-b/0"));
  EXPECT_THAT(ListedResults({"", MakeCase(1).planned.id, "", 9}), ElementsAre("j-c/1"));
  EXPECT_THAT(ListedResults({"gemm", MakeCase(0).planned.id, "n2", 9}),
              ElementsAre("j-c/0", "j-a/0"));
  EXPECT_THAT(ListedResults({"all_reduce", "", "", 9}), IsEmpty());
  const auto rows = store().ListResults({});
  EXPECT_EQ(rows->front().result.planned.params, MakeCase(0).planned.params);
  EXPECT_EQ(rows->front().result.measurements.size(), 1U);
  EXPECT_EQ(rows->front().job.job_id, "j-b");
}

TEST_P(StoreContract, ALargeBatchGoesThrough) {
  PutRunningJob("j-1", 1);
  PutCaseResult write = MakeResult("j-1", 1, 0, 1.0);
  for (int rank = 0; rank < 5000; ++rank) {
    write.result.measurements.push_back(MakeMeasurement(rank, "time", rank));
  }
  write.samples[0].values.assign(500'000, 0.5);
  AppendRankEvents events;
  for (std::uint64_t seq = 0; seq < 5000; ++seq) {
    events.events.push_back({{"j-1", 1}, 0, seq, 1, std::string(100, 'x')});
  }
  ASSERT_EQ(Put({events, write}), absl::OkStatus());
  EXPECT_EQ(store().GetRankEvents({"j-1", 1})->size(), 5000U);
  EXPECT_EQ(store().GetCases("j-1")->front().measurements.size(), 5001U);
  EXPECT_EQ(Samples("j-1").front().values.size(), 500'000U);
}

}  // namespace
}  // namespace param
