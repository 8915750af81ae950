#pragma once
// One watcher of a job: the coordinator's events, translated, to a client that may be slow or gone.

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "param/v1/job.pb.h"
#include "proto/catalog/cases.h"
#include "server/rpc/context.h"

namespace param {

// Events that may wait for a reader that does not read before it is dropped with
// RESOURCE_EXHAUSTED. One that goes on reading may fall behind by a burst that holds every case of
// the largest job (kMaxCases): the cases are the coordinator's, only pointers wait.
inline constexpr std::size_t kWatchQueue = 256;
inline constexpr std::size_t kWatchBurst = 16384;
inline constexpr absl::Duration kWatchPatience = absl::Seconds(5);  // for one write
static_assert(kWatchBurst > kMaxCases);

// The reactor owns itself: it dies in OnDone.
grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(const RpcContext& context,
                                                   const std::string& job_id,
                                                   std::uint64_t after_seq);

}  // namespace param
