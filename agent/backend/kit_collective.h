#pragma once
// For authors of comm backends: what a collective's descriptor says, checked. Header-only. The
// descriptors themselves are described in param_backend.h.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "agent/backend/kit.h"
#include "agent/backend/kit_reduce.h"

namespace param::kit {

enum class CollectiveKind {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kAllGatherV,
  kReduceScatterV,
  kAllToAllV,
  kIncast,
  kMulticast,
  kBarrier,
  kSend,
  kRecv,
};

inline constexpr const char* kCollectiveNames[] = {
    "all_reduce",     "reduce",           "broadcast",   "all_gather",
    "reduce_scatter", "all_to_all",       "gather",      "scatter",
    "all_gather_v",   "reduce_scatter_v", "all_to_allv", "incast",
    "multicast",      "barrier",          "send",        "recv"};

// A collective as one rank sees it. Counts are in elements.
struct Collective {
  CollectiveKind kind = CollectiveKind::kBarrier;
  param_dtype dtype = PARAM_DTYPE_F32;
  RedOp redop = RedOp::kSum;
  bool in_place = false;
  std::int32_t root = 0;  // of rooted kinds; of send and recv the peer
  std::int32_t tag = 0;   // of send and recv
  std::size_t src = 0;    // elements of the operand src, or of data
  std::size_t dst = 0;    // elements of the operand dst, or of data
  // all_gather_v, reduce_scatter_v: each rank's share. all_to_allv: what goes to each rank.
  std::vector<std::int64_t> send_counts;
  std::vector<std::int64_t> recv_counts;  // all_to_allv: what comes from each
  std::vector<std::int32_t> peers;        // incast: the sources; multicast: the destinations

