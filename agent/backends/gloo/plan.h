#pragma once
// A prepared collective, or a send or recv, of one communicator.
//
// Gloo's options hold the memory they work on. They are made at the first use of a place in memory
// and kept: a loop over the same buffers, also over several in turn, makes none.

#include <gloo/transport/unbound_buffer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/backend/kit_collective.h"
#include "agent/backends/gloo/mesh.h"

namespace param::gloo_comm {

// Operands as memory of this process. What an operation does not use may be null.
struct Place {
  unsigned char* src = nullptr;  // or data
  unsigned char* dst = nullptr;
  unsigned char* workspace = nullptr;
  bool operator==(const Place&) const = default;
};

// A plan bound to a place. A send or recv is posted and then waited for; a collective has only the
// second half. One at a time runs one; both throw what Gloo throws.
struct Bound {
  Place place;
  std::function<void()> post;  // null for collectives
  std::function<void()> finish;
  bool in_flight = false;
};

class Plan {
 public:
  // `tag` keeps it apart from what runs at the same time on this mesh; all ranks give the same.
  static std::int32_t Make(const param_op_desc& desc, std::shared_ptr<Mesh> mesh, std::uint32_t tag,
                           std::unique_ptr<Plan>* out, param_error* err);

  const kit::Collective& what() const { return what_; }
  bool is_transfer() const {
    return what_.kind == kit::CollectiveKind::kSend || what_.kind == kit::CollectiveKind::kRecv;
  }
  std::size_t workspace_bytes() const { return workspace_; }
  // How it is done, for the record: "gloo::allreduce", "composed: ...".
  std::string implementation() const;

  // Bound to `place` and not in flight: one from before, or a new one. Valid while it is in flight
  // or until the next call.
  std::shared_ptr<Bound> At(const Place& place);

 private:
  Plan(kit::Collective what, std::shared_ptr<Mesh> mesh, std::uint32_t tag);

  std::size_t WorkspaceBytes() const;
  void Bind(Bound& bound) const;
  void BindReduction(Bound& bound) const;
  void BindGathering(Bound& bound) const;
  void BindExchange(Bound& bound) const;
  void BindReduceScatter(Bound& bound) const;
  void BindPeers(Bound& bound) const;
  void BindTransfer(Bound& bound) const;
  // all_to_all with counts in bytes.
  std::function<void()> MakeAllToAllV(unsigned char* from, std::vector<std::int64_t> sent,
                                      unsigned char* to, std::vector<std::int64_t> received) const;

  const kit::Collective what_;
  const std::shared_ptr<Mesh> mesh_;
  const std::uint32_t tag_;
  const std::size_t workspace_;
  std::vector<std::shared_ptr<Bound>> bound_;
  std::size_t next_evicted_ = 0;
};

}  // namespace param::gloo_comm
