#include "server/core/node_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/fake_clock.h"

namespace param {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Duration kLease = absl::Seconds(15);

class Session final : public AgentSession {
 public:
  void Send(ToAgent) override {}
  void Close(absl::Status status) override { closed.push_back(std::move(status)); }
  std::vector<absl::Status> closed;
};

class NodeTableTest : public testing::Test {
 protected:
  static Registration Agent(const std::string& name, const std::string& boot_id = "",
                            std::vector<int> cpus = {0, 1}) {
    Registration registration;
    registration.node = name;
    registration.instance = "process of " + name;
    registration.address = "10.0.0.1:5";
    registration.inventory.boot_id = boot_id.empty() ? "boot of " + name : boot_id;
    registration.inventory.cpus = std::move(cpus);
    return registration;
  }
  std::shared_ptr<Session> Connect(const Registration& registration) {
    auto session = std::make_shared<Session>();
    const auto node = table_.Register(session, registration);
    EXPECT_TRUE(node.ok()) << node.status();
    return session;
  }
  absl::Status Refused(const Registration& registration) {
    return table_.Register(std::make_shared<Session>(), registration).status();
  }
  NodeEntry& Entry(const std::string& name) { return *table_.Find(name); }
  const std::vector<int>& Cpus(const std::string& name) { return Entry(name).share.cpus; }
  std::vector<std::string> Split() {
    std::vector<std::string> changed;
    for (const NodeEntry* node : table_.SplitCores()) changed.push_back(node->record.node);
    std::sort(changed.begin(), changed.end(), NaturalLess);
    return changed;
  }
  std::vector<std::string> Expired() {
    std::vector<std::string> names;
    for (const NodeEntry* node : table_.ExpireLeases()) names.push_back(node->record.node);
    return names;
  }

