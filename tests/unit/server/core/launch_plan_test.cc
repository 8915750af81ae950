#include "server/core/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class LaunchPlanTest : public testing::Test {
 protected:
  // A node with one address, which is also how it reaches the coordinator.
  Registration& AddNode(const std::string& name, const std::string& address, int prefix = 24) {
    Registration& node = nodes_[name];
    node.node = name;
    node.address = "ipv4:" + address + ":4711";
    node.inventory.boot_id = "boot-" + name;
    node.inventory.network_id = "net:[1]";
    node.inventory.addresses = {{"lo", "127.0.0.1", 8}, {"eth0", address, prefix}};
    ranks_.push_back({static_cast<int>(ranks_.size()), name, 0});
    return node;
  }
  absl::StatusOr<LaunchPlan> Plan(const std::string& wanted = "", bool oversubscribed = false) {
    std::map<std::string, const Registration*> nodes;
    for (const auto& [name, node] : nodes_) nodes[name] = &node;
    return PlanLaunch(ranks_, nodes, oversubscribed, wanted);
  }
  std::map<std::string, Registration> nodes_;
  std::vector<RankPlace> ranks_;
};

TEST_F(LaunchPlanTest, HostsAreInRankOrderWithTheirRanks) {
  EXPECT_THAT(HostsOf({{0, "n9", 0}, {1, "n9", 1}, {2, "n1", 0}}),
              ElementsAre(LaunchHost{"pnode0", "n9", 2}, LaunchHost{"pnode1", "n1", 1}));
  EXPECT_TRUE(HostsOf({}).empty());
}

TEST_F(LaunchPlanTest, AgentsOfOneMachineUseLoopback) {
  for (const char* const name : {"n1", "n2"}) AddNode(name, "10.0.0.1").inventory.boot_id = "b";
  const auto plan = Plan("", true);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->interface, "lo");
  EXPECT_THAT(plan->head_addresses, ElementsAre("127.0.0.1", "10.0.0.1"));
  EXPECT_TRUE(plan->yield_when_idle);
}

TEST_F(LaunchPlanTest, NamespacesOfOneMachineDoNotShareLoopback) {
  AddNode("n1", "10.0.0.1").inventory.boot_id = "b";
  AddNode("n2", "10.0.0.2").inventory.boot_id = "b";
  nodes_["n2"].inventory.network_id = "net:[2]";
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->interface, "10.0.0.0/24");
  EXPECT_THAT(plan->head_addresses, ElementsAre("10.0.0.1"));
}

TEST_F(LaunchPlanTest, NodesOfSeveralNetworksUseThoseThatLeadToTheCoordinator) {
  AddNode("n1", "10.1.0.5", 16);
  AddNode("n2", "10.2.7.9", 16);
  AddNode("n3", "10.1.3.1", 16);
  // A bridge that every node has, and that leads nowhere.
  for (auto& [name, node] : nodes_) {
    node.inventory.addresses.insert(node.inventory.addresses.begin(),
                                    {"docker0", "172.17.0.1", 16});
  }
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->interface, "10.1.0.0/16,10.2.0.0/16");
}

TEST_F(LaunchPlanTest, BehindATunnelTheNetworkInCommonCounts) {
  AddNode("n1", "10.0.0.1").address = "ipv4:127.0.0.1:9";
  AddNode("n2", "10.0.0.2").address = "ipv6:[::1]:9";
  const auto plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->interface, "10.0.0.0/24");
}

TEST_F(LaunchPlanTest, NodesWithoutACommonNetworkAreNamed) {
  AddNode("n1", "10.0.0.1").address = "unix:x";
  AddNode("n2", "10.0.1.2").address = "unix:y";
  const auto plan = Plan();
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(plan.status().message()),
              HasSubstr("n1 is in 10.0.0.0/24; n2 is in 10.0.1.0/24"));
}

