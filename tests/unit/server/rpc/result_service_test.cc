#include "server/rpc/result_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/rpc/sample_chunks.h"
#include "tests/unit/server/rpc/rpc_fixture.h"

namespace param {
namespace {

using testing::ElementsAre;

class ResultServiceTest : public RpcTest {
 protected:
  absl::StatusOr<std::vector<v1::SampleBlob>> Samples(const std::string& job_id) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::SamplesRequest request;
    request.set_job_id(job_id);
    const auto stream = results_->Samples(&context, request);
    std::vector<v1::SampleBlob> blobs;
    v1::SampleBlob blob;
    while (stream->Read(&blob)) blobs.push_back(blob);
    const absl::Status status = FromGrpc(stream->Finish());
    if (!status.ok()) return status;
    return blobs;
  }
  std::vector<v1::ResultRow> Results(const v1::ListResultsRequest& request) {
    const auto response = Call(*results_, &v1::ResultService::Stub::List, request);
    EXPECT_TRUE(response.ok()) << response.status();
    if (!response.ok()) return {};
    return {response->results().begin(), response->results().end()};
  }
};

TEST_F(ResultServiceTest, AllSamplesOfAJobAreStreamedInOrder) {
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(1, "1:20:+1"));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = agent->AwaitStart().key();
  agent->Say(key, 0, Bringup());
  for (int i = 0; i < 20; ++i) {
    agent->Say(key, 0,
               {line::Samples{i, "time", "s", {{"phase", "timed"}}, {0.25, 0.5 + i}},
                line::CaseEnd{i, line::CaseStatus::kPassed, "", {}, {}}});
  }
  agent->Say(key, 0, {line::Done{}});
  ASSERT_TRUE(agent->AwaitAck(key, 0));
  agent->EndAttempt(key);
  WatchToEnd(job->job_id());
  const auto blobs = Samples(job->job_id());
  ASSERT_TRUE(blobs.ok()) << blobs.status();
  ASSERT_EQ(blobs->size(), 20u);
  for (int i = 0; i < 20; ++i) {
    const v1::SampleBlob& blob = (*blobs)[static_cast<std::size_t>(i)];
    EXPECT_EQ(blob.case_index(), i);
    EXPECT_EQ(blob.rank(), 0);
    EXPECT_EQ(blob.metric(), "time");
    EXPECT_EQ(blob.labels().at("phase"), "timed");
    EXPECT_THAT(blob.values(), ElementsAre(0.25, 0.5 + i));
  }
}

TEST_F(ResultServiceTest, SamplesOfManyChunksAreAllStreamed) {
  const auto agent = Connected("n1");
  constexpr int kCases = 12, kSamples = 60'000;  // 470 KiB a case: two chunks
  static_assert(kCases * kSamples * sizeof(double) > SampleChunks::kChunkBytes);
  const auto job = Submit(Gemm(1, absl::StrCat("1:", kCases, ":+1")));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = agent->AwaitStart().key();
  agent->Say(key, 0, Bringup());
  for (int i = 0; i < kCases; ++i) {
    agent->Say(key, 0,
               {line::Samples{i, "time", "s", {}, std::vector<double>(kSamples, 0.5 + i)},
                line::CaseEnd{i, line::CaseStatus::kPassed, "", {}, {}}});
  }
  agent->Say(key, 0, {line::Done{}});
  ASSERT_TRUE(agent->AwaitAck(key, 0));
  agent->EndAttempt(key);
  WatchToEnd(job->job_id());
  const auto blobs = Samples(job->job_id());
  ASSERT_TRUE(blobs.ok()) << blobs.status();
  ASSERT_EQ(blobs->size(), static_cast<std::size_t>(kCases));
  for (int i = 0; i < kCases; ++i) {
    const v1::SampleBlob& blob = (*blobs)[static_cast<std::size_t>(i)];
    EXPECT_EQ(blob.values_size(), kSamples);
    EXPECT_EQ(blob.values(0), 0.5 + i);
  }
}

