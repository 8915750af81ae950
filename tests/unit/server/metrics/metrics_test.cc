#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "proto/daemon/process_stats.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/promtool.h"

namespace param {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  std::string Page() const { return prometheus::TextSerializer().Serialize(metrics_.Collect()); }

  FakeClock clock_;
  ServerMetrics metrics_{{"gemm", "all_reduce"}, clock_};
};

Job GemmJob() {
  Job job;
  job.job_id = "j-1";
  job.spec.benchmark = "gemm";
  job.state = JobState::kTimedOut;
  job.timeline.submitted = 1'000'000'000;
  job.timeline.placed = 3'000'000'000;
  job.timeline.finished = 13'000'000'000;
  return job;
}

// A passed case on two nodes, three ranks.
CaseRecord GemmCase() {
  CaseRecord record;
  record.planned.params["dtype"] = std::string("f32");
  record.ended = true;
  record.status = line::CaseStatus::kPassed;
  record.ranks = {{0, "n1", line::CaseStatus::kPassed, ""},
                  {1, "n1", line::CaseStatus::kPassed, ""},
                  {2, "n2", line::CaseStatus::kPassed, ""}};
  for (int rank = -1; rank <= 2; ++rank) {
    Measurement m;
    m.rank = rank;
    m.metric = "flops";
    m.summary.p50 = rank < 0 ? 7 : 100 + rank;
    record.measurements.push_back(m);
  }
  return record;
}

