#include "server/rpc/node_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/rpc/rpc_fixture.h"

namespace param {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class NodeServiceTest : public RpcTest {
 protected:
  absl::StatusOr<std::vector<v1::Node>> List(const v1::ListNodesRequest& request = {}) {
    const auto response = Call(*nodes_, &v1::NodeService::Stub::List, request);
    if (!response.ok()) return response.status();
    return std::vector<v1::Node>(response->nodes().begin(), response->nodes().end());
  }
  v1::Node Only(const std::string& name) {
    v1::ListNodesRequest request;
    request.add_names(name);
    const auto nodes = List(request);
    EXPECT_TRUE(nodes.ok() && nodes->size() == 1) << nodes.status();
    return nodes.ok() && nodes->size() == 1 ? nodes->front() : v1::Node();
  }
  absl::StatusOr<v1::NodeResponse> Drain(const std::string& node) {
    v1::DrainRequest request;
    request.set_node(node);
    request.set_reason("bad fan");
    return Call(*nodes_, &v1::NodeService::Stub::Drain, request);
  }
  absl::StatusOr<v1::NodeResponse> Resume(const std::string& node) {
    v1::ResumeRequest request;
    request.set_node(node);
    return Call(*nodes_, &v1::NodeService::Stub::Resume, request);
  }
  v1::InfoResponse Info() {
    const auto info = Call(*fleet_, &v1::FleetService::Stub::Info, v1::InfoRequest());
    EXPECT_TRUE(info.ok()) << info.status();
    return info.ok() ? *info : v1::InfoResponse();
  }
};

TEST_F(NodeServiceTest, NodesAreListedAsTheyReportedThemselves) {
  const auto n10 = Connected("n10"), n2 = Connected("n2");
  const auto nodes = List();
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].name(), "n2");
  EXPECT_EQ((*nodes)[1].name(), "n10");
  const v1::Node& node = (*nodes)[0];
  EXPECT_EQ(node.state(), "ready");
  EXPECT_EQ(node.agent_version(), "9.8.7");
  EXPECT_THAT(node.address(), HasSubstr("127.0.0.1"));
  EXPECT_GT(node.last_seen_ns(), 0);
  EXPECT_THAT(node.cpus(), ElementsAre(0, 1));
  EXPECT_EQ(node.inventory().hostname(), "host-n2");
  EXPECT_EQ(node.inventory().memory_bytes(), std::int64_t{8} << 30);
  ASSERT_EQ(node.inventory().backends_size(), 1);
  EXPECT_EQ(node.inventory().backends(0).name(), "cpu");
  EXPECT_TRUE(node.inventory().backends(0).usable());
  EXPECT_EQ(node.inventory().backends(0).preference(), 10);
}

TEST_F(NodeServiceTest, WhoChangesANodeIsLoggedOnceACall) {
  const auto n1 = Connected("n1");
  v1::LabelRequest label;
  label.set_request_id("r-1");
  label.mutable_principal()->set_name("ada");
  label.set_node("n1");
  (*label.mutable_set())["rack"] = "7";
  ASSERT_TRUE(Call(*nodes_, &v1::NodeService::Stub::Label, label).ok());
  ASSERT_TRUE(Drain("n1").ok());
  ASSERT_TRUE(Resume("n1").ok());
  ASSERT_FALSE(Drain("n7").ok());
  ASSERT_TRUE(List().ok());  // changes nothing
  EXPECT_THAT(
      Logged("changing call"),
      ElementsAre(R"(changing call call="NodeService.Label" principal="ada" request_id="r-1" )"
                  R"(object="node n1" code="OK")",
                  R"(changing call call="NodeService.Drain" principal="local" request_id="" )"
                  R"(object="node n1" code="OK")",
                  R"(changing call call="NodeService.Resume" principal="local" request_id="" )"
                  R"(object="node n1" code="OK")",
                  R"(changing call call="NodeService.Drain" principal="local" request_id="" )"
                  R"(object="node n7" code="NOT_FOUND")"));
}

TEST_F(NodeServiceTest, ListTakesNamesAndSelectorAndKnowsNearMisses) {
  v1::Register registration = PlayedAgent::Registration("alpha");
  (*registration.mutable_labels())["rack"] = "r1";
  const auto alpha = Connected(registration), beta = Connected("beta");
  EXPECT_EQ(Only("beta").name(), "beta");
  v1::ListNodesRequest request;
  (*request.mutable_selector())["rack"] = "r1";
  const auto selected = List(request);
  ASSERT_TRUE(selected.ok()) << selected.status();
  ASSERT_EQ(selected->size(), 1u);
  EXPECT_EQ(selected->front().name(), "alpha");
  request.add_names("beta");
  EXPECT_TRUE(List(request)->empty());
  request.add_names("alphaa");
  const absl::Status status = List(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"alphaa\""));
  EXPECT_THAT(std::string(status.message()), HasSubstr("did you mean \"alpha\"?"));
}

