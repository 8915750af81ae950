#include "client/output/compare.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "client/output/csv_read.h"
#include "client/output/curves.h"
#include "client/output/job_table.h"
#include "client/output/plot.h"
#include "proto/convert/json_read.h"
#include "tests/unit/client/collective_samples.h"
#include "tests/unit/client/golden.h"

namespace param {
namespace {

v1::GetJobResponse Other() {
  // 8 B: 1 % slower, within noise (3 %); 64 KiB: half as slow again; 16 MiB is missing, 1 MiB new.
  v1::GetJobResponse other = CollectiveJob({CollectiveCase(0, {{"size", "8"}}, 10.1e-6),
                                            CollectiveCase(1, {{"size", "64K"}}, 60e-6),
                                            CollectiveCase(2, {{"size", "1M"}}, 1e-3)});
  other.mutable_job()->set_job_id("j-7h2wq5xk3a");
  return other;
}

TEST(Compare, TellsNoiseFromADifference) {
  const v1::GetJobResponse a = SweepJob(), b = Other();
  const auto comparison = CompareJobs(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  ASSERT_EQ(comparison->both.size(), 2u);
  EXPECT_EQ(comparison->both[0].verdict, Verdict::kSame);
  EXPECT_NEAR(comparison->both[0].ratio, 1.01, 1e-9);
  EXPECT_EQ(comparison->both[1].verdict, Verdict::kSlower);
  EXPECT_NEAR(comparison->both[1].ratio, 1.5, 1e-9);
  ASSERT_EQ(comparison->only_a.size(), 1u);
  EXPECT_EQ(comparison->only_a[0]->case_id(), "collective:v1:size=16777216");
  // 1 MiB is the default: it is not named.
  ASSERT_EQ(comparison->only_b.size(), 1u);
  EXPECT_EQ(comparison->only_b[0]->case_id(), "collective:v1:");
  const auto reversed = CompareJobs(b, a);
  EXPECT_EQ(reversed->both[1].verdict, Verdict::kFaster);
  ExpectGolden("tests/golden/json/compare.json", JsonText(ComparisonJson(a, b, *comparison)));
}

TEST(Compare, CountsWhatIsSlowerBeyondThePercentage) {
  const v1::GetJobResponse a = SweepJob(), b = Other();
  const auto comparison = CompareJobs(a, b);
  EXPECT_EQ(CountSlower(*comparison, 0), 1);  // the first is within noise
  EXPECT_EQ(CountSlower(*comparison, 49), 1);
  EXPECT_EQ(CountSlower(*comparison, 51), 0);
}

TEST(Compare, ACaseThatFailedInBCountsAsSlower) {
  const v1::GetJobResponse a = SweepJob();
  v1::GetJobResponse b = SweepJob();
  b.mutable_cases(2)->set_status(v1::FAILED_CASE);
  const auto comparison = CompareJobs(a, b);
  EXPECT_EQ(comparison->both[2].verdict, Verdict::kNoTime);
  EXPECT_EQ(CountSlower(*comparison, 5), 1);
  const auto reversed = CompareJobs(b, a);
  EXPECT_EQ(CountSlower(*reversed, 5), 0);
}

TEST(Compare, OneNumberHasNoInterval) {
  const v1::GetJobResponse a = SweepJob();
  v1::GetJobResponse b = SweepJob(1.2);
  for (v1::CaseResult& result : *b.mutable_cases()) {
    result.mutable_measurements(0)->mutable_summary()->set_n(1);
  }
  const auto comparison = CompareJobs(a, b);
  EXPECT_EQ(comparison->both[0].verdict, Verdict::kNoNoise);
  EXPECT_EQ(CountSlower(*comparison, 10), 3);  // the percentage alone decides
  EXPECT_EQ(CountSlower(*comparison, 30), 0);
}

TEST(Compare, DifferentBenchmarksAreAnError) {
  const v1::GetJobResponse a = SweepJob(), b = SampleResponse(v1::SUCCEEDED, v1::PASSED);
  EXPECT_EQ(CompareJobs(a, b).status().message(),
            "their numbers do not compare: A is collective v1, B is gemm v1");
}

TEST(ReadJobDocument, IsTheWayBack) {
  for (const v1::GetJobResponse& response : {SweepJob(), SampleResponse(v1::FAILED, v1::WRONG)}) {
    const std::string text = JsonText(JobDocument(response));
    const auto read = ReadJobDocument(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(JsonText(JobDocument(*read)), text);
  }
}

TEST(ReadJobDocument, SaysWhatIsWrong) {
  const auto error = [](absl::string_view text) {
    return std::string(ReadJobDocument(text).status().message());
  };
  EXPECT_EQ(error("{"), "it is no JSON document");
  EXPECT_EQ(error("[]"), "document is not an object");
  EXPECT_EQ(error("{}"), "it has no \"job\": it is no job that -o json wrote");
  EXPECT_EQ(error(R"({"job": 1})"), "document.job is not an object");
  const std::string job = R"({"job": {"id": "j-1", "state": "FAILED"}, "cases": [)";
  EXPECT_EQ(error(job + R"({"case": 7}]})"), "cases[0].case is not a text");
  EXPECT_EQ(error(job + R"({"metrics": {"time": {"ci95": [1]}}}]})"),
            "cases[0].metrics.time.ci95 is not a list of two numbers");
  EXPECT_EQ(error(job + R"({"ranks": [3]}]})"), "cases[0].ranks is not an object");
  EXPECT_EQ(error(R"({"job": {"state": "DONE"}})"), "job.state is not a state of a job");
}

std::string CsvOf(const v1::GetJobResponse& response) {
  std::ostringstream out;
  RenderCsv(CaseCsvTable(response.job(), ListCases(response)), out);
  return out.str();
}

TEST(ReadCaseCsv, IsTheWayBack) {
  for (v1::GetJobResponse response : {SweepJob(), SampleResponse(v1::FAILED, v1::WRONG)}) {
    response.mutable_cases(0)->set_reason("a \"quoted\", split\nreason");
    const std::string text = CsvOf(response);
    const auto read = ReadCaseCsv(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(CsvOf(*read), text);
    EXPECT_EQ(read->job().benchmark_version(), 1);
  }
}

TEST(ReadCaseCsv, SaysWhatIsWrong) {
  const auto error = [](absl::string_view text) {
    return std::string(ReadCaseCsv(text).status().message());
  };
  EXPECT_EQ(error(""), "it has no header");
  EXPECT_EQ(error("a,b\n"), "its header has no \"job_id\": these are no cases of a job");
  const std::string head = "job_id,benchmark,ranks,case_index,case,status,time_n,time_p50 (s)\n";
  EXPECT_EQ(error(head + "j-1,gemm\n"), "line 2: 2 fields, the header has 8");
  EXPECT_EQ(error(head + "j-1,gemm,2,0,gemm:v1:,PASSED,20,fast\n"),
            "line 2: time_p50 \"fast\" is no number");
  EXPECT_EQ(error(head + "j-1,gemm,2,x,gemm:v1:,PASSED,20,1\n"),
            "line 2: case_index \"x\" is no whole number");
  EXPECT_EQ(error(head + "j-1,gemm,2,0,c,PASSED,20,1\nj-2,gemm,2,0,d,PASSED,20,1\n"),
            "line 3: another job than j-1");
  EXPECT_EQ(error(head + "j-1,\"gemm,2\n\n"), "line 2: a quote is not closed");
  EXPECT_TRUE(ReadCaseCsv(head + "j-1,gemm,2,0,gemm:v1:,SKIPPED,,\r\n").ok());
}

TEST(Plot, OfASweepIsTheGoldenOne) {
  const v1::GetJobResponse job = CollectiveJob(
      {CollectiveCase(0, {{"size", "8"}}, 10e-6), CollectiveCase(1, {{"size", "64K"}}, 40e-6),
       CollectiveCase(2, {{"size", "16M"}}, 9e-3),
       CollectiveCase(3, {{"op", "all_to_all"}, {"size", "64"}}, 15e-6),
       CollectiveCase(4, {{"op", "all_to_all"}, {"size", "16M"}}, 20e-3)});
  const auto charts = ChartsOf(job);
  ASSERT_TRUE(charts.ok()) << charts.status();
  ASSERT_EQ(charts->size(), 2u);
  std::string text;
  for (const Chart& chart : *charts) text += RenderPlot(chart, {.width = 80, .height = 16});
  text += RenderPlot(charts->front(), {.width = 60, .height = 10, .utf8 = true});
  ExpectGolden("tests/golden/cli/plot.txt", text);
}

TEST(Plot, TakesTheWidthItIsGiven) {
  const Chart chart = {"time", "s", {{"a", {{8, 1e-6}, {1024, 1e-5}}}}};
  for (const int width : {40, 79, 200}) {
    for (const bool utf8 : {false, true}) {
      std::size_t widest = 0;
      std::istringstream lines(RenderPlot(chart, {.width = width, .utf8 = utf8}));
      for (std::string line; std::getline(lines, line);) {
        widest = std::max(widest, DisplayWidth(line));
      }
      EXPECT_EQ(widest, static_cast<std::size_t>(width));
    }
  }
}

TEST(Plot, OfOnePointAndOfNoneIsNoTrouble) {
  EXPECT_EQ(RenderPlot({"time", "s", {}}, {}), "");
  const std::string one = RenderPlot({"time", "s", {{"a", {{8, 1e-6}}}}}, {});
  EXPECT_EQ(std::count(one.begin(), one.end(), '*'), 2);  // the point and the legend
}

TEST(Charts, LeaveOutBarriersAndWhatHasNoTime) {
  v1::GetJobResponse job = CollectiveJob({CollectiveCase(0, {{"op", "barrier"}}, 3e-6)});
  EXPECT_TRUE(ChartsOf(job)->empty());
  EXPECT_FALSE(ChartsOf(SampleResponse(v1::SUCCEEDED, v1::PASSED)).ok());
}

TEST(Charts, OfTwoJobsAreLabelled) {
  const auto charts = SideBySide(*ChartsOf(SweepJob()), *ChartsOf(SweepJob(2)));
  ASSERT_EQ(charts.size(), 2u);
  ASSERT_EQ(charts[0].curves.size(), 2u);
  EXPECT_EQ(charts[0].curves[0].label, "A all_reduce f32");
  EXPECT_EQ(charts[0].curves[1].label, "B all_reduce f32");
}

}  // namespace
}  // namespace param
