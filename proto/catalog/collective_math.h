#pragma once
// Sizes, shares and bandwidths of collectives. Pure.
//
// The size S of a case is, as in nccl-tests, what one rank holds at its larger side: the whole
// vector of all_reduce, reduce, broadcast; the gathered whole of all_gather and gather; the whole
// input of reduce_scatter and scatter; all that one rank sends in all_to_all. For incast and
// multicast it is one message. W is the number of ranks, e the bytes of an element.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace param {

// The operations, as users and comm backends call them, in the order of CollectiveOp.
inline constexpr absl::string_view kCollectiveOpNames[] = {
    "all_reduce", "all_gather",  "all_gather_v", "reduce_scatter", "reduce_scatter_v",
    "all_to_all", "all_to_allv", "broadcast",    "reduce",         "gather",
    "scatter",    "incast",      "multicast",    "barrier"};

enum class CollectiveOp {
  kAllReduce,
  kAllGather,
  kAllGatherV,
  kReduceScatter,
  kReduceScatterV,
  kAllToAll,
  kAllToAllV,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kIncast,
  kMulticast,
  kBarrier,
};

absl::string_view CollectiveOpName(CollectiveOp op);
std::optional<CollectiveOp> CollectiveOpFromName(absl::string_view name);

// Combines elements (all_reduce, reduce, reduce_scatter, reduce_scatter_v).
bool Reduces(CollectiveOp op);
// Has a root (broadcast, reduce, gather, scatter, incast, multicast).
bool HasRoot(CollectiveOp op);
// Works on one buffer in every library, so that in place is all there is: broadcast, multicast.
bool OneBuffer(CollectiveOp op);
// Can be asked for in place.
bool TakesInPlace(CollectiveOp op);
// Takes uneven shares: all_gather_v, reduce_scatter_v, all_to_allv.
bool TakesSplit(CollectiveOp op);

// Takes a list of peers: incast, multicast.
bool TakesPeers(CollectiveOp op);

// How uneven operations deal out their elements.
enum class Split {
  kEven,      // as equal as whole elements allow: the first ranks get one more
  kZipf,      // share k is in proportion to 1 / (k + 1), in an order of ranks that the seed draws
  kHot,       // one rank, drawn by the seed, gets half of all, the others share the rest
  kZeroRows,  // every second rank gets nothing
  // PARAM's --include-0B: the rank after one's own gets nothing, the others the same, and one's own
  // what is left over too.
  kZeroNext,
};
inline constexpr absl::string_view kSplitNames[] = {"even", "zipf", "hot", "zero_rows",
                                                    "zero_next"};
std::optional<Split> SplitFromName(absl::string_view name);

// `total` elements dealt out to `ranks`; the shares add up to it exactly. `row`, the sender, varies
// the order (which rank is first, which is hot), so that the rows of a matrix differ.
std::vector<std::int64_t> DealOut(Split split, std::int64_t total, int ranks, int row,
                                  std::uint64_t seed);

// "0+2+4", "0,2,4", "1:3" (both ends), "5"; the order is kept, what comes twice counts once.
// INVALID_ARGUMENT names the part that is no rank below `ranks`.
absl::StatusOr<std::vector<int>> ParseRanks(absl::string_view text, int ranks);

// What a case is asked to do.
struct CollectiveRequest {
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::int64_t size = 0;  // S as asked for, bytes
  std::int64_t element_bytes = 4;
  int ranks = 1;
  int root = 0;
  Split split = Split::kEven;
  std::uint64_t seed = 0;
  std::vector<int> peers = {};  // incast's sources, multicast's destinations; empty: all. Any root
                                // among them is left out.
};

// The same on one rank. Counts are in elements.
struct CollectiveLayout {
  std::int64_t src = 0, dst = 0;     // what this rank's operands hold; equal with OneBuffer
  std::vector<std::int64_t> counts;  // all_gather_v, reduce_scatter_v: by rank
  std::vector<std::int64_t> send_counts, recv_counts;  // all_to_allv
  std::vector<std::int64_t> peers;                     // incast's sources, multicast's destinations
  // S as it is: rounded down to what every rank can have a whole, equal share of. all_to_allv: the
  // most that a rank sends or receives. incast, multicast: all messages together.
  std::int64_t bytes = 0;
  std::int64_t bytes_per_rank = 0;  // a rank's share where S is shared out, else S
  // busbw / algbw: BusFactor(), or with uneven shares the bytes that leave or reach the busiest
  // rank over `bytes`, which is the same where shares are even.
  double bus_factor = 0;
};

// Errors: INVALID_ARGUMENT when nobody is left among the peers, for a root or peer out of range, a
// size that is no whole number of elements, one rank alone; UNIMPLEMENTED, so that the rest of a
// sweep goes on, for a size of less than one element per share.
absl::StatusOr<CollectiveLayout> LayOut(const CollectiveRequest& request, int rank);

// busbw / algbw (nccl-tests, doc/PERFORMANCE.md): 2 (W - 1) / W for all_reduce; (W - 1) / W for
// all_gather, reduce_scatter, all_to_all, gather, scatter and their uneven forms; 1 for broadcast,
// reduce, incast, multicast. NaN for barrier, which moves nothing.
double BusFactor(CollectiveOp op, int ranks);

}  // namespace param
