// Collective operations over all ranks of a job.

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/catalog/collective_math.h"
#include "proto/catalog/spec.h"
#include "proto/catalog/values.h"

namespace param {

const BenchmarkSpec& CollectiveSpec();

namespace {

constexpr double kLargestSize = 1099511627776;  // 1 TiB
constexpr double kLargestRank = 65535;

constexpr absl::string_view kDtypes[] = {"i8",   "u8",  "i32", "i64",    "f16",
                                         "bf16", "f32", "f64", "f8e4m3", "f8e5m2"};
constexpr absl::string_view kRedops[] = {"sum", "prod", "min", "max", "avg"};

constexpr ParamSpec kParams[] = {
    {"op", ParamType::kChoice, ParamRole::kCase, "all_reduce", 0, 0, kCollectiveOpNames,
     "the operation"},
    {"size",
     ParamType::kBytes,
     ParamRole::kCase,
     "1M",
     1,
     kLargestSize,
     {},
     "bytes that one rank holds at its larger side, see Sizes"},
    {"dtype", ParamType::kChoice, ParamRole::kCase, "f32", 0, 0, kDtypes, "element type"},
    {"redop", ParamType::kChoice, ParamRole::kCase, "sum", 0, 0, kRedops,
     "how reducing operations combine elements"},
    {"root",
     ParamType::kInt,
     ParamRole::kCase,
     "0",
     0,
     kLargestRank,
     {},
     "root of broadcast, reduce, gather, scatter, incast and multicast"},
    {"in_place",
     ParamType::kBool,
     ParamRole::kCase,
     "false",
     0,
     0,
     {},
     "the result lies where the input lies"},
    {"split", ParamType::kChoice, ParamRole::kCase, "even", 0, 0, kSplitNames,
     "how all_gather_v, reduce_scatter_v and all_to_allv deal out their elements"},
    {"peers",
     ParamType::kString,
     ParamRole::kCase,
     "all",
     0,
     0,
     {},
     "sources of incast, destinations of multicast: all, 0+2+3 or 1:3"},
    {"inflight",
     ParamType::kInt,
     ParamRole::kCase,
     "1",
     1,
     1024,
     {},
     "operations under way at once, in mode pipelined"},
    {"buffers",
     ParamType::kInt,
     ParamRole::kCase,
     "1",
     1,
     1024,
     {},
     "sets of buffers that the iterations take in turn, so that data is not always in a cache"},
    {"barrier",
     ParamType::kBool,
     ParamRole::kCase,
     "true",
     0,
     0,
     {},
     "the ranks meet before each sample, outside its time"},
};

constexpr absl::string_view kExamples[] = {
    "--nodes 4 --size 8:64M:x8",
    "--nodes 2 --op all_reduce,all_to_all --size 8,16M --dtype f32,bf16",
    "--nodes 4 --op all_to_allv --split zipf --size 1M --backend gloo",
    "--nodes 2 --mode pipelined --inflight 4 --size 64K",
};

constexpr absl::string_view kDescription = R"(
All ranks of the job run one collective operation together, through the communication backend. A sample
is the time of one operation on one rank; the case's sample i is the slowest rank's, since the operation
is over when its last rank is. Before each sample the ranks meet in a barrier of the same communicator,
outside the time (`--no-barrier` leaves that out).

**Sizes.** `size` is what one rank holds at its larger side, as in nccl-tests and PARAM: the whole vector of
all_reduce, reduce and broadcast; the gathered whole of all_gather and gather; the whole input of
reduce_scatter and scatter; everything that one rank sends in all_to_all and all_to_allv. For incast and
multicast it is one message. OSU's size is `bytes_per_rank` instead, one rank's share. Where S is shared
out it is rounded down to a whole number of elements for each rank; `bytes_total` and `bytes_per_rank`
tell what was really moved, and rates count that. A size too small for one element per share is SKIPPED
with the least size that would do, so there are no rows of zero bytes; one that is no whole number of
elements fails its case.

**Formulas.** algbw = bytes / time, where bytes is `bytes_total`: S rounded as above; for all_to_allv the most
that any rank sends or receives; for incast and multicast all messages together. busbw = algbw * F, with
W ranks: F = 2 (W-1) / W for all_reduce, (W-1) / W for all_gather, reduce_scatter, all_to_all, gather
and scatter, for uneven shares the part of the bytes that leaves or reaches the busiest rank, 1 for broadcast, reduce, incast and multicast (nccl-tests, PERFORMANCE.md).
It is the rate that an algorithm of messages between pairs needs at least on each link; it is never
clamped, so where the network itself reduces it can pass the rate of the link.

**Uneven shares.** `split` deals out the elements of all_gather_v, reduce_scatter_v and of each sender of
all_to_allv: `even`; `zipf`, in proportion to 1/k; `hot`, half of all to one rank; `zero_rows`, nothing to every
second rank; `zero_next`, nothing to the rank after the sender (PARAM's --include-0B). Which rank gets
which share is drawn from `seed`.

**Verification.** Before the time is taken, every rank's input is filled with numbers that depend on its rank
and on the index, chosen so that their sum, product or average is exact in any order, and every output
element is compared with what it must be exactly. Only avg of floats may differ by W + 2 rounding errors,
since libraries may scale before they add. With `--inflight` the check goes through requests too. A failed
check makes the case WRONG, with rank, index, expected and got. In place, the timed iterations work on what
the last one left, so floats may have grown to infinity.

**One buffer.** broadcast and multicast work on one buffer; `in_place` does not apply and makes their case
SKIPPED, as it does for incast and barrier. So does a `redop` other than sum, a `root` other than 0,
a `split` other than even or `peers` other than all with an operation that has none, and a size or type of
barrier: such cases would only repeat another.
)";

double ScalarOr(const Scalars& scalars, absl::string_view name) {
  const auto it = scalars.find(name);
  return it == scalars.end() ? std::numeric_limits<double>::quiet_NaN() : it->second;
}

constexpr MetricSpec kMetrics[] = {
    // Ranks that are no peers of incast or multicast give none.
    {"time", "s", false, "time of one operation, one sample per iteration and rank", nullptr,
     false},
    {"algbw", "B/s", true, "bytes_total / time",
     [](const Params&, const Scalars& scalars, double time_s) {
       return ScalarOr(scalars, "bytes_total") / time_s;
     }},
    {"busbw", "B/s", true, "algbw * F, the rate on each link",
     [](const Params&, const Scalars& scalars, double time_s) {
       return ScalarOr(scalars, "bytes_total") * ScalarOr(scalars, "bus_factor") / time_s;
     }},
    {"bytes_total", "B", true, "what the operation moves, see Formulas",
     [](const Params&, const Scalars& scalars, double) {
       return ScalarOr(scalars, "bytes_total");
     }},
    {"bytes_per_rank", "B", true, "one rank's share of it",
     [](const Params&, const Scalars& scalars, double) {
       return ScalarOr(scalars, "bytes_per_rank");
     }},
};

// Source and destination of a rank, as often as there are sets of buffers.
absl::StatusOr<Footprint> CollectiveFootprint(const Params& params, int ranks) {
  const std::int64_t size = IntParam(params, "size", 0);
  const std::int64_t sets =
      std::max(IntParam(params, "buffers", 1), IntParam(params, "inflight", 1));
  const auto op = CollectiveOpFromName(TextParam(params, "op", ""));
  // Source, destination, and what a library that composes the operation needs besides. With uneven
  // shares one rank may get nearly everything, as the root of incast does.
  const bool gathers = op == CollectiveOp::kIncast || TextParam(params, "split", "even") != "even";
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(size, gathers ? std::int64_t{ranks} + 2 : 3, &bytes) ||
      __builtin_mul_overflow(bytes, sets, &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--size ", size, " with ", sets, " sets of buffers is more than 2^63 bytes"));
  }
  constexpr std::int64_t kStaging = 16 << 20;  // filling and checking go piece by piece
  return Footprint{kStaging, bytes};
}

}  // namespace

const BenchmarkSpec& CollectiveSpec() {
  static const auto* const spec =
      new BenchmarkSpec{"collective",          1,       "one collective operation over all ranks",
                        kDescription,          kParams, kMetrics,
                        CollectiveFootprint,   {},      kExamples,
                        Pooling::kSlowestRank,
                        /*needs_comm=*/true};
  return *spec;
}

}  // namespace param
