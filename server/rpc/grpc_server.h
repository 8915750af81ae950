#pragma once
// The coordinator's port: all services on one address.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/context.h"
#include "server/rpc/node_service.h"

namespace param {

class GrpcServer {
 public:
  // Listens on `address` ("127.0.0.1:7700"; port 0: any free). `facts.listen` is filled with what
  // was bound. ALREADY_EXISTS names an address that is taken.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const RpcContext& context,
                                                           const std::string& address,
                                                           FleetFacts& facts);
  ~GrpcServer();
  // Ends all calls within `grace`; the loop and the readers must still run.
  void Shutdown(absl::Duration grace);

 private:
  struct Parts;
  explicit GrpcServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace param
