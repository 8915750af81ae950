#include "server/rpc/grpc_server.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "server/rpc/agent_service.h"
#include "server/rpc/job_service.h"
#include "server/rpc/result_service.h"

namespace param {
namespace {
constexpr int kMaxMessageBytes = 64 << 20;
constexpr int kKeepaliveMs = 30'000;
}  // namespace

struct GrpcServer::Parts {
  Parts(const RpcContext& context, const FleetFacts& facts)
      : jobs(context), nodes(context), fleet(context, facts), results(context), agents(context) {}
  JobServiceImpl jobs;
  NodeServiceImpl nodes;
  FleetServiceImpl fleet;
  ResultServiceImpl results;
  AgentServiceImpl agents;
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
GrpcServer::~GrpcServer() { Shutdown(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const RpcContext& context,
                                                              const std::string& address,
                                                              FleetFacts& facts) {
  auto parts = std::make_unique<Parts>(context, facts);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second coordinator must fail
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.RegisterService(&parts->jobs);
  builder.RegisterService(&parts->nodes);
  builder.RegisterService(&parts->fleet);
  builder.RegisterService(&parts->results);
  builder.RegisterService(&parts->agents);
  parts->server = builder.BuildAndStart();
  if (parts->server == nullptr || port == 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("cannot listen on ", address, ": the address is taken or not this machine's"));
  }
  facts.listen = absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(parts)));
}

void GrpcServer::Shutdown(absl::Duration grace) {
  if (parts_ == nullptr || parts_->server == nullptr) return;
  parts_->server->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  parts_->server->Wait();
  parts_->server.reset();
}

}  // namespace param
