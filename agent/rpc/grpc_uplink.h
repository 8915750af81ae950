#pragma once
// The way to the coordinator over gRPC: AgentService.Session.

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>

#include "agent/core/uplink.h"
#include "param/v1/agent.grpc.pb.h"
#include "proto/base/log.h"

namespace param::agent {

// Everything but the constructor belongs to the agent's thread; what gRPC's threads bring is handed
// to it through `post`. The destructor ends an open call and waits for gRPC to be done with it;
// nothing is posted after it.
class GrpcUplink final : public Uplink {
 public:
  struct Options {
    std::string server;  // HOST:PORT or a gRPC target
    std::size_t max_message_bytes = 64 << 20;
  };
  struct Parts {  // outlive this
    const Log* log;
    std::function<void(std::function<void()>)> post;  // to the agent's thread, from any thread
  };
  GrpcUplink(Options options, Parts parts);
  ~GrpcUplink() override;
  GrpcUplink(const GrpcUplink&) = delete;
  GrpcUplink& operator=(const GrpcUplink&) = delete;

  // Before the first Open(). `events` outlives this.
  void SetEvents(UplinkEvents* events) { events_ = events; }

  void Open(const Register& hello) override;
  void Send(UpMessage message) override;
  bool IsIdle() const override;
  void Close() override;

 private:
  class Call;
  void OnRead(const Call* call, v1::ToAgent message);
  void OnIdle(const Call* call);
  void OnDone(const Call* call, const absl::Status& status);

  const Options options_;
  const Parts parts_;
  UplinkEvents* events_ = nullptr;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  std::shared_ptr<Call> call_;
};

}  // namespace param::agent
