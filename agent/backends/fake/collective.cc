#include "agent/backends/fake/collective.h"

#include <algorithm>

namespace param::fake {
namespace {

using K = kit::CollectiveKind;
using Bytes = std::vector<unsigned char>;

std::size_t Index(std::int32_t rank) { return static_cast<std::size_t>(rank); }

bool IsPeer(const CollectiveView& view) {
  const auto& peers = view.what.peers;
  return std::find(peers.begin(), peers.end(), view.rank) != peers.end();
}

// Elements from one place in one rank's share to one place in dst.
struct Copier {
  const CollectiveView& view;
  const Bytes& given;
  Bytes& out;

  void operator()(std::size_t to, std::int32_t from_rank, std::size_t from,
                  std::size_t count) const {
    const std::size_t size = view.what.size();
    const unsigned char* const share = given.data() + Index(from_rank) * GivenBytes(view);
    if (count > 0) std::memcpy(out.data() + to * size, share + from * size, count * size);
  }
};

// Elements [from, from + count) of all ranks' shares, reduced.
void ReduceInto(const CollectiveView& view, const Bytes& given, std::size_t from, Bytes& out) {
  const kit::Collective& c = view.what;
  Copier{view, given, out}(0, 0, from, c.dst);
  Bytes other(out.size());
  for (std::int32_t r = 1; r < view.ranks; ++r) {
    Copier{view, given, other}(0, r, from, c.dst);
    kit::Reduce(c.redop, c.dtype, out.data(), other.data(), c.dst);
  }
  if (c.redop == kit::RedOp::kAvg) kit::FinishAvg(c.dtype, out.data(), c.dst, view.ranks);
}

void ExchangeBlocks(const CollectiveView& view, const Copier& copy) {
  const std::vector<std::size_t> to = kit::BlockOffsets(view.what.recv_counts);
  for (std::int32_t from = 0; from < view.ranks; ++from) {
    const auto row = view.matrix.begin() + std::ptrdiff_t{from} * view.ranks;
    const std::vector<std::size_t> offsets = kit::BlockOffsets({row, row + view.ranks});
    copy(to[Index(from)], from, offsets[Index(view.rank)],
         static_cast<std::size_t>(row[view.rank]));
  }
}

}  // namespace

bool Reads(const CollectiveView& view) {
  const bool is_root = view.rank == view.what.root;
  switch (view.what.kind) {
    case K::kBarrier:
      return false;
    case K::kBroadcast:
    case K::kScatter:
    case K::kMulticast:
      return is_root;
    case K::kIncast:
      return IsPeer(view);
    default:
      return true;
  }
}

bool Writes(const CollectiveView& view) {
  const bool is_root = view.rank == view.what.root;
  switch (view.what.kind) {
    case K::kBarrier:
      return false;
    case K::kReduce:
    case K::kGather:
    case K::kIncast:
      return is_root;
    case K::kMulticast:
      return IsPeer(view);
    default:
      return true;
  }
}

std::size_t GivenBytes(const CollectiveView& view) {
  const kit::Collective& c = view.what;
  std::size_t elements = c.src;
  if (c.kind == K::kAllGatherV) {
    elements =
        static_cast<std::size_t>(*std::max_element(c.send_counts.begin(), c.send_counts.end()));
  }
  if (c.kind == K::kAllToAllV) {
    for (std::int32_t from = 0; from < view.ranks; ++from) {
      const auto row = view.matrix.begin() + std::ptrdiff_t{from} * view.ranks;
      elements = std::max(elements, kit::internal::Sum({row, row + view.ranks}));
    }
  }
  return elements * c.size();
}

std::int32_t CheckMatrix(const CollectiveView& view, param_error* err) {
  for (std::int32_t from = 0; from < view.ranks; ++from) {
    const std::int64_t sent = view.matrix[Index(from * view.ranks + view.rank)];
    const std::int64_t expected = view.what.recv_counts[Index(from)];
    if (sent == expected) continue;
    return kit::Fail(err, kit::kInvalidArgument,
                     "all_to_allv: rank %d sends %lld elements to rank %d, which expects %lld",
                     from, static_cast<long long>(sent), view.rank,
                     static_cast<long long>(expected));
  }
  return kit::kOk;
}

Bytes ResultOf(const CollectiveView& view, const Bytes& given) {
  const kit::Collective& c = view.what;
  Bytes out(c.dst * c.size());
  const Copier copy{view, given, out};
  const std::size_t n = c.src;
  const auto all = [&](auto&& body) {
    for (std::int32_t r = 0; r < view.ranks; ++r) body(r);
  };
  switch (c.kind) {
    case K::kAllReduce:
    case K::kReduce:
      ReduceInto(view, given, 0, out);
      break;
    case K::kReduceScatter:
      ReduceInto(view, given, Index(view.rank) * c.dst, out);
      break;
    case K::kReduceScatterV:
      ReduceInto(view, given, kit::BlockOffsets(c.send_counts)[Index(view.rank)], out);
      break;
    case K::kBroadcast:
    case K::kMulticast:
      copy(0, c.root, 0, n);
      break;
    case K::kAllGather:
    case K::kGather:
      all([&](std::int32_t r) { copy(Index(r) * n, r, 0, n); });
      break;
    case K::kScatter:
      copy(0, c.root, Index(view.rank) * c.dst, c.dst);
      break;
    case K::kAllToAll: {
      const std::size_t block = n / Index(view.ranks);
      all([&](std::int32_t r) { copy(Index(r) * block, r, Index(view.rank) * block, block); });
      break;
    }
    case K::kAllGatherV: {
      const std::vector<std::size_t> to = kit::BlockOffsets(c.send_counts);
      all([&](std::int32_t r) {
        copy(to[Index(r)], r, 0, static_cast<std::size_t>(c.send_counts[Index(r)]));
      });
      break;
    }
    case K::kAllToAllV:
      ExchangeBlocks(view, copy);
      break;
    case K::kIncast:
      for (std::size_t i = 0; i < c.peers.size(); ++i) copy(i * n, c.peers[i], 0, n);
      break;
    case K::kBarrier:
    case K::kSend:
    case K::kRecv:
      break;
  }
  return out;
}

}  // namespace param::fake
