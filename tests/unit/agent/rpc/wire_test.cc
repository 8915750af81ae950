#include "agent/rpc/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param::agent {
namespace {

using ::testing::ElementsAre;

TEST(WireTest, EventsKeepEveryByte) {
  const std::string line("{\"a\":\xff\0}", 8);
  const v1::FromAgent wire = ToWire(
      UpMessage(RankEvents{{{.key = {"j", 2}, .rank = 3, .seq = 4, .time_ns = 5, .line = line}}}));
  ASSERT_EQ(wire.events().events_size(), 1);
  const v1::RankEvent& event = wire.events().events(0);
  EXPECT_EQ(event.key().job_id(), "j");
  EXPECT_EQ(event.key().attempt(), 2);
  EXPECT_EQ(event.rank(), 3);
  EXPECT_EQ(event.seq(), 4u);
  EXPECT_EQ(event.time_ns(), 5);
  EXPECT_EQ(event.line(), line);
}

TEST(WireTest, AStartArrivesWhole) {
  v1::ToAgent wire;
  v1::StartAttempt* const start = wire.mutable_start();
  start->mutable_key()->set_job_id("j");
  start->mutable_key()->set_attempt(1);
  start->set_ranks(2);
  start->add_places()->set_rank(1);
  start->add_rank_nodes("a");
  start->add_rank_nodes("b");
  start->add_comm_backends("mpi");
  (*start->mutable_phase_deadlines_ns())["timed"] = 7;
  v1::AssignedCase* const one = start->add_cases();
  one->set_index(9);
  one->set_case_id("gemm:v1:m=4");
  (*one->mutable_params())["m"].set_integer(4);
  start->add_cpus(6);
  v1::LaunchHost* const host = start->mutable_plan()->add_hosts();
  host->set_host("pnode0");
  host->set_node("a");
  host->set_slots(3);
  start->mutable_plan()->add_head_addresses("10.0.0.1");
  start->mutable_plan()->set_interface("eth0");
  start->mutable_plan()->set_yield_when_idle(true);
  const absl::StatusOr<DownMessage> read = FromWire(wire);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto& got = std::get<StartAttempt>(*read);
  EXPECT_EQ(ToString(got.key), "j/1");
  EXPECT_EQ(got.places.at(0).rank, 1);
  EXPECT_THAT(got.rank_nodes, ElementsAre("a", "b"));
  EXPECT_THAT(got.comm_backends, ElementsAre("mpi"));
  EXPECT_EQ(got.phase_deadlines_ns.at("timed"), 7);
  EXPECT_EQ(got.cases.at(0).index, 9);
  EXPECT_EQ(got.cases.at(0).params.at("m"), Value(std::int64_t{4}));
  EXPECT_THAT(got.cpus, ElementsAre(6));
  ASSERT_EQ(got.plan.hosts.size(), 1u);
  EXPECT_EQ(got.plan.hosts[0].host, "pnode0");
  EXPECT_EQ(got.plan.hosts[0].node, "a");
  EXPECT_EQ(got.plan.hosts[0].slots, 3);
  EXPECT_THAT(got.plan.head_addresses, ElementsAre("10.0.0.1"));
  EXPECT_EQ(got.plan.interface, "eth0");
  EXPECT_TRUE(got.plan.yield_when_idle);
}

TEST(WireTest, DaemonsGoBothWays) {
  const v1::FromAgent wanted = ToWire(UpMessage(StartDaemon{{"j", 2}, "pnode1", {" orted", "x"}}));
  EXPECT_EQ(wanted.start_daemon().key().attempt(), 2);
  v1::ToAgent down;
  *down.mutable_start_daemon() = wanted.start_daemon();
  absl::StatusOr<DownMessage> read = FromWire(down);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::get<StartDaemon>(*read).host, "pnode1");
  EXPECT_THAT(std::get<StartDaemon>(*read).args, ElementsAre(" orted", "x"));

  const v1::FromAgent ended = ToWire(UpMessage(DaemonEnded{{"j", 2}, "pnode1", 137, "killed"}));
  *down.mutable_daemon_ended() = ended.daemon_ended();
  read = FromWire(down);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(std::get<DaemonEnded>(*read).key.job_id, "j");
  EXPECT_EQ(std::get<DaemonEnded>(*read).exit_code, 137);
  EXPECT_EQ(std::get<DaemonEnded>(*read).cause, "killed");
}

// The other end ends the connection over a string that is not UTF-8.
TEST(WireTest, WhatAForeignLauncherSaysCannotEndTheConnection) {
  const v1::FromAgent ended = ToWire(UpMessage(DaemonEnded{{"j", 2}, "p", 1, "no \xFF route"}));
  const v1::FromAgent wanted = ToWire(UpMessage(StartDaemon{{"j", 2}, "p\xFF", {"a\xC3"}}));
  v1::FromAgent read;
  EXPECT_TRUE(read.ParseFromString(wanted.SerializeAsString()));
  EXPECT_EQ(read.start_daemon().args(0), "a?");
  EXPECT_TRUE(read.ParseFromString(ended.SerializeAsString()));
  EXPECT_EQ(read.daemon_ended().cause(), "no ? route");
}

TEST(WireTest, WhatIsNotKnownIsAnError) {
  EXPECT_EQ(FromWire(v1::ToAgent()).status().code(), absl::StatusCode::kInvalidArgument);
  v1::ToAgent wire;
  (*wire.mutable_start()->add_cases()->mutable_params())["m"];
  EXPECT_FALSE(FromWire(wire).ok());
}

}  // namespace
}  // namespace param::agent
