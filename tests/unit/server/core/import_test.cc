#include "server/core/import.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "tests/unit/server/core/coordinator_fixture.h"

namespace param {
namespace {

Measurement Number(const std::string& metric, const std::string& unit, double value) {
  Measurement m;
  m.metric = metric;
  m.unit = unit;
  m.summary.n = 1;
  m.summary.min = m.summary.p50 = m.summary.max = m.summary.mean = value;
  return m;
}

ImportRequest Request() {
  ImportRequest request;
  request.benchmark = "collective";
  request.name = "rack 7";
  request.format = "nccl-tests";
  request.backend = "cuda+nccl";
  request.ranks = 4;
  request.nodes = {"hostA", "hostB"};
  request.environment = {{"nccl_tests", "2.19.6"}};
  for (const char* size : {"8", "1024"}) {
    ImportedCase& one = request.cases.emplace_back();
    one.params = {{"op", "all_reduce"}, {"size", size}};
    one.info = {{"statistic", "mean of 20 iterations"}};
    one.measurements = {Number("time", "s", 20e-6), Number("algbw", "B/s", 4e5)};
  }
  return request;
}

std::string Refusal(const ImportRequest& request) {
  const auto plan = PlanImport(request, "local", "r", "j-1", 7);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(PlanImport, MakesAJobThatHasEnded) {
  const auto plan = PlanImport(Request(), "", "r", "j-1", 7);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Job& job = plan->job;
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.owner, "local");
  EXPECT_EQ(job.spec.source, "import:nccl-tests");
  EXPECT_EQ(job.nodes, (std::vector<std::string>{"hostA", "hostB"}));
  EXPECT_EQ(job.attempt, 1);
  EXPECT_EQ(job.timeline.finished, 7);
  EXPECT_EQ(job.cases_done, 2);
  EXPECT_EQ(job.benchmark_version, 1);
}

TEST(PlanImport, AWrongCaseFailsTheJob) {
  ImportRequest request = Request();
  request.cases[1].status = line::CaseStatus::kWrong;
  const auto plan = PlanImport(request, "", "r", "j-1", 7);
  EXPECT_EQ(plan->job.state, JobState::kFailed);
  EXPECT_EQ(plan->job.reason, "1 case wrong");
}

TEST(PlanImport, ChecksEveryField) {
  const auto with = [](const std::function<void(ImportRequest&)>& change) {
    ImportRequest request = Request();
    change(request);
    return Refusal(request);
  };
  EXPECT_EQ(with([](ImportRequest& r) { r.benchmark = "gem"; }),
            "no benchmark \"gem\"; did you mean \"gemm\"?");
  EXPECT_EQ(with([](ImportRequest& r) { r.format = "A b"; }),
            "format: \"A b\" is no name of lower-case letters, digits and -");
  EXPECT_EQ(with([](ImportRequest& r) { r.name = std::string(201, 'x'); }),
            "name: 201 characters, at most 200 are kept");
  EXPECT_EQ(with([](ImportRequest& r) { r.ranks = 0; }), "ranks: 0 is outside 1..10000000");
  EXPECT_EQ(with([](ImportRequest& r) { r.ranks = 1; }), "nodes: 2 names for 1 ranks");
  EXPECT_EQ(with([](ImportRequest& r) { r.cases.clear(); }), "cases: 0 is outside 1..10000");
  EXPECT_EQ(with([](ImportRequest& r) { r.backend.clear(); }),
            "backend: give the name of what ran, like \"cuda+nccl\"");
  EXPECT_EQ(with([](ImportRequest& r) { r.environment["x"] = std::string(5000, 'y'); }),
            "environment: x: 5001 characters, at most 4096 are kept");
}

TEST(PlanImport, NamesTheCaseThatIsWrong) {
  const auto with = [](const std::function<void(ImportedCase&)>& change) {
    ImportRequest request = Request();
    change(request.cases[1]);
    return Refusal(request);
  };
  EXPECT_EQ(with([](ImportedCase& c) { c.params["size"] = "8,16"; }),
            "case 1: its parameters mean 2 cases, not one");
  EXPECT_EQ(with([](ImportedCase& c) { c.params["size"] = "8"; }),
            "case 1 is case 0 again: collective:v1:size=8");
  EXPECT_NE(with([](ImportedCase& c) { c.params["op"] = "allreduce"; }).find("did you mean"),
            std::string::npos);
  EXPECT_EQ(with([](ImportedCase& c) { c.measurements[1].metric = "speed"; }),
            "case 1: collective has no metric \"speed\"");
  EXPECT_EQ(with([](ImportedCase& c) { c.measurements[0].unit = "us"; }),
            "case 1: time is in s, not in \"us\"");
  EXPECT_EQ(with([](ImportedCase& c) { c.measurements[0].rank = 3; }),
            "case 1: time: only numbers over all ranks and without labels are kept");
  EXPECT_EQ(with([](ImportedCase& c) { c.measurements[0].summary.p50 = 0; }),
            "case 1: time: 0 of 1 samples is no result");
  EXPECT_EQ(with([](ImportedCase& c) {
              c.measurements[1].summary.p50 = std::numeric_limits<double>::quiet_NaN();
            }),
            "case 1: algbw: nan of 1 samples is no result");
  EXPECT_EQ(with([](ImportedCase& c) { c.measurements.clear(); }), "case 1: it has no time");
  EXPECT_EQ(with([](ImportedCase& c) { c.status = line::CaseStatus::kSkipped; }),
            "case 1: an imported case is PASSED or WRONG");
}

class CoordinatorImport : public CoordinatorTest {
 protected:
  absl::StatusOr<Job> Import(const ImportRequest& request, const std::string& request_id) {
    absl::StatusOr<Job> result = absl::UnknownError("no reply");
    coordinator_->Import("local", request_id, request,
                         [&result](absl::StatusOr<Job> job) { result = std::move(job); });
    Drain();
    return result;
  }
};

TEST_F(CoordinatorImport, IsStoredAndListedLikeAnyResult) {
  const auto job = Import(Request(), "r1");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto cases = store_.GetCases(job->job_id);
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 2u);
  EXPECT_TRUE((*cases)[0].ended);
  EXPECT_EQ((*cases)[0].info.at("statistic"), "mean of 20 iterations");
  EXPECT_EQ((*cases)[0].measurements.size(), 2u);
  ResultFilter filter;
  filter.node = "hostB";
  EXPECT_EQ(store_.ListResults(filter)->size(), 2u);
  EXPECT_EQ((*store_.GetAttempts(job->job_id))[0].ranks.size(), 4u);
  EXPECT_EQ((*store_.GetEnvironment({job->job_id, 1}))[0].facts.at("nccl_tests"), "2.19.6");
}

TEST_F(CoordinatorImport, IsIdempotentByRequest) {
  const auto first = Import(Request(), "r1"), again = Import(Request(), "r1");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(first->job_id, again->job_id);
  EXPECT_NE(Import(Request(), "r2")->job_id, first->job_id);
  EXPECT_EQ(store_.ListResults({})->size(), 4u);
  EXPECT_EQ(Import(Request(), "").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorImport, ARestartedCoordinatorLeavesItAlone) {
  const std::string id = Import(Request(), "r1")->job_id;
  Restart();
  EXPECT_EQ(store_.GetJob(id)->state, JobState::kSucceeded);
}

}  // namespace
}  // namespace param