  FakeClock clock_;
  NodeTable table_{clock_, kLease};
};

// ---- names ----

TEST_F(NodeTableTest, ALiveNameIsNotTakenOver) {
  const auto first = Connect(Agent("n1"));
  Registration other = Agent("n1");
  other.instance = "another process";
  const absl::Status status = Refused(other);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a live agent at 10.0.0.1:5"));
  EXPECT_EQ(Entry("n1").session, first);
  EXPECT_THAT(first->closed, IsEmpty());
}

TEST_F(NodeTableTest, TheSameProcessTakesItsOwnSessionOver) {
  const auto first = Connect(Agent("n1"));
  const auto second = Connect(Agent("n1"));
  ASSERT_EQ(first->closed.size(), 1u);
  EXPECT_EQ(first->closed[0].code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table_.OfSession(second.get()), &Entry("n1"));
  EXPECT_EQ(table_.OfSession(first.get()), nullptr);
}

TEST_F(NodeTableTest, ABrokenConnectionKeepsItsNameForTheMachineWithinTheLease) {
  const auto session = Connect(Agent("n1", "boot-1"));
  table_.Disconnected(Entry("n1"));
  Registration elsewhere = Agent("n1", "boot-2");
  elsewhere.instance = "on another machine";
  EXPECT_EQ(Refused(elsewhere).code(), absl::StatusCode::kAlreadyExists);
  Registration restarted = Agent("n1", "boot-1");
  restarted.instance = "restarted";
  Connect(restarted);  // the same machine need not wait
  table_.Disconnected(Entry("n1"));
  clock_.Advance(kLease);
  Connect(elsewhere);  // nor anybody, after the lease
}

TEST_F(NodeTableTest, AHungSessionLosesItsNameWithItsLease) {
  const auto hung = Connect(Agent("n1"));
  Registration other = Agent("n1");
  other.instance = "another process";
  clock_.Advance(kLease);
  Connect(other);
  EXPECT_EQ(hung->closed.size(), 1u);
}

TEST_F(NodeTableTest, OddNamesAreRefused) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("n/1"),
                                  std::string("n\n"), std::string(254, 'a')}) {
    EXPECT_EQ(Refused(Agent(name)).code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_TRUE(table_.nodes().empty());
  Connect(Agent("a-Z.0_9"));
}

// ---- leases ----

TEST_F(NodeTableTest, ALeaseRunsOutOnceAndOnlyWithoutBeingHeard) {
  const auto quiet = Connect(Agent("n1")), heard = Connect(Agent("n2"));
  clock_.Advance(kLease - absl::Nanoseconds(1));
  EXPECT_THAT(Expired(), IsEmpty());
  table_.Heard(Entry("n2"));
  clock_.Advance(absl::Nanoseconds(1));
  EXPECT_THAT(Expired(), ElementsAre("n1"));
  ASSERT_EQ(quiet->closed.size(), 1u);
  EXPECT_EQ(quiet->closed[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Entry("n1").session, nullptr);
  EXPECT_THAT(Expired(), IsEmpty());
  EXPECT_EQ(NodeState(Entry("n1")), "lost");
  EXPECT_EQ(NodeState(Entry("n2")), "ready");
  Connect(Agent("n1"));
  EXPECT_EQ(NodeState(Entry("n1")), "ready");
}

TEST_F(NodeTableTest, ADisconnectedNodeIsLostOnlyAfterItsLease) {
  Connect(Agent("n1"));
  table_.Disconnected(Entry("n1"));
  clock_.Advance(kLease / 2);
  EXPECT_THAT(Expired(), IsEmpty());
  EXPECT_EQ(table_.View(Entry("n1")).reason, "connection lost; waiting for the agent to come back");
  clock_.Advance(kLease / 2);
  EXPECT_THAT(Expired(), ElementsAre("n1"));
  EXPECT_EQ(table_.View(Entry("n1")).reason, "no heartbeat within the lease");
}

TEST_F(NodeTableTest, ARestoredNodeIsLostAndAnExpectedOneHasALease) {
  NodeRecord record;
  record.node = "n1";
  record.labels = {{"rack", "7"}};
  record.first_seen_ns = 5;
  table_.Restore(record);
  record.node = "n2";
  table_.Restore(record);
  EXPECT_EQ(table_.View(Entry("n1")).state, "lost");
  EXPECT_EQ(table_.View(Entry("n1")).reason, "not seen since the start");
  EXPECT_THAT(Expired(), IsEmpty());
  table_.Expect("n2");  // a job runs there
  clock_.Advance(kLease / 2);
  EXPECT_THAT(Expired(), IsEmpty());
  clock_.Advance(kLease / 2);
  EXPECT_THAT(Expired(), ElementsAre("n2"));
  Connect(Agent("n1"));
  EXPECT_EQ(Entry("n1").record.first_seen_ns, 5);
  EXPECT_EQ(Entry("n1").labels().at("rack"), "7");
}

// ---- states and labels ----

TEST_F(NodeTableTest, StatesFollowJobAndDrain) {
  Connect(Agent("n1"));
  NodeEntry& node = Entry("n1");
  EXPECT_EQ(NodeState(node), "ready");
  node.job_id = "j-1";
  EXPECT_EQ(NodeState(node), "busy");
  node.record.drained = true;
  node.record.drain_reason = "bad fan";
  EXPECT_EQ(NodeState(node), "draining");
  EXPECT_EQ(table_.View(node).reason, "bad fan");
  node.job_id.clear();
  EXPECT_EQ(NodeState(node), "drained");
}

TEST_F(NodeTableTest, AnOperatorsLabelStandsAboveTheAgents) {
  Registration registration = Agent("n1");
  registration.labels = {{"rack", "agent"}, {"zone", "z1"}};
  Connect(registration);
  Entry("n1").record.labels = {{"rack", "operator"}};
  EXPECT_EQ(Entry("n1").labels(),
            (std::map<std::string, std::string>{{"rack", "operator"}, {"zone", "z1"}}));
}

// ---- cores ----

TEST_F(NodeTableTest, AnAgentAloneHasAllItsCores) {
  Connect(Agent("n1", "boot", {3, 1, 2}));
  EXPECT_THAT(Split(), ElementsAre("n1"));
  EXPECT_THAT(Cpus("n1"), ElementsAre(1, 2, 3));
  EXPECT_FALSE(Entry("n1").share.oversubscribed);
  EXPECT_EQ(Entry("n1").co_located, 1);
  EXPECT_THAT(Split(), IsEmpty());  // nothing changed
}

TEST_F(NodeTableTest, CoLocatedAgentsSplitTheCoresInNaturalOrder) {
  for (const char* name : {"n10", "n2", "n1"}) Connect(Agent(name, "boot", {0, 1, 2, 3, 4, 5, 6}));
  Connect(Agent("far", "another boot", {0, 1}));
  Split();
  EXPECT_THAT(Cpus("n1"), ElementsAre(0, 1));
  EXPECT_THAT(Cpus("n2"), ElementsAre(2, 3));
  EXPECT_THAT(Cpus("n10"), ElementsAre(4, 5, 6));
  EXPECT_THAT(Cpus("far"), ElementsAre(0, 1));
  EXPECT_EQ(Entry("n2").co_located, 3);
  EXPECT_EQ(Entry("far").co_located, 1);
}

TEST_F(NodeTableTest, ACoreGoesOnlyToAgentsThatMayUseIt) {
  Connect(Agent("n1", "boot", {0, 1, 2, 3}));
  Connect(Agent("n2", "boot", {2, 3}));
  Split();
  EXPECT_THAT(Cpus("n1"), ElementsAre(0, 1, 2));
  EXPECT_THAT(Cpus("n2"), ElementsAre(3));
  EXPECT_FALSE(Entry("n1").share.oversubscribed);
}

TEST_F(NodeTableTest, MoreAgentsThanCoresHaveOneEachAndSayThatTheyShareIt) {
  for (const char* name : {"n1", "n2", "n3"}) Connect(Agent(name, "boot", {4, 5}));
  Split();
  EXPECT_THAT(Cpus("n1"), ElementsAre(4));
  EXPECT_THAT(Cpus("n2"), ElementsAre(5));
  EXPECT_THAT(Cpus("n3"), ElementsAre(4));
  for (const char* name : {"n1", "n2", "n3"}) EXPECT_TRUE(Entry(name).share.oversubscribed);
}

TEST_F(NodeTableTest, ALostAgentsCoresGoToTheOthersADisconnectedOnesDoNot) {
  const auto n1 = Connect(Agent("n1", "boot", {0, 1, 2, 3}));
  const auto n2 = Connect(Agent("n2", "boot", {0, 1, 2, 3}));
  EXPECT_THAT(Split(), ElementsAre("n1", "n2"));
  table_.Disconnected(Entry("n2"));
  EXPECT_THAT(Split(), IsEmpty());
  table_.Heard(Entry("n1"));
  clock_.Advance(kLease / 2);
  table_.Heard(Entry("n1"));
  clock_.Advance(kLease / 2);
  EXPECT_THAT(Expired(), ElementsAre("n2"));
  EXPECT_THAT(Split(), ElementsAre("n1"));
  EXPECT_THAT(Cpus("n1"), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(Entry("n1").co_located, 1);
}

TEST_F(NodeTableTest, AgentsThatNameNoMachineShareNothing) {
  Registration one = Agent("n1"), two = Agent("n2");
  one.inventory.boot_id = two.inventory.boot_id = "";
  Connect(one);
  Connect(two);
  Split();
  EXPECT_THAT(Cpus("n1"), ElementsAre(0, 1));
  EXPECT_THAT(Cpus("n2"), ElementsAre(0, 1));
}

TEST(NaturalLess, SortsAsPeopleDo) {
  std::vector<std::string> names = {"n10", "n2", "n1", "n", "m9", "n2b", "n01", "n2a10", "n2a9"};
  std::sort(names.begin(), names.end(), NaturalLess);
  EXPECT_THAT(names, ElementsAre("m9", "n", "n01", "n1", "n2", "n2a9", "n2a10", "n2b", "n10"));
  EXPECT_FALSE(NaturalLess("n1", "n1"));
}

}  // namespace
}  // namespace param
