#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/core/coordinator_fixture.h"

namespace param {
namespace {

using testing::HasSubstr;

TEST_F(CoordinatorTest, RunsAJobOnTwoNodesToItsEnd) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  ASSERT_TRUE(job.ok()) << job.status();
  const AttemptKey key{job->job_id, 1};
  ASSERT_EQ(n1->Sent<StartAttempt>().size(), 1u);
  EXPECT_EQ(n1->Sent<StartAttempt>()[0].places[0].rank, 0);
  EXPECT_EQ(n2->Sent<StartAttempt>()[0].places[0].rank, 1);
  EXPECT_EQ(n2->Sent<StartAttempt>()[0].ranks, 2);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kStarting);
  RunRank(n1, key, 0);
  EXPECT_EQ(Stored(job->job_id).cases_done, 0);
  RunRank(n2, key, 1);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kRunning);
  End(n1, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kRunning);
  End(n2, key);
  const Job ended = Stored(job->job_id);
  EXPECT_EQ(ended.state, JobState::kSucceeded);
  EXPECT_EQ(ended.nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_GT(ended.timeline.first_timed, 0);
  const auto cases = store_.GetCases(job->job_id);
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ((*cases)[0].status, line::CaseStatus::kPassed);
  EXPECT_TRUE(store_.GetRankEvents(key)->empty());  // folded into results
}

TEST_F(CoordinatorTest, PoolsSamplesOfAllRanks) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  const AttemptKey key{job->job_id, 1};
  RunRank(n1, key, 0);
  RunRank(n2, key, 1);
  const auto cases = store_.GetCases(job->job_id);
  for (const Measurement& m : (*cases)[0].measurements) {
    if (m.rank != -1 || m.metric != "time") continue;
    EXPECT_EQ(m.summary.n, 6);
    EXPECT_DOUBLE_EQ(m.summary.p50, 1.0);
  }
}

TEST_F(CoordinatorTest, RepeatedRequestGivesTheSameJob) {
  const auto first = Submit(Gemm(1), "again");
  const auto second = Submit(Gemm(1), "again");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->job_id, second->job_id);
  Restart();
  EXPECT_EQ(Submit(Gemm(1), "again")->job_id, first->job_id);
}

TEST_F(CoordinatorTest, RejectsWhatCannotBeRight) {
  const auto n1 = Connected("n1");
  JobSpec spec = Gemm(1);
  spec.benchmark = "gem";
  EXPECT_THAT(std::string(Submit(spec).status().message()), HasSubstr("gemm"));
  spec = Gemm(0);
  EXPECT_THAT(std::string(Submit(spec).status().message()), HasSubstr("nodes: 0 is outside 1.."));
  spec = Gemm(2);
  spec.node_names = {"n1", "n1"};
  EXPECT_THAT(std::string(Submit(spec).status().message()), HasSubstr("\"n1\" is named twice"));
  spec = Gemm(1);
  spec.params["m"] = "-3";
  EXPECT_EQ(Submit(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Gemm(1);
  spec.phase_deadlines_ns = {{"tmied", 1}};
  EXPECT_EQ(Submit(spec).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(n1->Sent<StartAttempt>().empty());
}

TEST_F(CoordinatorTest, RejectsAnInjectionIntoARankTheJobHasNotWithBothNumbers) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  JobSpec spec = Gemm(2);
  spec.params["inject"] = "flip@2:0";
  EXPECT_EQ(
      Submit(spec).status(),
      absl::InvalidArgumentError("--inject: rank 2 is not one of the job's 2 ranks (0 to 1)"));
  spec.ranks_per_node = 3;
  EXPECT_TRUE(Submit(spec).ok());
  spec.params["inject"] = "flip@6:0";
  EXPECT_EQ(
      Submit(spec).status(),
      absl::InvalidArgumentError("--inject: rank 6 is not one of the job's 6 ranks (0 to 5)"));
  for (const char* text : {"flip", "flip@0", "flip@-1:0", "flip@0:x", "flop@0:0"}) {
    spec.params["inject"] = text;
    const absl::Status status = Submit(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not flip@RANK:INDEX"));
  }
}

TEST_F(CoordinatorTest, AnInjectionWaitsForTheNodesThatSayHowManyRanksThereAre) {
  JobSpec spec = Gemm(1);
  spec.params["inject"] = "flip@7:0";  // on a node with eight devices it could be right
  EXPECT_TRUE(Submit(spec).ok());
}

TEST_F(CoordinatorTest, RejectsAFootprintNoNodeCanHoldWithBothNumbers) {
  const auto n1 = Connected("n1");
  JobSpec spec = Gemm(1);
  spec.params = {{"m", "100000"}, {"n", "100000"}, {"k", "100000"}};
  const auto job = Submit(spec);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("8 GiB"));
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("a rank needs"));
}

TEST_F(CoordinatorTest, RejectsABackendThatNoNodeCanUse) {
  const auto n1 = Connected("n1");
  JobSpec spec = Gemm(1);
  spec.backend = "nowhere";
  const auto job = Submit(spec);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr("n1: backend nowhere is not installed"));
}

