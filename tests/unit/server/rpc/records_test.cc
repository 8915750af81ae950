#include "server/rpc/records.h"

#include <gtest/gtest.h>

namespace param {
namespace {

TEST(Records, EveryStateOfAJobComesBack) {
  for (const JobState state :
       {JobState::kQueued, JobState::kStarting, JobState::kRunning, JobState::kSucceeded,
        JobState::kFailed, JobState::kCancelled, JobState::kTimedOut}) {
    Job job;
    job.state = state;
    const v1::Job sent = JobToProto(job);
    EXPECT_EQ(v1::JobState_Name(sent.state()), std::string(JobStateName(state)));
    const auto back = StateFromProto(sent.state());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, state);
  }
  EXPECT_EQ(StateFromProto(v1::JOB_STATE_UNSPECIFIED).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Records, SpecComesBackWhole) {
  JobSpec spec;
  spec.benchmark = "gemm";
  spec.params = {{"m", "1:9:+2"}, {"dtype", "f32,f64"}};
  spec.nodes = 3;
  spec.ranks_per_node = 2;
  spec.backend = "cuda+nccl";
  spec.node_names = {"n1", "n2", "n3"};
  spec.selector = {{"rack", "r1"}};
  spec.priority = -4;
  spec.timeout_ns = 5;
  spec.retries = 6;
  spec.name = "nightly";
  spec.no_wait = true;
  spec.phase_deadlines_ns = {{"timed", 7}};
  spec.fake_script = "{}";
  spec.source = "schedule";
  Job job;
  job.spec = spec;
  EXPECT_EQ(SpecFromProto(JobToProto(job).spec()), spec);
}

TEST(Records, SpecWithoutBackendAndSourceHasTheirDefaults) {
  const JobSpec spec = SpecFromProto(v1::JobSpec());
  EXPECT_EQ(spec.backend, "auto");
  EXPECT_EQ(spec.source, "cli");
}

TEST(Records, JobWithoutFailureHasNone) {
  Job job;
  EXPECT_FALSE(JobToProto(job).has_failure());
  job.failure = Failure{"ABORTED", "timed", "n1", 2, "killed", "10.0.0.1:1", 9};
  const v1::Job sent = JobToProto(job);
  ASSERT_TRUE(sent.has_failure());
  EXPECT_EQ(sent.failure().rank(), 2);
  EXPECT_EQ(sent.failure().cause(), "killed");
}

TEST(Records, CaseThatHasNotEndedHasNoStatus) {
  CaseRecord record;
  record.index = 4;
  record.planned.id = "gemm:v1:m=4";
  record.planned.params = {{"m", std::int64_t{4}}, {"dtype", std::string("f32")}};
  record.planned.set_row = "smoke/001";
  v1::CaseResult sent = CaseToProto(record);
  EXPECT_EQ(sent.case_index(), 4);
  EXPECT_EQ(sent.status(), v1::CASE_STATUS_UNSPECIFIED);
  EXPECT_EQ(sent.params().at("m").integer(), 4);
  EXPECT_EQ(sent.params().at("dtype").text(), "f32");
  EXPECT_EQ(sent.set_row(), "smoke/001");
  record.ended = true;
  for (const auto& [status, expected] : {std::pair{line::CaseStatus::kPassed, v1::PASSED},
                                         std::pair{line::CaseStatus::kWrong, v1::WRONG},
                                         std::pair{line::CaseStatus::kSkipped, v1::SKIPPED},
                                         std::pair{line::CaseStatus::kFailed, v1::FAILED_CASE}}) {
    record.status = status;
    EXPECT_EQ(CaseToProto(record).status(), expected);
  }
}

TEST(Records, ProgressIsAnEventOfItsOwn) {
  JobEvent event;
  event.seq = 9;
  event.job_id = "j-1";
  event.time_ns = 8;
  event.kind = Progress{"warmup", 3, 1000};
  const v1::JobEvent sent = EventToProto(event);
  EXPECT_EQ(sent.seq(), 9u);
  EXPECT_EQ(sent.job_id(), "j-1");
  EXPECT_EQ(sent.time_ns(), 8);
  ASSERT_TRUE(sent.has_progress());
  EXPECT_EQ(sent.progress().phase(), "warmup");
  EXPECT_EQ(sent.progress().case_index(), 3);
  EXPECT_EQ(sent.progress().samples(), 1000);
}

TEST(Records, InventoryComesBackAndIsKeptAsJson) {
  v1::Inventory inventory;
  inventory.set_kernel("6.1");
  inventory.set_cpu_model("a model");
  inventory.set_governor("performance");
  inventory.set_sockets(2);
  inventory.set_numa_nodes(4);
  v1::Nic& nic = *inventory.add_nics();
  nic.set_name("eth0");
  nic.set_driver("mlx5");
  nic.set_speed_bits_per_second(100'000'000'000);
  nic.set_state("up");
  v1::BackendStatus& cuda = *inventory.add_backends();
  cuda.set_name("cuda");
  cuda.set_installed(true);
  cuda.set_reason("no driver");
  cuda.set_rank_per_device(true);
  cuda.set_device_memory_bytes(80);
  (*inventory.mutable_libraries())["onednn"] = "2.6.0";
  NodeView view;
  view.inventory = InventoryFromProto(inventory);
  EXPECT_EQ(NodeToProto(view).inventory().SerializeAsString(), inventory.SerializeAsString());
  const std::string json = InventoryJson(inventory);
  EXPECT_NE(json.find("\"cpu_model\":\"a model\""), std::string::npos) << json;
}

}  // namespace
}  // namespace param
