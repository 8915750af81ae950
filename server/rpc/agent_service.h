#pragma once
// AgentService: one bidirectional stream per agent.

#include "param/v1/agent.grpc.pb.h"
#include "server/rpc/context.h"

namespace param {

class AgentServiceImpl final : public v1::AgentService::CallbackService {
 public:
  explicit AgentServiceImpl(const RpcContext& context) : context_(context) {}
  grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent>* Session(
      grpc::CallbackServerContext* call) override;

 private:
  const RpcContext& context_;
};

}  // namespace param
