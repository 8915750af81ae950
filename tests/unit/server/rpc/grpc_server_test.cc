#include "server/rpc/grpc_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/server/rpc/rpc_fixture.h"

namespace param {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(RpcTest, BoundPortIsTold) {
  EXPECT_THAT(address(), StartsWith("127.0.0.1:"));
  EXPECT_THAT(address(), Not(StartsWith("127.0.0.1:0")));
}

TEST_F(RpcTest, TakenAddressIsAnErrorThatNamesIt) {
  FleetFacts facts;
  const auto second = GrpcServer::Start(context_, address(), facts);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address()));
  EXPECT_EQ(facts.listen, "");
  EXPECT_TRUE(Submit(Gemm(1)).ok());  // the first goes on
}

TEST_F(RpcTest, ShutdownReturnsWithOpenStreams) {
  const auto agent = Connected("n1");
  const auto job = Submit(Gemm(2));  // waits for a second node
  ASSERT_TRUE(job.ok()) << job.status();
  PlayedWatcher watcher(address(), job->job_id());
  v1::JobEvent event;
  ASSERT_TRUE(watcher.Next(&event));
  server_->Shutdown(absl::Milliseconds(50));
  EXPECT_FALSE(agent->Finish().ok());
  watcher.ReadToEnd();
  EXPECT_FALSE(watcher.Finish().ok());
  server_->Shutdown(absl::Milliseconds(50));  // once more is harmless
}

TEST_F(RpcTest, AddressIsFreeAfterShutdown) {
  const std::string address = this->address();
  server_->Shutdown(absl::ZeroDuration());
  auto again = GrpcServer::Start(context_, address, facts_);
  ASSERT_TRUE(again.ok()) << again.status();
  server_ = *std::move(again);
  EXPECT_EQ(facts_.listen, address);
  EXPECT_TRUE(Submit(Gemm(1)).ok());
}

}  // namespace
}  // namespace param