TEST_F(NodeServiceTest, DrainedNodeTakesNoJobUntilItIsResumed) {
  const auto agent = Connected("n1");
  const auto drained = Drain("n1");
  ASSERT_TRUE(drained.ok()) << drained.status();
  EXPECT_EQ(drained->node().state(), "drained");
  EXPECT_EQ(drained->node().reason(), "bad fan");
  const auto job = Submit(Gemm(1));
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(agent->Beat(1));
  EXPECT_EQ(Get(job->job_id())->job().state(), v1::QUEUED);
  EXPECT_EQ(Info().jobs_queued(), 1);
  const auto resumed = Resume("n1");
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->node().state(), "ready");
  EXPECT_EQ(agent->AwaitStart().key().job_id(), job->job_id());
}

TEST_F(NodeServiceTest, BusyNodeThatIsDrainedFinishesItsJob) {
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(1));
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::AttemptKey key = agent->AwaitStart().key();
  EXPECT_EQ(Only("n1").state(), "busy");
  EXPECT_EQ(Only("n1").job_id(), job->job_id());
  EXPECT_EQ(Drain("n1")->node().state(), "draining");
  RunToEnd(*agent, key);
  const auto events = WatchToEnd(job->job_id());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().job().state(), v1::SUCCEEDED);
  EXPECT_EQ(Only("n1").state(), "drained");
}

TEST_F(NodeServiceTest, LabelsAreSetAndRemoved) {
  const auto agent = Connected("n1");
  v1::LabelRequest request;
  request.set_node("n1");
  (*request.mutable_set())["rack"] = "r1";
  (*request.mutable_set())["zone"] = "z";
  ASSERT_TRUE(Call(*nodes_, &v1::NodeService::Stub::Label, request).ok());
  request.mutable_set()->clear();
  request.add_remove("zone");
  const auto labelled = Call(*nodes_, &v1::NodeService::Stub::Label, request);
  ASSERT_TRUE(labelled.ok()) << labelled.status();
  EXPECT_EQ(labelled->node().labels_size(), 1);
  EXPECT_EQ(labelled->node().labels().at("rack"), "r1");
  (*request.mutable_set())[""] = "x";
  EXPECT_EQ(Call(*nodes_, &v1::NodeService::Stub::Label, request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(NodeServiceTest, UnknownNodeIsNotFoundByEveryChange) {
  const auto agent = Connected("node1");
  v1::LabelRequest label;
  label.set_node("node2");
  for (const absl::Status& status :
       {Drain("node2").status(), Resume("node2").status(),
        Call(*nodes_, &v1::NodeService::Stub::Label, label).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no node \"node2\""));
  }
}

TEST_F(NodeServiceTest, ChangedInventoryIsShown) {
  const auto agent = Connected("n1");
  v1::FromAgent message;
  *message.mutable_inventory() = PlayedAgent::Registration("n1").inventory();
  message.mutable_inventory()->mutable_backends(0)->set_usable(false);
  message.mutable_inventory()->mutable_backends(0)->set_reason("probe failed");
  ASSERT_TRUE(agent->Send(message));
  ASSERT_TRUE(agent->Beat(1));
  const v1::Node node = Only("n1");
  ASSERT_EQ(node.inventory().backends_size(), 1);
  EXPECT_FALSE(node.inventory().backends(0).usable());
  EXPECT_EQ(node.inventory().backends(0).reason(), "probe failed");
}

TEST_F(NodeServiceTest, InfoCountsNodesAndJobs) {
  const auto n1 = Connected("n1"), n2 = Connected("n2");
  ASSERT_TRUE(Drain("n2").ok());
  ASSERT_TRUE(Submit(Gemm(1)).ok());
  n1->AwaitStart();
  ASSERT_TRUE(Submit(Gemm(2)).ok());
  ASSERT_TRUE(Submit(Gemm(3)).ok());
  const v1::InfoResponse info = Info();
  EXPECT_EQ(info.nodes_total(), 2);
  EXPECT_EQ(info.nodes_ready(), 1);
  EXPECT_EQ(info.jobs_running(), 1);
  EXPECT_EQ(info.jobs_queued(), 2);
  EXPECT_EQ(info.protocol(), kProtocolVersion);
  EXPECT_EQ(info.version(), std::string(Version()));
  EXPECT_EQ(info.revision(), std::string(Revision()));
  EXPECT_EQ(info.listen(), address());
  EXPECT_FALSE(info.insecure());
}

}  // namespace
}  // namespace param