TEST_F(CoordinatorTest, TooManyNodesWaitWithTheReasonOrAreRejected) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(2));
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(Stored(job->job_id).reason, HasSubstr("needs 2 nodes; 1 "));
  JobSpec spec = Gemm(2);
  spec.no_wait = true;
  EXPECT_THAT(std::string(Submit(spec).status().message()), HasSubstr("needs 2 nodes; 1 "));
  const auto n2 = Connected("n2");
  EXPECT_EQ(Stored(job->job_id).state, JobState::kStarting);
}

TEST_F(CoordinatorTest, RankFailureAbortsTheOthersAndNamesWhere) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  const AttemptKey key{job->job_id, 1};
  Say(n2, key, 1,
      line::Failure{"ABORTED", line::Phase::kTimed, "worker killed by SIGSEGV", "", 0, 0});
  ASSERT_EQ(n1->Sent<StopAttempt>().size(), 1u);
  EXPECT_FALSE(n1->Sent<StopAttempt>()[0].graceful);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kStarting);  // not before all is gone
  End(n1, key);
  End(n2, key);
  const Job ended = Stored(job->job_id);
  EXPECT_EQ(ended.state, JobState::kFailed);
  EXPECT_EQ(ended.failure.node, "n2");
  EXPECT_EQ(ended.failure.rank, 1);
  EXPECT_EQ(ended.failure.phase, "timed");
  EXPECT_EQ(ended.failure.cause, "worker killed by SIGSEGV");
  EXPECT_EQ((*store_.GetCases(job->job_id))[0].status, line::CaseStatus::kFailed);
}

TEST_F(CoordinatorTest, WrongDataFailsTheJob) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  RunRank(n1, key, 0, line::CaseStatus::kWrong);
  End(n1, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
  EXPECT_THAT(Stored(job->job_id).reason, HasSubstr("WRONG"));
}

TEST_F(CoordinatorTest, NoPassedCaseFailsTheJob) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  RunRank(n1, key, 0, line::CaseStatus::kSkipped);
  End(n1, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
  EXPECT_THAT(Stored(job->job_id).reason, HasSubstr("told so"));
}

TEST_F(CoordinatorTest, CancelIsGracefulFirstThenAborts) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const AttemptKey key{job->job_id, 1};
  coordinator_->Cancel(job->job_id, [](absl::StatusOr<Job>) {});
  Drain();
  ASSERT_EQ(n1->Sent<StopAttempt>().size(), 1u);
  EXPECT_TRUE(n1->Sent<StopAttempt>()[0].graceful);
  coordinator_->Heartbeat(n1.get());
  Advance(options_.cancel_grace);
  ASSERT_EQ(n1->Sent<StopAttempt>().size(), 2u);
  EXPECT_FALSE(n1->Sent<StopAttempt>()[1].graceful);
  End(n1, key);
  EXPECT_EQ(Stored(job->job_id).state, JobState::kCancelled);
}

TEST_F(CoordinatorTest, CancelOfAQueuedJobIsImmediateAndRepeatable) {
  const auto job = Submit(Gemm(3));
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<Job> reply = absl::UnknownError("no reply");
    coordinator_->Cancel(job->job_id,
                         [&reply](absl::StatusOr<Job> got) { reply = std::move(got); });
    Drain();
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(reply->state, JobState::kCancelled);
  }
}

TEST_F(CoordinatorTest, TimeoutEndsAQueuedAndARunningJob) {
  const auto n1 = Connected("n1");
  JobSpec spec = Gemm(1);
  spec.timeout_ns = absl::ToInt64Nanoseconds(absl::Seconds(5));
  const auto running = Submit(spec);
  const auto queued = Submit(spec);
  coordinator_->Heartbeat(n1.get());
  Advance(absl::Seconds(5));
  EXPECT_EQ(Stored(queued->job_id).state, JobState::kTimedOut);
  EXPECT_EQ(n1->Sent<StopAttempt>().size(), 1u);
  End(n1, {running->job_id, 1});
  EXPECT_EQ(Stored(running->job_id).state, JobState::kTimedOut);
  EXPECT_THAT(Stored(running->job_id).reason, HasSubstr("--timeout 5s"));
}