TEST_F(ResultServiceTest, SamplesOfAnUnknownJobAreNotFound) {
  EXPECT_EQ(Samples("j-nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ResultServiceTest, ResultsOfFinishedJobsAreListedNewestFirst) {
  const auto agent = Connected("n1");
  const std::string older = FinishedJob(*agent), newer = FinishedJob(*agent);
  ASSERT_TRUE(Submit(Gemm(9)).ok());  // waits: not a result
  v1::ListResultsRequest request;
  auto rows = Results(request);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].job_id(), newer);
  EXPECT_EQ(rows[1].job_id(), older);
  EXPECT_EQ(rows[0].benchmark(), "gemm");
  EXPECT_EQ(rows[0].backend(), "cpu");
  EXPECT_EQ(rows[0].ranks(), 1);
  EXPECT_THAT(rows[0].nodes(), ElementsAre("n1"));
  EXPECT_GE(rows[0].finished_ns(), rows[1].finished_ns());
  EXPECT_EQ(rows[0].result().status(), v1::PASSED);
  request.set_limit(1);
  EXPECT_EQ(Results(request).size(), 1u);
}

TEST_F(ResultServiceTest, ResultsAreFilteredByBenchmarkCaseAndNode) {
  const auto agent = Connected("n1");
  FinishedJob(*agent);
  v1::ListResultsRequest request;
  request.set_benchmark("gemm");
  request.set_node("n1");
  const auto rows = Results(request);
  ASSERT_EQ(rows.size(), 1u);
  request.set_case_id(rows[0].result().case_id());
  EXPECT_EQ(Results(request).size(), 1u);
  request.set_case_id("gemm:v1:m=7");
  EXPECT_TRUE(Results(request).empty());
  request.clear_case_id();
  request.set_node("n2");
  EXPECT_TRUE(Results(request).empty());
  request.clear_node();
  request.set_benchmark("another");
  EXPECT_TRUE(Results(request).empty());
}

v1::ImportRequest SmallImport() {
  v1::ImportRequest request;
  request.mutable_principal()->set_name("ann");
  request.set_request_id("import-1");
  request.set_benchmark("collective");
  request.set_format("osu");
  request.set_backend("cpu+mpi");
  request.set_ranks(2);
  request.add_nodes("hostA");
  v1::ImportedCase* one = request.add_cases();
  (*one->mutable_params())["size"] = "64";
  one->set_status(v1::PASSED);
  (*one->mutable_info())["statistic"] = "mean of 20 iterations";
  v1::Measurement* time = one->add_measurements();
  time->set_rank(-1);
  time->set_metric("time");
  time->set_unit("s");
  time->mutable_summary()->set_n(1);
  time->mutable_summary()->set_p50(2e-6);
  return request;
}

TEST_F(ResultServiceTest, ImportedResultsAreAJobLikeAnyOther) {
  const auto imported = Call(*results_, &v1::ResultService::Stub::Import, SmallImport());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto again = Call(*results_, &v1::ResultService::Stub::Import, SmallImport());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job_id(), imported->job_id());
  v1::ListResultsRequest request;
  request.set_node("hostA");
  const auto rows = Results(request);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].job_id(), imported->job_id());
  EXPECT_EQ(rows[0].result().case_id(), "collective:v1:size=64");
  EXPECT_EQ(rows[0].result().info().at("statistic"), "mean of 20 iterations");
  v1::GetJobRequest get;
  get.set_job_id(imported->job_id());
  get.set_with_cases(true);
  const auto job = Call(*jobs_, &v1::JobService::Stub::Get, get);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->job().state(), v1::SUCCEEDED);
  EXPECT_EQ(job->job().spec().source(), "import:osu");
  EXPECT_EQ(job->job().owner(), "ann");
  EXPECT_EQ(job->cases(0).measurements(0).summary().p50(), 2e-6);
  // Nothing goes on: watching it ends at once.
  WatchToEnd(imported->job_id());
}

TEST_F(ResultServiceTest, ABadImportIsRejectedWithItsCase) {
  v1::ImportRequest request = SmallImport();
  request.mutable_cases(0)->set_status(v1::SKIPPED);
  const auto rejected = Call(*results_, &v1::ResultService::Stub::Import, request);
  EXPECT_EQ(rejected.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(rejected.status().message()).find("case 0: "), std::string::npos);
}

}  // namespace
}  // namespace param
