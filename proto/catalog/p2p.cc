// Messages between pairs of ranks.

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/catalog/spec.h"
#include "proto/catalog/values.h"

namespace param {

const BenchmarkSpec& P2pSpec();

namespace {

constexpr double kLargestSize = 1099511627776;  // 1 TiB

constexpr absl::string_view kPatterns[] = {"one2one", "pairwise", "matrix"};
constexpr absl::string_view kTests[] = {"ping", "ping_pong", "uni", "bi"};

constexpr ParamSpec kParams[] = {
    {"pattern", ParamType::kChoice, ParamRole::kCase, "one2one", 0, 0, kPatterns,
     "who talks to whom: one pair, several at once, or every pair one after the other"},
    {"test", ParamType::kChoice, ParamRole::kCase, "ping_pong", 0, 0, kTests,
     "what a pair does in one iteration"},
    {"size", ParamType::kBytes, ParamRole::kCase, "8", 1, kLargestSize, {}, "bytes of a message"},
    {"window",
     ParamType::kInt,
     ParamRole::kCase,
     "64",
     1,
     4096,
     {},
     "messages under way at once in uni and bi"},
    {"src",
     ParamType::kString,
     ParamRole::kCase,
     "auto",
     0,
     0,
     {},
     "sources: 0+2, 0:3; auto is rank 0, or the first half of the ranks with pairwise"},
    {"dst",
     ParamType::kString,
     ParamRole::kCase,
     "auto",
     0,
     0,
     {},
     "destinations, one for each source; auto is rank 1, or the second half with pairwise"},
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
    "--nodes 2 --size 1:4M:x4",
    "--nodes 2 --test uni,bi --size 64K,4M",
    "--nodes 4 --pattern pairwise --test uni --size 1M",
    "--nodes 4 --pattern matrix --size 64K",
};

constexpr absl::string_view kDescription = R"(
Pairs of ranks exchange messages through the communication backend, as in PARAM's pt2pt and OSU's
point-to-point tests. Of a pair the end reports that can tell; the other ranks only take part in the
barriers and report nothing.

**Tests.** In one iteration
`ping` sends one message; a sample is the receiver's time, from the barrier until it has come.
`ping_pong` sends it there and back; a sample is the source's time, the whole round trip, and `latency` is half
of it.
`uni` has `window` messages under way in one direction, answered by one short message; a sample is the
source's time until the answer, divided by `window`.
`bi` has `window` messages under way in each direction; a sample is the time divided by `window`, of both
ends.

**Patterns.** `one2one` is one pair; `pairwise` runs the i-th source with the i-th destination, all pairs at
once; `matrix` takes every ordered pair in turn while the others wait, and reports for each, with labels
`src` and `dst`, `pair_latency` of a ping-pong and `pair_bandwidth` of `uni`; `test` does not apply to it. A pair
takes 100 iterations of each, or as many as fit into half of `--max-time`, or `--iters`; the noise rules do not
apply.

**Formulas.** bandwidth = size / time for ping and uni, 2 * size / time for bi (both directions), size / latency for
ping_pong; rate = 1 / time messages per second for uni, 2 / time for bi. The case pools the pairs; the
total of a pairwise run is the sum over its sources.

**Verification.** Before the time is taken, the messages of one iteration carry numbers that depend on their
sender and on the index, and each receiver compares what lies in its buffer after the last. A failed check makes the case WRONG.
)";

double Size(const Params& params) { return static_cast<double>(IntParam(params, "size", 0)); }

double NotHere() { return std::numeric_limits<double>::quiet_NaN(); }

bool Matrix(const Params& params) { return TextParam(params, "pattern", "") == "matrix"; }

double Latency(const Params& params, const Scalars&, double time_s) {
  const bool round_trip = TextParam(params, "test", "") == "ping_pong";
  return !Matrix(params) && round_trip ? time_s / 2 : NotHere();
}

double Bandwidth(const Params& params, const Scalars&, double time_s) {
  const std::string test = TextParam(params, "test", "");
  if (Matrix(params)) return NotHere();
  const bool twice = test == "bi" || test == "ping_pong";
  return (twice ? 2 : 1) * Size(params) / time_s;
}

double Rate(const Params& params, const Scalars&, double time_s) {
  const std::string test = TextParam(params, "test", "");
  if (Matrix(params) || (test != "uni" && test != "bi")) return NotHere();
  return (test == "bi" ? 2 : 1) / time_s;
}

constexpr MetricSpec kMetrics[] = {
    {"time", "s", false, "time of one message, of ping_pong the round trip", nullptr, false},
    {"latency", "s", false, "half of the round trip of ping_pong", Latency},
    {"bandwidth", "B/s", true, "bytes of a pair / time, see Formulas", Bandwidth},
    {"rate", "1/s", true, "messages of a pair per second, of uni and bi", Rate},
    {"pair_latency", "s", false, "half of the round trip of each pair of a matrix, labels src, dst",
     nullptr, false},
    {"pair_bandwidth", "B/s", true,
     "size * window / time of each pair of a matrix, labels src, dst", nullptr, false},
};

// One buffer to send from and one to receive into; messages of a window share them.
absl::StatusOr<Footprint> P2pFootprint(const Params& params, int /*ranks*/) {
  constexpr std::int64_t kStaging = 16 << 20;
  return Footprint{kStaging, 2 * IntParam(params, "size", 0)};
}

}  // namespace

const BenchmarkSpec& P2pSpec() {
  static const auto* const spec = new BenchmarkSpec{"p2p",
                                                    1,
                                                    "messages between pairs of ranks",
                                                    kDescription,
                                                    kParams,
                                                    kMetrics,
                                                    P2pFootprint,
                                                    {},
                                                    kExamples,
                                                    Pooling::kIndependent,
                                                    /*needs_comm=*/true};
  return *spec;
}

}  // namespace param
