#include "proto/catalog/collective_math.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"

namespace param {
namespace {

template <typename Enum>
std::optional<Enum> FromName(absl::Span<const absl::string_view> names, absl::string_view name) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<Enum>(it - names.begin());
}

// Every rank's share is the same whole number of elements.
bool SharedOut(CollectiveOp op) {
  return op == CollectiveOp::kAllGather || op == CollectiveOp::kReduceScatter ||
         op == CollectiveOp::kAllToAll || op == CollectiveOp::kGather ||
         op == CollectiveOp::kScatter;
}

// A mix of two numbers (the finaliser of SplitMix64).
std::uint64_t Mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// A permutation of 0..ranks-1, the same everywhere for one seed.
std::vector<int> Shuffled(int ranks, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[Mix(seed + i) % i]);
  }
  return order;
}

// The ranks by place: who comes first, second, ...
std::vector<int> OrderOf(Split split, int ranks, int row, std::uint64_t seed) {
  if (split != Split::kEven && split != Split::kZeroNext) {
    return Shuffled(ranks, Mix(seed) + Mix(static_cast<std::uint64_t>(row)));
  }
  std::vector<int> order(static_cast<std::size_t>(ranks));
  const int first = split == Split::kEven ? 0 : row;
  for (int place = 0; place < ranks; ++place) {
    order[static_cast<std::size_t>(place)] = (first + place) % ranks;
  }
  return order;
}

// Whoever gets something gets the same, rounding aside: whole numbers, no floating point.
bool Equal(Split split) { return split == Split::kEven || split == Split::kZeroNext; }

// Weight of the rank that comes `place`-th.
double Weight(Split split, int place, int ranks) {
  switch (split) {
    case Split::kEven:
      return 1;
    case Split::kZipf:
      return 1.0 / (place + 1);
    case Split::kHot:
      return place == 0 ? std::max(1, ranks - 1) : 1;
    case Split::kZeroRows:
      return place % 2 == 0 ? 1 : 0;
    case Split::kZeroNext:
      return place == 1 ? 0 : 1;
  }
  return 1;
}

absl::Status CheckSize(const CollectiveRequest& request) {
  const std::int64_t share =
      SharedOut(request.op) ? request.element_bytes * request.ranks : request.element_bytes;
  if (request.size < share) {
    return absl::UnimplementedError(
        absl::StrCat("--size ", request.size, ": ", CollectiveOpName(request.op), " over ",
                     request.ranks, " ranks needs ", share, " B at least, one element of ",
                     request.element_bytes, " B for each share"));
  }
  if (request.size % request.element_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--size ", request.size,
                                                   " is no whole number of elements of ",
                                                   request.element_bytes, " B"));
  }
  return absl::OkStatus();
}

std::int64_t Sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Row r is what rank r sends.
void LayOutAllToAllV(const CollectiveRequest& request, int rank, std::int64_t total,
                     CollectiveLayout* out) {
  std::vector<std::int64_t> received(static_cast<std::size_t>(request.ranks), 0);
  std::vector<std::int64_t> kept(received.size(), 0);
  for (int row = 0; row < request.ranks; ++row) {
    const std::vector<std::int64_t> sent =
        DealOut(request.split, total, request.ranks, row, request.seed);
    for (std::size_t to = 0; to < sent.size(); ++to) received[to] += sent[to];
    kept[static_cast<std::size_t>(row)] = sent[static_cast<std::size_t>(row)];
    out->recv_counts.push_back(sent[static_cast<std::size_t>(rank)]);
    if (row == rank) out->send_counts = sent;
  }
  out->src = total;
  out->dst = Sum(out->recv_counts);
  out->bytes =
      std::max(total, *std::max_element(received.begin(), received.end())) * request.element_bytes;
  out->bytes_per_rank = total / request.ranks * request.element_bytes;
  std::int64_t busiest = 0;
  for (std::size_t r = 0; r < kept.size(); ++r) {
    busiest = std::max(busiest, std::max(total, received[r]) - kept[r]);
  }
  out->bus_factor =
      static_cast<double>(busiest * request.element_bytes) / static_cast<double>(out->bytes);
}

