#include "client/output/job_report.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "client/output/case_view.h"
#include "client/output/job_table.h"
#include "client/output/node_table.h"
#include "tests/unit/client/golden.h"
#include "tests/unit/client/samples.h"

namespace param {
namespace {

const absl::Time kNow = absl::FromUnixNanos(kSubmittedNs) + absl::Minutes(5);

std::string Report(const v1::GetJobResponse& response, TextOptions options = {}) {
  std::ostringstream out;
  PrintJobReport(response, options, out);
  return out.str();
}

TEST(JobReport, OfASuccessfulJobIsTheGoldenOne) {
  ExpectGolden("tests/golden/cli/report_succeeded.txt",
               Report(SampleResponse(v1::SUCCEEDED, v1::PASSED)));
}

TEST(JobReport, OfAFailedJobNamesWhatFailedWhere) {
  v1::GetJobResponse response = SampleResponse(v1::FAILED, v1::WRONG);
  v1::Failure* failure = response.mutable_job()->mutable_failure();
  failure->set_code("DATA_LOSS");
  failure->set_phase("verify");
  failure->set_node("n2");
  failure->set_rank(1);
  failure->set_cause("element 17 is 4.5, not 4.25");
  response.mutable_job()->set_oversubscribed(true);
  ExpectGolden("tests/golden/cli/report_failed.txt",
               Report(response, {.wide = true, .indent = ""}));
}

TEST(JobReport, OfAJobThatNeverStartedSaysWhy) {
  v1::GetJobResponse response;
  *response.mutable_job() = SampleJob(v1::CANCELLED);
  response.mutable_job()->clear_nodes();
  response.mutable_job()->set_reason("cancelled by local");
  const std::string text = Report(response);
  EXPECT_NE(text.find("CANCELLED: no cases"), std::string::npos);
  EXPECT_NE(text.find("reason: cancelled by local"), std::string::npos);
  EXPECT_NE(text.find("repeat: paramctl submit gemm --m=256,512 --nodes 2"), std::string::npos);
}

TEST(JobFacts, AreTheGoldenOnes) {
  std::ostringstream out;
  PrintJobFacts(SampleResponse(v1::SUCCEEDED, v1::PASSED), {}, out);
  ExpectGolden("tests/golden/cli/job_show.txt", out.str());
}

TEST(Csv, OfAJobIsTheGoldenOne) {
  const v1::GetJobResponse response = SampleResponse(v1::FAILED, v1::WRONG);
  std::ostringstream out;
  RenderCsv(CaseCsvTable(response.job(), ListCases(response)), out);
  ExpectGolden("tests/golden/cli/job.csv", out.str());
}

TEST(Tables, OfNodesAndJobsAreTheGoldenOnes) {
  std::ostringstream out;
  RenderText(NodesTable({SampleNode("n1", "ready"), SampleNode("n2", "lost")}, kNow), {}, out);
  out << "\n";
  RenderText(BackendsTable(SampleNode("n1", "ready")), {}, out);
  out << "\n";
  RenderText(NodeFactsTable(SampleNode("n1", "ready"), kNow), {.header = false, .indent = ""}, out);
  out << "\n";
  RenderText(NicsTable(SampleNode("n1", "ready")), {}, out);
  out << "\n";
  RenderText(JobsTable({SampleJob(v1::RUNNING), SampleJob(v1::SUCCEEDED)}, kNow), {}, out);
  ExpectGolden("tests/golden/cli/tables.txt", out.str());
}

TEST(ShownParams, AreTheLeadingOnesTheFirstChoiceAndWhatDiffers) {
  const v1::CaseResult a = SampleCase(0, 256, v1::PASSED);
  v1::CaseResult b = SampleCase(1, 256, v1::PASSED);
  (*b.mutable_params())["batch"].set_integer(4);
  EXPECT_EQ(ShownParams(SpecOf("gemm"), {&a, &b}),
            (std::vector<std::string>{"m", "n", "k", "batch", "dtype"}));
}

TEST(ShownParams, OfAnUnknownBenchmarkAreThoseThatDiffer) {
  const v1::CaseResult a = SampleCase(0, 256, v1::PASSED);
  const v1::CaseResult b = SampleCase(1, 512, v1::PASSED);
  EXPECT_EQ(ShownParams(nullptr, {&a, &b}), (std::vector<std::string>{"m", "n"}));
}

TEST(CompareNodes, MarksTheSlowestAgainstTheMedian) {
  const v1::CaseResult result = SampleCase(0, 256, v1::PASSED);
  const std::vector<NodeTime> nodes = CompareNodes(SampleJob(v1::SUCCEEDED), {&result});
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_FALSE(nodes[0].slowest);
  EXPECT_TRUE(nodes[1].slowest);
  EXPECT_NEAR(nodes[1].ratio, 1.25 / 1.125, 1e-12);
}

TEST(CompareNodes, SaysNothingAboutOneNode) {
  v1::CaseResult result = SampleCase(0, 256, v1::PASSED);
  result.mutable_ranks(1)->set_node("n1");
  EXPECT_TRUE(CompareNodes(SampleJob(v1::SUCCEEDED), {&result}).empty());
}

TEST(NodeTimes, OfManyNodesAreTheSlowest) {
  v1::Job job = SampleJob(v1::SUCCEEDED);
  v1::CaseResult result;
  job.clear_nodes();
  for (int i = 0; i < 20; ++i) {
    const std::string node = absl::StrCat("n", i);
    job.add_nodes(node);
    v1::RankStatus* rank = result.add_ranks();
    rank->set_rank(i);
    rank->set_node(node);
    AddMeasurement(&result, i, "time", "s", 1 + i * 0.01);
  }
  const Table table = NodeTimeTable(job, {&result}, 3);
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(std::get<std::string>(table.rows[0][0].value), "n19");
}

TEST(FailureText, HasPhaseNodeRankCauseAddressAndErrno) {
  v1::Failure failure;
  failure.set_code("UNAVAILABLE");
  failure.set_phase("comm_init");
  failure.set_node("n3");
  failure.set_rank(2);
  failure.set_cause("connection refused");
  failure.set_address("10.0.0.3:4711");
  failure.set_error_number(111);
  EXPECT_EQ(FailureText(failure),
            "comm_init on n3 (rank 2): UNAVAILABLE: connection refused (10.0.0.3:4711, errno 111)");
}

TEST(Age, HasOneUnit) {
  const auto ago = [](absl::Duration age) { return AgeText(absl::ToUnixNanos(kNow - age), kNow); };
  EXPECT_EQ(ago(absl::Seconds(119)), "119s");
  EXPECT_EQ(ago(absl::Minutes(119)), "119m");
  EXPECT_EQ(ago(absl::Hours(47)), "47h");
  EXPECT_EQ(ago(absl::Hours(480)), "20d");
  EXPECT_EQ(AgeText(0, kNow), "-");
}

}  // namespace
}  // namespace param