TEST_F(CoordinatorTest, ALiveNameCannotBeTakenOver) {
  const auto n1 = Connected("n1");
  const auto other = Connect("n1", std::make_shared<PlayedSession>(), "second");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("10.0.0.1:1"));
}

TEST_F(CoordinatorTest, AnotherProtocolIsRefusedWithBothNumbers) {
  Registration registration;
  registration.node = "n1";
  registration.protocol = kProtocolVersion + 1;
  const auto welcome =
      coordinator_->Register(std::make_shared<PlayedSession>(), std::move(registration));
  EXPECT_EQ(welcome.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(welcome.status().message()), HasSubstr("protocol 2"));
}

TEST_F(CoordinatorTest, ExchangeGivesEveryRankAllParts) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  const auto job = Submit(Gemm(2));
  const AttemptKey key{job->job_id, 1};
  coordinator_->ExchangePart(n1.get(), key, 0, {0}, {"a"});
  EXPECT_TRUE(n1->Sent<ExchangeAll>().empty());
  coordinator_->ExchangePart(n2.get(), key, 0, {1}, {"b"});
  ASSERT_EQ(n1->Sent<ExchangeAll>().size(), 1u);
  EXPECT_EQ(n2->Sent<ExchangeAll>()[0].data, (std::vector<std::string>{"a", "b"}));
  coordinator_->ExchangePart(n1.get(), key, 0, {0}, {"a"});  // asked again after a reconnect
  EXPECT_EQ(n1->Sent<ExchangeAll>().size(), 2u);
  EXPECT_EQ(n2->Sent<ExchangeAll>().size(), 1u);
}

TEST_F(CoordinatorTest, DrainedNodeGetsNoJobUntilItIsResumed) {
  const auto n1 = Connected("n1");
  coordinator_->Drain("n1", "fan", [](absl::StatusOr<NodeView>) {});
  Drain();
  const auto job = Submit(Gemm(1));
  EXPECT_THAT(Stored(job->job_id).reason, HasSubstr("n1 is drained"));
  Restart();
  const auto back = Connected("n1");
  EXPECT_EQ(coordinator_->Nodes()[0].state, "drained");
  coordinator_->Resume("n1", [](absl::StatusOr<NodeView>) {});
  Drain();
  EXPECT_EQ(Stored(job->job_id).state, JobState::kStarting);
}

TEST_F(CoordinatorTest, LabelsSelectNodes) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  coordinator_->Label("n2", {{"rack", "r7"}}, {}, [](absl::StatusOr<NodeView>) {});
  Drain();
  JobSpec spec = Gemm(1);
  spec.selector = {{"rack", "r7"}};
  ASSERT_TRUE(Submit(spec).ok());
  EXPECT_EQ(n2->Sent<StartAttempt>().size(), 1u);
}

TEST_F(CoordinatorTest, UnknownNodeGetsASuggestion) {
  const auto n1 = Connected("node-a");
  absl::Status status;
  coordinator_->Drain("node-b", "",
                      [&status](absl::StatusOr<NodeView> node) { status = node.status(); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean \"node-a\"?"));
}

TEST_F(CoordinatorTest, WatcherSeesCasesAndTheEnd) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const auto early = std::make_shared<PlayedWatcher>(), late = std::make_shared<PlayedWatcher>();
  ASSERT_TRUE(coordinator_->Watch(job->job_id, 0, early).ok());
  const AttemptKey key{job->job_id, 1};
  RunRank(n1, key, 0);
  ASSERT_TRUE(coordinator_->Watch(job->job_id, 0, late).ok());
  End(n1, key);
  EXPECT_EQ(early->Cases(), 1);
  EXPECT_EQ(late->Cases(), 1);
  EXPECT_EQ(early->Jobs().back().state, JobState::kSucceeded);
  EXPECT_TRUE(early->closed);
  EXPECT_TRUE(early->final_status.ok());
}

