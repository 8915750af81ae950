#include "server/core/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/core/backend_choice.h"

namespace param {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct IdleSession final : AgentSession {
  void Send(ToAgent) override {}
  void Close(absl::Status) override {}
};

BackendStatus Backend(const std::string& name, int preference, bool usable = true) {
  BackendStatus backend;
  backend.name = name;
  backend.installed = backend.loadable = true;
  backend.usable = usable;
  backend.reason = usable ? "" : "no driver";
  backend.devices = 1;
  backend.tables = {"device"};
  backend.benchmarks = {"*"};
  backend.preference = preference;
  return backend;
}

class Placing : public testing::Test {
 protected:
  NodeEntry& AddNode(const std::string& name) {
    NodeEntry& node = fleet_[name];
    node.record.node = name;
    node.registered = true;
    node.session = std::make_shared<IdleSession>();
    node.registration.inventory.memory_bytes = 1 << 30;
    node.registration.inventory.backends = {Backend("cpu", 10), Backend("fake", 0)};
    return node;
  }
  Job& AddJob(const std::string& id, int nodes, int priority = 0) {
    jobs_.push_back(std::make_unique<Job>());
    Job& job = *jobs_.back();
    job.job_id = id;
    job.spec.benchmark = "gemm";
    job.spec.nodes = nodes;
    job.spec.priority = priority;
    job.timeline.submitted = static_cast<std::int64_t>(jobs_.size());
    return job;
  }
  PlacementPlan Plan() {
    std::vector<Waiting> waiting;
    for (const auto& job : jobs_) waiting.push_back({job.get(), {}});
    return PlanPlacements(waiting, fleet_);
  }
  static std::vector<std::string> Ids(const PlacementPlan& plan) {
    std::vector<std::string> ids;
    for (const Placement& placement : plan.placed) ids.push_back(placement.job_id);
    return ids;
  }
  std::map<std::string, NodeEntry> fleet_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

TEST_F(Placing, AllNodesOrNone) {
  AddNode("n1");
  AddNode("n2");
  AddJob("a", 3);
  const PlacementPlan plan = Plan();
  EXPECT_TRUE(plan.placed.empty());
  EXPECT_THAT(plan.reasons.at("a"),
              HasSubstr("needs 3 nodes; 2 that could run it are connected (n1, n2)"));
}

TEST_F(Placing, RanksGoToNodesInNaturalOrder) {
  AddNode("n10");
  AddNode("n2");
  AddJob("a", 2).spec.ranks_per_node = 2;
  const PlacementPlan plan = Plan();
  ASSERT_EQ(plan.placed.size(), 1u);
  EXPECT_THAT(plan.placed[0].ranks, ElementsAre(RankPlace{0, "n2", 0}, RankPlace{1, "n2", 1},
                                                RankPlace{2, "n10", 0}, RankPlace{3, "n10", 1}));
}

TEST_F(Placing, HigherPriorityThenOlderGoesFirst) {
  AddNode("n1");
  AddJob("old", 1);
  AddJob("young", 1);
  AddJob("urgent", 1, 5);
  EXPECT_THAT(Ids(Plan()), ElementsAre("urgent"));
}

TEST_F(Placing, SmallJobsDoNotStarveALargeOneThatWaits) {
  AddNode("n1");
  AddNode("n2").job_id = "running";
  AddJob("large", 2);
  AddJob("small", 1);
  const PlacementPlan plan = Plan();
  EXPECT_TRUE(plan.placed.empty());
  EXPECT_EQ(plan.reasons.at("large"), "waits for 2 free nodes, 1 free now; n2 runs running");
  EXPECT_EQ(plan.reasons.at("small"),
            "waits for 1 free node, 0 free now; n2 runs running, an earlier job gets n1");
}

TEST_F(Placing, ANodeWithinItsLeaseIsWaitedFor) {
  AddNode("n1");
  AddNode("n2").session = nullptr;
  AddJob("large", 2);
  EXPECT_EQ(Plan().reasons.at("large"), "waits for 2 free nodes, 1 free now; n2 is disconnected");
}

TEST_F(Placing, AJobThatTheFleetCannotRunHoldsNothingBack) {
  AddNode("n1");
  AddJob("impossible", 5);
  AddJob("small", 1);
  EXPECT_THAT(Ids(Plan()), ElementsAre("small"));
}

TEST_F(Placing, AJobThatCannotUseTheHeldNodesGoesAhead) {
  AddNode("n1");
  AddNode("n2").job_id = "running";
  AddNode("n3").record.labels = {{"rack", "b"}};
  Job& large = AddJob("large", 2);
  large.spec.node_names = {"n1", "n2"};
  AddJob("elsewhere", 1).spec.selector = {{"rack", "b"}};
  EXPECT_THAT(Ids(Plan()), ElementsAre("elsewhere"));
}

TEST_F(Placing, DrainedLostAndDisconnectedNodesAreLeftOut) {
  AddNode("n1").record.drained = true;
  AddNode("n2").lost = true;
  AddNode("n3").session = nullptr;
  AddJob("a", 1);
  EXPECT_TRUE(Plan().placed.empty());
}

TEST_F(Placing, AutoTakesTheBestBackendUsableOnAllChosenNodes) {
  AddNode("n1").registration.inventory.backends.push_back(Backend("gpu", 100));
  AddNode("n2");
  AddJob("one", 1);
  EXPECT_EQ(Plan().placed[0].device_backend, "gpu");
  jobs_[0]->spec.nodes = 2;
  EXPECT_EQ(Plan().placed[0].device_backend, "cpu");
}

TEST_F(Placing, AutoNeverTakesABackendThatWantsToBeNamed) {
  AddNode("n1").registration.inventory.backends = {Backend("fake", 0)};
  AddJob("a", 1);
  EXPECT_TRUE(Plan().placed.empty());
  jobs_[0]->spec.backend = "fake";
  EXPECT_EQ(Plan().placed[0].device_backend, "fake");
}

TEST_F(Placing, UnusableBackendIsNamedWithItsReason) {
  AddNode("n1").registration.inventory.backends = {Backend("gpu", 100, false)};
  AddJob("a", 1).spec.backend = "gpu";
  EXPECT_THAT(Plan().reasons.at("a"),
              HasSubstr("n1: backend gpu is installed, not usable: no driver"));
}

TEST_F(Placing, OneRankPerDeviceWhereTheBackendAsksForIt) {
  BackendStatus gpu = Backend("gpu", 100);
  gpu.devices = 4;
  gpu.rank_per_device = true;
  AddNode("n1").registration.inventory.backends = {gpu};
  AddJob("a", 1);
  EXPECT_EQ(Plan().placed[0].ranks.size(), 4u);
}

TEST_F(Placing, MoreRanksThanCoresAreSaidToBeOversubscribed) {
  AddNode("n1").share = {{0, 1}, false};
  AddJob("a", 1).spec.ranks_per_node = 3;
  EXPECT_TRUE(Plan().placed[0].oversubscribed);
}

TEST_F(Placing, FootprintIsComparedWithDeviceMemoryWhereThereIsSome) {
  BackendStatus gpu = Backend("gpu", 100);
  gpu.device_memory_bytes = 1000;
  AddNode("n1").registration.inventory.backends = {gpu};
  const Job& job = AddJob("a", 1);
  const PlacementPlan plan = PlanPlacements({{&job, Footprint{10, 2000}}}, fleet_);
  EXPECT_THAT(plan.reasons.at("a"), HasSubstr("of device memory"));
}

TEST(ParseBackend, TakesDeviceCommAndBoth) {
  const std::vector<std::string> devices = {"cpu", "fake"};
  EXPECT_EQ(ParseBackend("auto", devices)->device, "");
  EXPECT_EQ(ParseBackend("cpu", devices)->device, "cpu");
  EXPECT_THAT(ParseBackend("ring", devices)->comm, ElementsAre("ring"));
  const auto both = ParseBackend("cpu+ring", devices);
  EXPECT_EQ(both->device, "cpu");
  EXPECT_THAT(both->comm, ElementsAre("ring"));
  EXPECT_FALSE(ParseBackend("cpu+", devices).ok());
}

TEST(WhyNotUsable, TellsTheStatesApart) {
  Inventory node;
  node.backends = {Backend("gpu", 1, false)};
  EXPECT_THAT(WhyNotUsable(node, "gpu", "device", "gemm"), HasSubstr("not usable"));
  node.backends[0].loadable = false;
  EXPECT_THAT(WhyNotUsable(node, "gpu", "device", "gemm"), HasSubstr("not loadable"));
  EXPECT_THAT(WhyNotUsable(node, "tpu", "device", "gemm"), HasSubstr("not installed"));
  node.backends[0] = Backend("gpu", 1);
  node.backends[0].benchmarks = {"conv"};
  EXPECT_THAT(WhyNotUsable(node, "gpu", "device", "gemm"), HasSubstr("does not run gemm"));
}

TEST(NaturalLess, SortsNumbersByValue) {
  EXPECT_TRUE(NaturalLess("n2", "n10"));
  EXPECT_FALSE(NaturalLess("n10", "n2"));
  EXPECT_TRUE(NaturalLess("a-2-b", "a-10-a"));
  EXPECT_TRUE(NaturalLess("n", "n1"));
  EXPECT_TRUE(NaturalLess("n01", "n1") != NaturalLess("n1", "n01"));
  EXPECT_FALSE(NaturalLess("n1", "n1"));
}

}  // namespace
}  // namespace param
