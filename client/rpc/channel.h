#pragma once
// Inside client/rpc: the gRPC channel and its stubs.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

#include "client/rpc/connection.h"
#include "param/v1/job.grpc.pb.h"
#include "param/v1/node.grpc.pb.h"
#include "param/v1/result.grpc.pb.h"

namespace param {

struct Connection::Channel {
  explicit Channel(const std::string& target);

  std::shared_ptr<grpc::Channel> channel;
  v1::JobService::Stub jobs;
  v1::NodeService::Stub nodes;
  v1::FleetService::Stub fleet;
  v1::ResultService::Stub results;
};

inline std::chrono::system_clock::time_point After(absl::Duration duration) {
  return std::chrono::system_clock::now() + absl::ToChronoMicroseconds(duration);
}

}  // namespace param