TEST_F(CoordinatorTest, WatcherResumesAfterWhatItSaw) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const auto first = std::make_shared<PlayedWatcher>(), second = std::make_shared<PlayedWatcher>();
  ASSERT_TRUE(coordinator_->Watch(job->job_id, 0, first).ok());
  RunRank(n1, {job->job_id, 1}, 0);
  ASSERT_TRUE(coordinator_->Watch(job->job_id, first->events.back()->seq, second).ok());
  EXPECT_EQ(second->Cases(), 0);
}

TEST_F(CoordinatorTest, StuckAgentDoesNotKeepTheJobOpenForEver) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  Say(n1, {job->job_id, 1}, 0, line::Failure{"ABORTED", line::Phase::kTimed, "crash", "", 0, 0});
  for (int i = 0; i < 31; ++i) {
    coordinator_->Heartbeat(n1.get());
    Advance(absl::Seconds(1));
  }
  EXPECT_EQ(Stored(job->job_id).state, JobState::kFailed);
  EXPECT_EQ(coordinator_->Nodes()[0].state, "busy");  // but the node is not free
}

TEST_F(CoordinatorTest, CoLocatedAgentsShareTheCores) {
  const auto share = [this](const std::string& name) {
    Registration registration;
    registration.node = name;
    registration.protocol = kProtocolVersion;
    registration.instance = name;
    registration.inventory = NodeInventory("same", {0, 1});
    auto welcome =
        coordinator_->Register(std::make_shared<PlayedSession>(), std::move(registration));
    Drain();
    return welcome->share;
  };
  EXPECT_EQ(share("n1"), (CpuShare{{0, 1}, false}));
  EXPECT_EQ(share("n2"), (CpuShare{{1}, false}));
  EXPECT_EQ(share("n3"), (CpuShare{{0}, true}));
}

TEST_F(CoordinatorTest, BadLabelsAreRefused) {
  const auto n1 = Connected("n1");
  absl::Status status;
  coordinator_->Label("n1", {{"", "x"}}, {},
                      [&status](absl::StatusOr<NodeView> node) { status = node.status(); });
  Drain();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorTest, BadNodeNamesAreRefused) {
  EXPECT_EQ(Connect("a b", std::make_shared<PlayedSession>()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorTest, UnwatchedWatcherHearsNoMore) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1));
  const auto watcher = std::make_shared<PlayedWatcher>();
  ASSERT_TRUE(coordinator_->Watch(job->job_id, 0, watcher).ok());
  coordinator_->Unwatch(job->job_id, watcher.get());
  const std::size_t seen = watcher->events.size();
  RunRank(n1, {job->job_id, 1}, 0);
  EXPECT_EQ(watcher->events.size(), seen);
  EXPECT_EQ(coordinator_->Watch("j-none", 0, watcher).code(), absl::StatusCode::kNotFound);
}

TEST_F(CoordinatorTest, CoresGoOnlyToAgentsThatMayUseThem) {
  const auto share = [this](const std::string& name, std::vector<int> cpus) {
    Registration registration;
    registration.node = name;
    registration.protocol = kProtocolVersion;
    registration.instance = name;
    registration.inventory = NodeInventory("same", std::move(cpus));
    auto welcome =
        coordinator_->Register(std::make_shared<PlayedSession>(), std::move(registration));
    Drain();
    return welcome->share;
  };
  EXPECT_EQ(share("n1", {2, 3}), (CpuShare{{2, 3}, false}));
  EXPECT_EQ(share("n2", {0, 1}), (CpuShare{{0, 1}, false}));
  EXPECT_EQ(share("n3", {2, 3}), (CpuShare{{3}, false}));
}

TEST_F(CoordinatorTest, AnUnknownNodeNameIsSaidInTheReason) {
  const auto n1 = Connected("node-a");
  JobSpec spec = Gemm(1);
  spec.node_names = {"node-b"};
  const auto job = Submit(spec);
  ASSERT_TRUE(job.ok());
  EXPECT_THAT(Stored(job->job_id).reason, HasSubstr("no node \"node-b\" has connected"));
}

TEST_F(CoordinatorTest, ARequestAskedAgainAfterItsJobEndedGivesThatJob) {
  const auto n1 = Connected("n1");
  const auto job = Submit(Gemm(1), "once");
  const AttemptKey key{job->job_id, 1};
  RunRank(n1, key, 0);
  End(n1, key);
  JobSpec other = Gemm(1);
  other.benchmark = "nothing";
  EXPECT_EQ(Submit(other, "once")->job_id, job->job_id);
}

}  // namespace
}  // namespace param
