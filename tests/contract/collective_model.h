#pragma once
// What each rank gives to a collective and what it must get, in whole numbers that every element
// type holds exactly, whatever the order of a reduction. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/backend/kit_collective.h"

namespace param {

// One collective as all ranks see it.
struct CollectiveCase {
  kit::CollectiveKind kind = kit::CollectiveKind::kBarrier;
  param_dtype dtype = PARAM_DTYPE_F32;
  kit::RedOp redop = kit::RedOp::kSum;
  bool in_place = false;
  std::int32_t root = 0;
  std::size_t n = 0;  // elements: of the block that one rank gives another
  // Rank by rank: all_gather_v, reduce_scatter_v. Empty otherwise.
  std::vector<std::int64_t> counts;
  // all_to_allv: [from * ranks + to].
  std::vector<std::int64_t> matrix;
  std::vector<std::int32_t> peers;  // incast, multicast

  bool reduces() const;
  // Works on the one operand "data".
  bool one_buffer() const;
  // "reduce_scatter f16 max in place n=7 root=1", for messages.
  std::string Name() const;
};

// A case of this kind. `step` varies what is left open: root, counts (some of them zero), peers.
CollectiveCase MakeCase(kit::CollectiveKind kind, param_dtype dtype, kit::RedOp redop,
                        bool in_place, std::size_t n, std::size_t step, std::int32_t ranks);

// Where a rank's operands lie, in elements. `shared`: both in one buffer, that of the larger.
struct Placement {
  std::size_t src = 0, dst = 0;
  bool shared = false;
  std::size_t src_at = 0, dst_at = 0;
};
Placement PlacementOf(const CollectiveCase& c, std::int32_t rank, std::int32_t ranks);

// The element `i` of the operand src (or data) of `rank`. REQUIRES: at most 8 ranks, so that no sum
// leaves the narrowest type.
std::int64_t InputAt(const CollectiveCase& c, std::int32_t rank, std::size_t i, std::int32_t ranks);
// The element `i` of dst (or data) of `rank` afterwards; nothing where it must stay as it was.
std::optional<std::int64_t> ResultAt(const CollectiveCase& c, std::int32_t rank, std::size_t i,
                                     std::int32_t ranks);

// A whole number as an element, and back for messages.
void PutElement(param_dtype dtype, std::int64_t value, void* to);
std::string ElementText(param_dtype dtype, const void* from);

// Owns the attributes and tensors of a case's descriptor for one rank. Not copyable.
class CaseDesc {
 public:
  CaseDesc(const CollectiveCase& c, std::int32_t rank, std::int32_t ranks);
  // "send" or "recv" of n elements.
  CaseDesc(bool send, param_dtype dtype, std::size_t n, std::int32_t peer, std::int32_t tag);
  CaseDesc(const CaseDesc&) = delete;
  CaseDesc& operator=(const CaseDesc&) = delete;
  const param_op_desc& desc() const { return desc_; }

 private:
  void Int(const char* name, std::int64_t value, param_attr_kind kind = PARAM_ATTR_INT);
  void Ints(const char* name, const std::vector<std::int64_t>& values);
  void Tensor(const char* name, param_dtype dtype, std::size_t elements);
  void Finish(const char* name);

  std::vector<std::int64_t> first_, second_;
  std::vector<param_attr> attrs_;
  std::vector<param_tensor> tensors_;
  param_op_desc desc_ = {};
};

}  // namespace param