void LayOutPeers(const CollectiveRequest& request, std::int64_t total, CollectiveLayout* out) {
  for (int peer = 0; peer < request.ranks && request.peers.empty(); ++peer) {
    if (peer != request.root) out->peers.push_back(peer);
  }
  for (const int peer : request.peers) {
    if (peer != request.root) out->peers.push_back(peer);
  }
  const auto messages = static_cast<std::int64_t>(out->peers.size());
  out->src = total;
  out->dst = request.op == CollectiveOp::kMulticast ? total : total * messages;
  out->bytes = total * messages * request.element_bytes;
  out->bytes_per_rank = total * request.element_bytes;
}

}  // namespace

absl::string_view CollectiveOpName(CollectiveOp op) {
  return kCollectiveOpNames[static_cast<int>(op)];
}

std::optional<CollectiveOp> CollectiveOpFromName(absl::string_view name) {
  return FromName<CollectiveOp>(kCollectiveOpNames, name);
}

std::optional<Split> SplitFromName(absl::string_view name) {
  return FromName<Split>(kSplitNames, name);
}

bool Reduces(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kReduce ||
         op == CollectiveOp::kReduceScatter || op == CollectiveOp::kReduceScatterV;
}

bool HasRoot(CollectiveOp op) {
  return op == CollectiveOp::kBroadcast || op == CollectiveOp::kReduce ||
         op == CollectiveOp::kGather || op == CollectiveOp::kScatter ||
         op == CollectiveOp::kIncast || op == CollectiveOp::kMulticast;
}

bool OneBuffer(CollectiveOp op) {
  return op == CollectiveOp::kBroadcast || op == CollectiveOp::kMulticast;
}

bool TakesInPlace(CollectiveOp op) {
  return !OneBuffer(op) && op != CollectiveOp::kBarrier && op != CollectiveOp::kIncast;
}

bool TakesSplit(CollectiveOp op) {
  return op == CollectiveOp::kAllGatherV || op == CollectiveOp::kReduceScatterV ||
         op == CollectiveOp::kAllToAllV;
}

bool TakesPeers(CollectiveOp op) {
  return op == CollectiveOp::kIncast || op == CollectiveOp::kMulticast;
}

std::vector<std::int64_t> DealOut(Split split, std::int64_t total, int ranks, int row,
                                  std::uint64_t seed) {
  const std::vector<int> order = OrderOf(split, ranks, row, seed);
  double weights = 0;
  for (int place = 0; place < ranks; ++place) weights += Weight(split, place, ranks);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 0);
  std::vector<std::size_t> takers;  // of what rounding left over
  std::int64_t left = total;
  for (int place = 0; place < ranks; ++place) {
    const auto rank = static_cast<std::size_t>(order[static_cast<std::size_t>(place)]);
    const double weight = Weight(split, place, ranks);
    if (weight <= 0) continue;
    takers.push_back(rank);
    counts[rank] = Equal(split)
                       ? total / static_cast<std::int64_t>(weights)
                       : static_cast<std::int64_t>(static_cast<double>(total) * weight / weights);
    left -= counts[rank];
  }
  if (split == Split::kZeroNext) {
    counts[takers.front()] += left;  // its own
    return counts;
  }
  for (std::size_t i = 0; left > 0; i = (i + 1) % takers.size()) {
    ++counts[takers[i]];
    --left;
  }
  return counts;
}

absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text, int ranks) {
  std::vector<int> out;
  for (const absl::string_view part : absl::StrSplit(text, absl::ByAnyChar("+,"))) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, ':');
    int first = 0, last = 0;
    const bool good = ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &first) &&
                      absl::SimpleAtoi(ends.back(), &last) && first >= 0 && first <= last &&
                      last < ranks;
    if (!good) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", part, "\" is no rank or range of ranks FIRST:LAST within 0 to ", ranks - 1));
    }
    for (int rank = first; rank <= last; ++rank) {
      if (std::find(out.begin(), out.end(), rank) == out.end()) out.push_back(rank);
    }
  }
  return out;
}

