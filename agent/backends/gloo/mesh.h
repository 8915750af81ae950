#pragma once
// The connections of one communicator: a Gloo context of which every wait can be aborted.
//
// Gloo of 2022 ends a wait by its own time limit or the peer's end only, and closing a pair from
// another thread leaves the waiter where it is. But its buffers and contexts are interfaces: those
// given to the collectives here pass everything on to Gloo's TCP ones and note who waits.

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/backend/kit.h"

namespace param::gloo_comm {

class Waiters;

// Gives every rank's bytes to all of them, by rank; all give the same number.
using Share = std::function<std::int32_t(std::vector<unsigned char> mine,
                                         std::vector<unsigned char>* all, param_error* err)>;

// Where a mesh is being built.
struct Meeting {
  std::shared_ptr<gloo::transport::Device> device;
  std::vector<unsigned char> id;  // the same on all ranks, 16 bytes
  std::int32_t rank = 0, size = 1;
  std::int32_t most = 1;  // ranks of the largest mesh that is built by the same Share
  std::int64_t deadline_ns = 0;
  std::function<void()> on_connect;  // the addresses are known
};

class Mesh : public gloo::Context {
 public:
  // Connects every pair of ranks. DEADLINE_EXCEEDED and UNAVAILABLE name the rank and its address.
  static std::int32_t Connect(const Meeting& meeting, const Share& share,
                              std::shared_ptr<Mesh>* out, param_error* err);
  ~Mesh() override;
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // From any thread: what waits, and what comes later, ends with ABORTED; the peers see their
  // connections closed.
  void Abort();
  // The first failure there was; OK until then. Any thread.
  std::int32_t Failure(param_error* err) const;

  // Runs `body`, which calls Gloo, and turns what it throws into a code: ABORTED after Abort(),
  // UNAVAILABLE for what the network says, with the peer's address.
  std::int32_t Call(param_error* err, const std::function<void()>& body);

 private:
  Mesh(const Meeting& meeting, std::shared_ptr<gloo::transport::Context> transport);
  std::int32_t ConnectPairs(const Meeting& meeting, const std::vector<unsigned char>& all,
                            param_error* err);
  void ClosePairs();
  std::int32_t Note(kit::Code code, const std::string& what, param_error* err);

  std::shared_ptr<gloo::transport::Context> tcp_;
  std::shared_ptr<Waiters> waiters_;
  mutable std::mutex mutex_;
  param_error failure_ = {};  // guarded by mutex_
};

}  // namespace param::gloo_comm