  std::size_t size() const { return DtypeSize(dtype); }  // bytes of an element
  bool reduces() const {
    return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce ||
           kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kReduceScatterV;
  }
  // Works on one buffer, the operand "data".
  bool one_buffer() const {
    return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kMulticast ||
           kind == CollectiveKind::kSend || kind == CollectiveKind::kRecv;
  }
};

namespace internal {

inline std::int32_t GetCounts(const param_op_desc& desc, const char* name, std::int32_t entries,
                              std::vector<std::int64_t>* out, param_error* err) {
  const param_attr* attr = FindAttr(desc, name);
  if (attr == nullptr || attr->kind != PARAM_ATTR_INT_LIST ||
      attr->count != static_cast<std::size_t>(entries)) {
    return Fail(err, kInvalidArgument, "%s: attribute \"%s\" is not a list of %d counts", desc.name,
                name, entries);
  }
  out->assign(attr->value.ints, attr->value.ints + attr->count);
  std::int64_t sum = 0;
  for (const std::int64_t count : *out) {
    if (count < 0 || __builtin_add_overflow(sum, count, &sum)) {
      return Fail(err, kInvalidArgument, "%s: attribute \"%s\" has a count of %lld", desc.name,
                  name, static_cast<long long>(count));
    }
  }
  return kOk;
}

// incast's sources, multicast's destinations: ranks other than the root, each once.
inline std::int32_t GetPeers(const param_op_desc& desc, const char* name, std::int32_t ranks,
                             Collective* out, param_error* err) {
  const param_attr* attr = FindAttr(desc, name);
  if (attr == nullptr || attr->kind != PARAM_ATTR_INT_LIST) {
    return Fail(err, kInvalidArgument, "%s: attribute \"%s\" is not a list of ranks", desc.name,
                name);
  }
  std::vector<bool> seen(static_cast<std::size_t>(ranks), false);
  for (std::size_t i = 0; i < attr->count; ++i) {
    const std::int64_t peer = attr->value.ints[i];
    if (peer < 0 || peer >= ranks || peer == out->root || seen[static_cast<std::size_t>(peer)]) {
      return Fail(err, kInvalidArgument,
                  "%s: \"%s\" names rank %lld of %d (root %d) or names it twice", desc.name, name,
                  static_cast<long long>(peer), ranks, out->root);
    }
    seen[static_cast<std::size_t>(peer)] = true;
    out->peers.push_back(static_cast<std::int32_t>(peer));
  }
  return kOk;
}

inline std::int32_t GetRank(const param_op_desc& desc, const char* name, std::int32_t ranks,
                            std::int32_t* out, param_error* err) {
  std::int64_t value = 0;
  PARAM_KIT_TRY(GetInt(desc, name, &value, err));
  if (value < 0 || value >= ranks) {
    return Fail(err, kInvalidArgument, "%s: %s is rank %lld of %d", desc.name, name,
                static_cast<long long>(value), ranks);
  }
  *out = static_cast<std::int32_t>(value);
  return kOk;
}

inline std::int32_t GetFlat(const param_op_desc& desc, std::size_t position, const char* name,
                            std::size_t* elements, param_dtype* dtype, param_error* err) {
  const param_tensor* tensor = nullptr;
  std::size_t bytes = 0;
  PARAM_KIT_TRY(GetTensor(desc, position, name, &tensor, err));
  if (tensor == nullptr || !DenseBytes(*tensor, &bytes)) {
    return Fail(err, kInvalidArgument, "%s: tensor \"%s\" is not dense", desc.name, name);
  }
  *dtype = tensor->dtype;
  *elements = bytes / DtypeSize(tensor->dtype);
  return kOk;
}

inline std::size_t Sum(const std::vector<std::int64_t>& counts) {
  std::size_t sum = 0;
  for (const std::int64_t count : counts) sum += static_cast<std::size_t>(count);
  return sum;
}

// What src and dst must measure, given what the descriptor says.
inline bool ShapesFit(const Collective& c, std::int32_t rank, std::int32_t ranks) {
  const auto w = static_cast<std::size_t>(ranks);
  const auto share = [&](const std::vector<std::int64_t>& counts) {
    return static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
  };
  switch (c.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
      return c.src == c.dst;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kGather:
      return c.dst == c.src * w;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kScatter:
      return c.src == c.dst * w;
    case CollectiveKind::kAllToAll:
      return c.src == c.dst && c.src % w == 0;
    case CollectiveKind::kAllGatherV:
      return c.src == share(c.send_counts) && c.dst == Sum(c.send_counts);
    case CollectiveKind::kReduceScatterV:
      return c.src == Sum(c.send_counts) && c.dst == share(c.send_counts);
    case CollectiveKind::kAllToAllV:
      return c.src == Sum(c.send_counts) && c.dst == Sum(c.recv_counts);
    case CollectiveKind::kIncast:
      return c.dst == c.src * c.peers.size();
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kMulticast:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kSend:
    case CollectiveKind::kRecv:
      return true;
  }
  return false;
}

inline std::int32_t KindOf(const param_op_desc& desc, CollectiveKind* out, param_error* err) {
  int i = 0;
  for (const char* const name : kCollectiveNames) {
    if (std::strcmp(name, desc.name) == 0) {
      *out = static_cast<CollectiveKind>(i);
      return kOk;
    }
    ++i;
  }
  return Fail(err, kUnimplemented, "no collective is called \"%s\"", desc.name);
}

inline std::int32_t GetAttrs(const param_op_desc& desc, std::int32_t ranks, Collective* out,
                             param_error* err) {
  using K = CollectiveKind;
  switch (out->kind) {
    case K::kBarrier:
      return CheckAttrs(desc, {}, err);
    case K::kAllReduce:
    case K::kReduceScatter:
      return CheckAttrs(desc, {"redop", "in_place"}, err);
    case K::kAllGather:
    case K::kAllToAll:
      return CheckAttrs(desc, {"in_place"}, err);
    case K::kReduce:
      PARAM_KIT_TRY(CheckAttrs(desc, {"redop", "root", "in_place"}, err));
      return GetRank(desc, "root", ranks, &out->root, err);
    case K::kGather:
    case K::kScatter:
      PARAM_KIT_TRY(CheckAttrs(desc, {"root", "in_place"}, err));
      return GetRank(desc, "root", ranks, &out->root, err);
    case K::kBroadcast:
      PARAM_KIT_TRY(CheckAttrs(desc, {"root"}, err));
      return GetRank(desc, "root", ranks, &out->root, err);
    case K::kAllGatherV:
      PARAM_KIT_TRY(CheckAttrs(desc, {"counts", "in_place"}, err));
      return GetCounts(desc, "counts", ranks, &out->send_counts, err);
    case K::kReduceScatterV:
      PARAM_KIT_TRY(CheckAttrs(desc, {"counts", "redop", "in_place"}, err));
      return GetCounts(desc, "counts", ranks, &out->send_counts, err);
    case K::kAllToAllV:
      PARAM_KIT_TRY(CheckAttrs(desc, {"send_counts", "recv_counts", "in_place"}, err));
      PARAM_KIT_TRY(GetCounts(desc, "send_counts", ranks, &out->send_counts, err));
      return GetCounts(desc, "recv_counts", ranks, &out->recv_counts, err);
    case K::kIncast:
      PARAM_KIT_TRY(CheckAttrs(desc, {"root", "sources"}, err));
      PARAM_KIT_TRY(GetRank(desc, "root", ranks, &out->root, err));
      return GetPeers(desc, "sources", ranks, out, err);
    case K::kMulticast:
      PARAM_KIT_TRY(CheckAttrs(desc, {"root", "destinations"}, err));
      PARAM_KIT_TRY(GetRank(desc, "root", ranks, &out->root, err));
      return GetPeers(desc, "destinations", ranks, out, err);
    case K::kSend:
    case K::kRecv: {
      std::int64_t tag = 0;
      PARAM_KIT_TRY(CheckAttrs(desc, {"peer", "tag"}, err));
      PARAM_KIT_TRY(GetInt(desc, "tag", &tag, err));
      // What every library's tag can hold.
      if (tag < 0 || tag > 32767) {
        return Fail(err, kInvalidArgument, "%s: tag %lld is not within 0 to 32767", desc.name,
                    static_cast<long long>(tag));
      }
      out->tag = static_cast<std::int32_t>(tag);
      return GetRank(desc, "peer", ranks, &out->root, err);
    }
  }
  return kOk;
}

}  // namespace internal

// Reads and checks a descriptor for rank `rank` of `ranks`. UNIMPLEMENTED for a name that is no
// collective, INVALID_ARGUMENT for what does not fit together. What a library can do beyond that is
// the backend's to say.
inline std::int32_t ParseCollective(const param_op_desc& desc, std::int32_t rank,
                                    std::int32_t ranks, Collective* out, param_error* err) {
  PARAM_KIT_TRY(internal::KindOf(desc, &out->kind, err));
  PARAM_KIT_TRY(internal::GetAttrs(desc, ranks, out, err));
  PARAM_KIT_TRY(GetBool(desc, "in_place", &out->in_place, err));
  std::string redop = "sum";
  PARAM_KIT_TRY(GetString(desc, "redop", &redop, err));
  if (!RedOpFromName(redop, &out->redop)) {
    return Fail(err, kInvalidArgument, "%s: no reduction is called \"%s\"", desc.name,
                redop.c_str());
  }
  if (out->kind == CollectiveKind::kBarrier) return kOk;
  if (out->one_buffer()) {
    PARAM_KIT_TRY(internal::GetFlat(desc, 0, "data", &out->src, &out->dtype, err));
    out->dst = out->src;
    return kOk;
  }
  param_dtype other = PARAM_DTYPE_F32;
  PARAM_KIT_TRY(internal::GetFlat(desc, 0, "src", &out->src, &out->dtype, err));
  PARAM_KIT_TRY(internal::GetFlat(desc, 1, "dst", &out->dst, &other, err));
  if (other != out->dtype || !internal::ShapesFit(*out, rank, ranks)) {
    return Fail(err, kInvalidArgument,
                "%s: src of %zu elements of %s and dst of %zu of %s do not fit for rank %d of %d",
                desc.name, out->src, DtypeName(out->dtype), out->dst, DtypeName(other), rank,
                ranks);
  }
  return kOk;
}

// Sums of the counts before each rank: where its block begins, in elements.
inline std::vector<std::size_t> BlockOffsets(const std::vector<std::int64_t>& counts) {
  std::vector<std::size_t> offsets;
  std::size_t at = 0;
  for (const std::int64_t count : counts) {
    offsets.push_back(at);
    at += static_cast<std::size_t>(count);
  }
  return offsets;
}

}  // namespace param::kit
