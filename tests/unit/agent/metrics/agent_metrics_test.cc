#include "agent/metrics/agent_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "proto/daemon/process_stats.h"
#include "tests/fakes/promtool.h"

namespace param {
namespace {

using ::testing::HasSubstr;

class AgentMetricsTest : public ::testing::Test {
 protected:
  std::string Page() const { return prometheus::TextSerializer().Serialize(metrics_.Collect()); }

  AgentMetrics metrics_{{"n1", "A CPU", "", ""}, {"gemm"}};
};

TEST_F(AgentMetricsTest, PromtoolHasNothingToSay) {
  auto families = metrics_.Collect();
  for (auto& family : ProcessMetrics()) families.push_back(family);
  const std::string complaints = PromtoolComplaints(families);
  if (complaints == "no promtool") GTEST_SKIP() << "promtool is not installed";
  EXPECT_EQ(complaints, "");
}

TEST_F(AgentMetricsTest, KnownSeriesStartAtZero) {
  EXPECT_THAT(Page(), HasSubstr("param_agent_attempts_total{benchmark=\"gemm\","
                                "status=\"succeeded\"} 0"));
  EXPECT_THAT(Page(), HasSubstr("param_agent_reconnects_total{reason=\"lost\"} 0"));
  EXPECT_THAT(Page(), HasSubstr("cpu_model=\"A CPU\""));
}

TEST_F(AgentMetricsTest, WhatHappensIsCounted) {
  metrics_.AttemptEnded("gemm", "failed", 2);
  metrics_.SetConnected(true);
  metrics_.Reconnected("lost");
  metrics_.SetSpool(3, 400);
  metrics_.SetWorkers(2);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("attempts_total{benchmark=\"gemm\",status=\"failed\"} 1"));
  EXPECT_THAT(page, HasSubstr("attempt_duration_seconds_sum{benchmark=\"gemm\"} 2"));
  EXPECT_THAT(page, HasSubstr("param_agent_coordinator_connected 1"));
  EXPECT_THAT(page, HasSubstr("reconnects_total{reason=\"lost\"} 1"));
  EXPECT_THAT(page, HasSubstr("param_agent_spool_results 3"));
  EXPECT_THAT(page, HasSubstr("param_agent_spool_bytes 400"));
  EXPECT_THAT(page, HasSubstr("param_agent_workers 2"));
}

TEST_F(AgentMetricsTest, UnknownLabelsCountAsOther) {
  metrics_.AttemptEnded("mystery", "odd", 1);
  metrics_.Reconnected("moon");
  EXPECT_THAT(Page(), HasSubstr("attempts_total{benchmark=\"other\",status=\"other\"} 1"));
  EXPECT_THAT(Page(), HasSubstr("reconnects_total{reason=\"other\"} 1"));
}

}  // namespace
}  // namespace param
