#pragma once
// NodeService and FleetService.

#include <string>
#include <vector>

#include "param/v1/node.grpc.pb.h"
#include "server/rpc/context.h"

namespace param {

class NodeServiceImpl final : public v1::NodeService::CallbackService {
 public:
  explicit NodeServiceImpl(const RpcContext& context) : context_(context) {}
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* call,
                                 const v1::ListNodesRequest* request,
                                 v1::ListNodesResponse* response) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* call,
                                  const v1::DrainRequest* request,
                                  v1::NodeResponse* response) override;
  grpc::ServerUnaryReactor* Resume(grpc::CallbackServerContext* call,
                                   const v1::ResumeRequest* request,
                                   v1::NodeResponse* response) override;
  grpc::ServerUnaryReactor* Label(grpc::CallbackServerContext* call,
                                  const v1::LabelRequest* request,
                                  v1::NodeResponse* response) override;

 private:
  const RpcContext& context_;
};

// What the coordinator says of itself, besides its counts.
struct FleetFacts {
  std::string listen, http, store;
  bool insecure = false;
  std::int64_t started_ns = 0;
  std::vector<std::string> warnings;
};

class FleetServiceImpl final : public v1::FleetService::CallbackService {
 public:
  FleetServiceImpl(const RpcContext& context, const FleetFacts& facts)
      : context_(context), facts_(facts) {}
  grpc::ServerUnaryReactor* Info(grpc::CallbackServerContext* call, const v1::InfoRequest* request,
                                 v1::InfoResponse* response) override;

 private:
  const RpcContext& context_;
  const FleetFacts& facts_;
};

}  // namespace param