TEST_F(MetricsTest, PromtoolHasNothingToSay) {
  metrics_.NodeState("n1", "ready", true);
  metrics_.Heartbeat("n1", 5'000'000'000);
  metrics_.CaseStored(GemmJob(), GemmCase());
  metrics_.JobPlaced(GemmJob());
  metrics_.JobFinished(GemmJob());
  metrics_.RpcHandled("JobService/Submit", "OK", 0.01);
  metrics_.DatabaseCommitted(0.01);
  auto families = metrics_.Collect();
  for (auto& family : ProcessMetrics()) families.push_back(family);
  const std::string complaints = PromtoolComplaints(families);
  if (complaints == "no promtool") GTEST_SKIP() << "promtool is not installed";
  EXPECT_EQ(complaints, "");
}

TEST_F(MetricsTest, KnownSeriesStartAtZero) {
  const std::string page = Page();
  for (const char* line :
       {"param_server_jobs_finished_total{benchmark=\"gemm\",status=\"timed_out\"} 0",
        "param_server_jobs_submitted_total{benchmark=\"all_reduce\",source=\"cli\"} 0",
        "param_server_jobs{state=\"queued\"} 0", "param_server_agents{state=\"lost\"} 0",
        "param_server_db_errors_total{code=\"full\"} 0",
        "param_server_events_dropped_total{sink=\"watch\"} 0",
        "param_server_queue_oldest_timestamp_seconds 0",
        "param_server_metrics_dropped_series_total{family=\"param_server_result_value\"} 0"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  EXPECT_THAT(page, HasSubstr("param_server_build_info{"));
}

TEST_F(MetricsTest, AJobIsCountedFromSubmissionToEnd) {
  metrics_.JobSubmitted("gemm", "cli");
  metrics_.JobPlaced(GemmJob());
  metrics_.JobFinished(GemmJob());
  metrics_.QueueState(3, 2, 1, 2'500'000'000);
  metrics_.PlacementFailed("no_nodes");
  metrics_.EventsDropped("watch", 4);
  const std::string page = Page();
  for (const char* line :
       {"jobs_submitted_total{benchmark=\"gemm\",source=\"cli\"} 1",
        "jobs_finished_total{benchmark=\"gemm\",status=\"timed_out\"} 1",
        "queue_wait_seconds_sum{source=\"cli\"} 2",
        "job_duration_seconds_sum{benchmark=\"gemm\"} 10", "jobs{state=\"queued\"} 3",
        "jobs{state=\"running\"} 1", "queue_oldest_timestamp_seconds 2.5",
        "placement_failures_total{reason=\"no_nodes\"} 1",
        "events_dropped_total{sink=\"watch\"} 4"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("param_server_", line)));
  }
}

TEST_F(MetricsTest, AJobThatNeverRanHasNoDuration) {
  Job job = GemmJob();
  job.timeline.placed = 0;
  metrics_.JobFinished(job);
  EXPECT_THAT(Page(), HasSubstr("job_duration_seconds_count{benchmark=\"gemm\"} 0"));
}

TEST_F(MetricsTest, ResultsAreExportedByBenchmarkAndByNode) {
  metrics_.NodeState("n1", "busy", true);
  metrics_.NodeState("n2", "busy", true);
  metrics_.CaseStored(GemmJob(), GemmCase());
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("param_server_result_value{benchmark=\"gemm\",dtype=\"f32\","
                              "metric=\"flops\"} 7"));
  EXPECT_THAT(page, HasSubstr("gemm_flops_per_second{node=\"n1\",dtype=\"f32\"} 201"));
  EXPECT_THAT(page, HasSubstr("gemm_flops_per_second{node=\"n2\",dtype=\"f32\"} 102"));
}

TEST_F(MetricsTest, WrongAndUndefinedNumbersAreNotExported) {
  CaseRecord wrong = GemmCase();
  wrong.status = line::CaseStatus::kWrong;
  metrics_.CaseStored(GemmJob(), wrong);
  CaseRecord undefined = GemmCase();
  for (Measurement& m : undefined.measurements) {
    m.summary.p50 = std::numeric_limits<double>::quiet_NaN();
  }
  metrics_.CaseStored(GemmJob(), undefined);
  EXPECT_THAT(Page(), Not(HasSubstr("param_server_result_value{")));
}

TEST_F(MetricsTest, ANodeThatLeavesTakesItsSeriesWithIt) {
  metrics_.NodeState("n1", "ready", true);
  metrics_.Heartbeat("n1", 7'000'000'000);
  EXPECT_THAT(Page(), HasSubstr("param_server_agent_up{node=\"n1\"} 1"));
  EXPECT_THAT(Page(), HasSubstr("agent_last_heartbeat_timestamp_seconds{node=\"n1\"} 7"));
  EXPECT_THAT(Page(), HasSubstr("param_server_agents{state=\"ready\"} 1"));
  metrics_.NodeGone("n1");
  metrics_.Heartbeat("n1", 8'000'000'000);
  EXPECT_THAT(Page(), Not(HasSubstr("n1")));
  EXPECT_THAT(Page(), HasSubstr("param_server_agents{state=\"ready\"} 0"));
}

TEST_F(MetricsTest, AboveTheLimitOnlySumsOfNodesAreExported) {
  for (std::size_t i = 0; i <= NodeMetrics::kMaxNodes; ++i) {
    metrics_.NodeState(absl::StrCat("n", i), "ready", true);
  }
  EXPECT_THAT(Page(), HasSubstr("param_server_agents{state=\"ready\"} 513"));
  EXPECT_THAT(Page(), Not(HasSubstr("agent_up{")));
  metrics_.NodeGone("n0");
  EXPECT_THAT(Page(), HasSubstr("agent_up{node=\"n512\"} 1"));
}

TEST_F(MetricsTest, LabelsFromOutsideAreBounded) {
  for (int i = 0; i < 1000; ++i) metrics_.JobSubmitted("gemm", absl::StrCat("source", i));
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("metrics_dropped_series_total{family="
                              "\"param_server_jobs_submitted_total\"} 490"));
  EXPECT_THAT(page, Not(HasSubstr("source999")));
}

TEST_F(MetricsTest, CallsAndTheDatabaseAreCounted) {
  metrics_.RpcHandled("JobService/Submit", "NOT_FOUND", 0.5);
  metrics_.DatabaseCommitted(0.25);
  metrics_.DatabaseFault("full");
  metrics_.DatabaseSizes(100, 50);
  const std::string page = Page();
  for (const char* line : {"rpc_handled_total{code=\"not_found\",method=\"JobService/Submit\"} 1",
                           "rpc_duration_seconds_sum{method=\"JobService/Submit\"} 0.5",
                           "db_write_duration_seconds_sum 0.25", "db_errors_total{code=\"full\"} 1",
                           "db_size_bytes 100", "db_wal_size_bytes 50"}) {
    EXPECT_THAT(page, HasSubstr(absl::StrCat("param_server_", line)));
  }
}

}  // namespace
}  // namespace param