absl::StatusOr<CollectiveLayout> LayOut(const CollectiveRequest& request, int rank) {
  if (request.ranks < 2) {
    return absl::InvalidArgumentError(
        "one rank alone has nobody to communicate with: give --nodes 2 or --ranks-per-node 2");
  }
  if (HasRoot(request.op) && (request.root < 0 || request.root >= request.ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--root ", request.root, ": the ranks are 0 to ", request.ranks - 1));
  }
  for (const int peer : request.peers) {
    if (peer >= 0 && peer < request.ranks) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--peers: rank ", peer, "; the ranks are 0 to ", request.ranks - 1));
  }
  CollectiveLayout out;
  if (request.op == CollectiveOp::kBarrier) return out;
  PARAM_RETURN_IF_ERROR(CheckSize(request));
  if (TakesPeers(request.op) && request.peers == std::vector<int>{request.root}) {
    return absl::InvalidArgumentError(
        absl::StrCat("--peers names only the root, rank ", request.root, ": nobody is left"));
  }
  out.bus_factor = BusFactor(request.op, request.ranks);
  const std::int64_t total = request.size / request.element_bytes;
  const std::int64_t share = total / request.ranks;
  const auto whole = [&](std::int64_t src, std::int64_t dst) {
    out.src = src;
    out.dst = dst;
    out.bytes = std::max(src, dst) * request.element_bytes;
    out.bytes_per_rank = std::min(src, dst) * request.element_bytes;
  };
  switch (request.op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kReduce:
    case CollectiveOp::kBroadcast:
      whole(total, total);
      break;
    case CollectiveOp::kAllGather:
    case CollectiveOp::kGather:
      whole(share, share * request.ranks);
      break;
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kScatter:
      whole(share * request.ranks, share);
      break;
    case CollectiveOp::kAllToAll:
      whole(share * request.ranks, share * request.ranks);
      out.bytes_per_rank = share * request.element_bytes;
      break;
    case CollectiveOp::kAllGatherV:
    case CollectiveOp::kReduceScatterV: {
      out.counts = DealOut(request.split, total, request.ranks, 0, request.seed);
      const std::int64_t mine = out.counts[static_cast<std::size_t>(rank)];
      const bool gathers = request.op == CollectiveOp::kAllGatherV;
      out.src = gathers ? mine : total;
      out.dst = gathers ? total : mine;
      out.bytes = total * request.element_bytes;
      out.bytes_per_rank = share * request.element_bytes;
      // Whoever has the smallest share needs the most from the others.
      const std::int64_t least = *std::min_element(out.counts.begin(), out.counts.end());
      out.bus_factor = static_cast<double>(total - least) / static_cast<double>(total);
      break;
    }
    case CollectiveOp::kAllToAllV:
      LayOutAllToAllV(request, rank, total, &out);
      break;
    case CollectiveOp::kIncast:
    case CollectiveOp::kMulticast:
      LayOutPeers(request, total, &out);
      break;
    case CollectiveOp::kBarrier:
      break;
  }
  return out;
}

double BusFactor(CollectiveOp op, int ranks) {
  const double w = ranks;
  switch (op) {
    case CollectiveOp::kAllReduce:
      return 2 * (w - 1) / w;
    case CollectiveOp::kAllGather:
    case CollectiveOp::kAllGatherV:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kReduceScatterV:
    case CollectiveOp::kAllToAll:
    case CollectiveOp::kAllToAllV:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return (w - 1) / w;
    case CollectiveOp::kBroadcast:
    case CollectiveOp::kReduce:
    case CollectiveOp::kIncast:
    case CollectiveOp::kMulticast:
      return 1;
    case CollectiveOp::kBarrier:
      return std::numeric_limits<double>::quiet_NaN();
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace param
