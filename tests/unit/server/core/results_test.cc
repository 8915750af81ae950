#include "server/core/results.h"

#include <gtest/gtest.h>

#include <cmath>

namespace param {
namespace {

using line::CaseStatus;

RankReport Passed(std::vector<double> times) {
  RankReport report;
  report.series[{"time", {}}] = {"s", std::move(times)};
  report.ended = true;
  report.status = CaseStatus::kPassed;
  return report;
}

CaseRecord Planned() {
  CaseRecord record;
  const auto bench = FindBenchmark("gemm");
  record.planned = (*ExpandCases(**bench, {{"m", "100"}, {"n", "100"}, {"k", "100"}}))[0];
  return record;
}

const Measurement* Find(const CaseRecord& record, const std::string& metric, int rank) {
  for (const Measurement& m : record.measurements) {
    if (m.metric == metric && m.rank == rank) return &m;
  }
  return nullptr;
}

TEST(Worse, OrdersPassedSkippedWrongFailed) {
  EXPECT_EQ(Worse(CaseStatus::kPassed, CaseStatus::kSkipped), CaseStatus::kSkipped);
  EXPECT_EQ(Worse(CaseStatus::kWrong, CaseStatus::kSkipped), CaseStatus::kWrong);
  EXPECT_EQ(Worse(CaseStatus::kWrong, CaseStatus::kFailed), CaseStatus::kFailed);
}

TEST(Conclude, DerivesRatesFromEachSample) {
  CaseRecord record = Planned();
  Conclude(**FindBenchmark("gemm"), {Passed({1e-3, 2e-3})}, {"n1"}, "", record);
  const Measurement* flops = Find(record, "flops", -1);
  ASSERT_NE(flops, nullptr);
  EXPECT_DOUBLE_EQ(flops->summary.max, 2e6 / 1e-3);
  EXPECT_DOUBLE_EQ(flops->summary.min, 2e6 / 2e-3);
  EXPECT_EQ(flops->unit, "FLOP/s");
}

TEST(Conclude, LeavesOutWhatCannotBeDerived) {
  CaseRecord record = Planned();
  Conclude(**FindBenchmark("gemm"), {Passed({1e-3})}, {"n1"}, "", record);
  EXPECT_EQ(Find(record, "efficiency", -1), nullptr);
  RankReport with_peak = Passed({1e-3});
  with_peak.scalars["peak"] = 4e9;
  Conclude(**FindBenchmark("gemm"), {with_peak}, {"n1"}, "", record);
  ASSERT_NE(Find(record, "efficiency", -1), nullptr);
  EXPECT_DOUBLE_EQ(Find(record, "efficiency", -1)->summary.p50, 0.5);
}

TEST(Conclude, NamesTheSlowestRankByItsMedian) {
  CaseRecord record = Planned();
  Conclude(**FindBenchmark("gemm"), {Passed({1, 1, 9}), Passed({2, 2, 2})}, {"n1", "n2"}, "",
           record);
  EXPECT_EQ(Find(record, "time", -1)->summary.slowest_rank, 1);
  EXPECT_EQ(Find(record, "flops", -1)->summary.slowest_rank, 1);
  EXPECT_EQ(Find(record, "time", 0)->summary.slowest_rank, -1);
}

TEST(Conclude, ARankThatNeverEndedFailsTheCase) {
  CaseRecord record = Planned();
  RankReport open;
  open.series[{"time", {}}] = {"s", {1.0}};
  Conclude(**FindBenchmark("gemm"), {Passed({1}), open}, {"n1", "n2"}, "worker died", record);
  EXPECT_EQ(record.status, CaseStatus::kFailed);
  EXPECT_EQ(record.reason, "worker died");
  EXPECT_EQ(record.ranks[0].status, CaseStatus::kPassed);
  EXPECT_EQ(record.ranks[1].node, "n2");
}

TEST(Conclude, OfRanksThatWorkTogetherTheSlowestCounts) {
  CaseRecord record;
  const auto bench = FindBenchmark("collective");
  record.planned = (*ExpandCases(**bench, {{"size", "8"}}))[0];
  std::vector<RankReport> reports = {Passed({1e-3, 5e-3, 1e-3}), Passed({2e-3, 1e-3, 3e-3})};
  for (RankReport& report : reports) {
    report.scalars = {{"bytes_total", 6000}, {"bytes_per_rank", 6000}, {"bus_factor", 1}};
  }
  Conclude(**bench, reports, {"n1", "n2"}, "", record);
  const Measurement* time = Find(record, "time", -1);
  ASSERT_NE(time, nullptr);
  EXPECT_EQ(time->summary.n, 3);  // not 6
  EXPECT_DOUBLE_EQ(time->summary.min, 2e-3);
  EXPECT_DOUBLE_EQ(time->summary.p50, 3e-3);
  EXPECT_DOUBLE_EQ(time->summary.max, 5e-3);
  EXPECT_EQ(time->summary.slowest_rank, 1);
  EXPECT_DOUBLE_EQ(Find(record, "busbw", -1)->summary.p50, 6000 / 3e-3);
  EXPECT_DOUBLE_EQ(Find(record, "time", 0)->summary.p50, 1e-3);
}

}  // namespace
}  // namespace param
