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

// What waits to be sent is bounded: at kMaxQueued messages or max_queued_bytes bytes the call is
// cancelled, as if the connection were lost. The session then reconnects, says again what was not
// answered and lets the spool send again what was not acknowledged: nothing is lost.
//
// Everything but the constructor belongs to the agent's thread; what gRPC's threads bring is handed
// to it through `post`. The destructor ends an open call and waits for gRPC to be done with it;
// nothing is posted after it.
class GrpcUplink final : public Uplink {
 public:
  // Control messages that may wait; events wait in the spool. A coordinator that takes nothing for
  // so long is as good as gone.
  static constexpr std::size_t kMaxQueued = 4096;
  static constexpr std::size_t kMaxQueuedBytes = 64 << 20;

  struct Options {
    std::string server;  // HOST:PORT or a gRPC target
    std::size_t max_message_bytes = 64 << 20;
    std::size_t max_queued_bytes = kMaxQueuedBytes;  // a message alone may be larger
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
  void OnRead(const Call* call, const v1::ToAgent& message);
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
