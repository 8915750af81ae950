#pragma once
// One watcher of a job: the coordinator's events, translated, to a client that may be slow or gone.

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <string>

#include "param/v1/job.pb.h"
#include "server/rpc/context.h"

namespace param {

// Events that may wait for a slow reader before it is dropped with RESOURCE_EXHAUSTED.
inline constexpr std::size_t kWatchQueue = 256;

// The reactor owns itself: it dies in OnDone.
grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(const RpcContext& context,
                                                   const std::string& job_id,
                                                   std::uint64_t after_seq);

}  // namespace param