TEST_F(LaunchPlanTest, AWantedInterfaceIsTakenIfItIsAName) {
  AddNode("n1", "10.0.0.1");
  AddNode("n2", "10.9.0.2");
  EXPECT_EQ(Plan("ib0")->interface, "ib0");
  EXPECT_EQ(Plan("10.9.0.0/16,10.0.0.0/8")->interface, "10.9.0.0/16,10.0.0.0/8");
  for (const char* const bad : {"eth0;reboot", "a b", "$x", "\"", "eth0\n"}) {
    EXPECT_EQ(Plan(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST_F(LaunchPlanTest, ANodeThatIsNotThereIsNamed) {
  AddNode("n1", "10.0.0.1");
  ranks_.push_back({1, "n2", 0});
  EXPECT_THAT(std::string(Plan().status().message()), HasSubstr("node n2 is not connected"));
}

TEST(LauncherForTest, TheCommBackendDecides) {
  Inventory node;
  node.backends.resize(2);
  node.backends[0].name = "gloo";
  node.backends[1].name = "mpi";
  node.backends[1].launcher = "mpirun";
  EXPECT_EQ(LauncherFor(node, {}), "direct");
  EXPECT_EQ(LauncherFor(node, {"gloo"}), "direct");
  EXPECT_EQ(LauncherFor(node, {"gloo", "mpi"}), "mpirun");
  EXPECT_EQ(LauncherFor(node, {"other"}), "direct");
}

class LaunchRelayTest : public testing::Test {
 protected:
  LaunchRelay relay_{{{"p0", "n1", 1}, {"p1", "n2", 1}}};
};

TEST_F(LaunchRelayTest, TheHeadHasEachDaemonStartedOnce) {
  EXPECT_EQ(*relay_.Want("n1", "p1", {"orted"}), "n2");
  EXPECT_EQ(*relay_.Want("n1", "p0", {"orted"}), "n1");
  EXPECT_THAT(std::string(relay_.Want("n1", "p1", {"orted", "x"}).status().message()),
              HasSubstr("a second daemon for host p1"));
  EXPECT_EQ(relay_.EndOf("p1"), nullptr);
  EXPECT_EQ(*relay_.Ended("n2", "p1", {3, "why"}), "n1");
  EXPECT_EQ(*relay_.EndOf("p1"), (DaemonEnd{3, "why"}));
}

TEST_F(LaunchRelayTest, WhatIsSaidAgainChangesNothing) {
  EXPECT_EQ(*relay_.Want("n1", "p1", {"orted"}), "n2");
  EXPECT_EQ(*relay_.Want("n1", "p1", {"orted"}), "n2");
  EXPECT_EQ(*relay_.Ended("n2", "p1", {3, "why"}), "n1");
  EXPECT_EQ(*relay_.Ended("n2", "p1", {0, ""}), "n1");
  EXPECT_EQ(*relay_.Want("n1", "p1", {"orted"}), "n2");
  EXPECT_EQ(relay_.EndOf("p1")->exit_code, 3);
}

TEST_F(LaunchRelayTest, ANodeThatWasAwayHearsWhatIsOpen) {
  ASSERT_TRUE(relay_.Want("n1", "p0", {"orted", "0"}).ok());
  ASSERT_TRUE(relay_.Want("n1", "p1", {"orted", "1"}).ok());
  EXPECT_THAT(relay_.WantedOn("n2"), ElementsAre(Pair("p1", ElementsAre("orted", "1"))));
  EXPECT_THAT(relay_.EndsFor("n1"), IsEmpty());
  ASSERT_TRUE(relay_.Ended("n2", "p1", {1, std::string(1 << 20, 'x')}).ok());
  EXPECT_THAT(relay_.WantedOn("n2"), IsEmpty());
  EXPECT_THAT(relay_.WantedOn("n1"), ElementsAre(Pair("p0", ElementsAre("orted", "0"))));
  ASSERT_THAT(relay_.EndsFor("n1"), ElementsAre(Pair("p1", testing::_)));
  EXPECT_EQ(relay_.EndsFor("n1").at("p1").cause.size(), 4096u);
  EXPECT_THAT(relay_.EndsFor("n2"), IsEmpty());
}

TEST_F(LaunchRelayTest, NobodyElseAsksOrAnswers) {
  EXPECT_THAT(std::string(relay_.Want("n2", "p1", {}).status().message()),
              HasSubstr("n2 is not the head"));
  EXPECT_THAT(std::string(relay_.Want("n3", "p1", {}).status().message()),
              HasSubstr("n3 is not the head"));
  EXPECT_THAT(std::string(relay_.Want("n1", "p7", {}).status().message()),
              HasSubstr("p7 is not one of the attempt's"));
  EXPECT_THAT(std::string(relay_.Ended("n1", "p1", {}).status().message()),
              HasSubstr("not its own"));
  EXPECT_FALSE(relay_.Ended("n2", "p7", {}).ok());
  EXPECT_FALSE(relay_.Want("n1", "p1", std::vector<std::string>(257, "x")).ok());
  EXPECT_FALSE(relay_.Want("n1", "p1", {std::string(1 << 20, 'x')}).ok());
  const std::string huge(1 << 20, 'p');
  EXPECT_LT(relay_.Want("n1", huge, {}).status().message().size(), 200u);
  EXPECT_LT(relay_.Ended("n1", huge, {}).status().message().size(), 200u);
  EXPECT_TRUE(relay_.Want("n1", "p1", {"orted"}).ok());  // what was refused changed nothing
}

}  // namespace
}  // namespace param
