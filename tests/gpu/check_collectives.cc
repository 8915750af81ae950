// Every operation of the nccl backend with every type and reduction, in place and out of place,
// against what the operation is by definition.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "agent/backend/kit_collective.h"
#include "agent/bench/element.h"
#include "tests/gpu/check_nccl.h"

namespace param::gpu_check {
namespace {

using K = kit::CollectiveKind;

constexpr double kPoison = 99;

struct Case {
  K kind = K::kBarrier;
  bool in_place = false;
  param_dtype dtype = PARAM_DTYPE_F32;
  kit::RedOp redop = kit::RedOp::kSum;
  std::int64_t n = 1;  // elements of the smaller operand
  int ranks = 1;

  const char* name() const { return kit::kCollectiveNames[static_cast<int>(kind)]; }
  bool is_f8() const { return dtype == PARAM_DTYPE_F8E4M3 || dtype == PARAM_DTYPE_F8E5M2; }
  bool reduces() const {
    return kind == K::kAllReduce || kind == K::kReduce || kind == K::kReduceScatter ||
           kind == K::kReduceScatterV;
  }
  int root() const { return ranks - 1; }
  // What a goes to b, in elements: other counts for other pairs, some of them none.
  std::int64_t Share(int a, int b) const { return n * ((2 * a + b + 1) % 4); }
  std::vector<std::int64_t> Counts(int rank, bool to) const {
    std::vector<std::int64_t> counts;
    for (int r = 0; r < ranks; ++r) {
      counts.push_back(kind == K::kAllToAllV ? (to ? Share(rank, r) : Share(r, rank))
                                             : Share(r, 0));
    }
    return counts;
  }
  // All but the root, last first.
  std::vector<std::int64_t> Peers() const {
    std::vector<std::int64_t> peers;
    for (int r = root() - 1; r >= 0; --r) peers.push_back(r);
    return peers;
  }
};

// Small enough for sums of all ranks to be exact in every type, whatever the order.
double Input(const Case& c, int rank, std::int64_t i) {
  if (c.reduces() && c.redop == kit::RedOp::kProd) return (i + rank) % (c.ranks + 1) == 0 ? 2 : 1;
  if (c.reduces() && c.is_f8()) {
    return (i + rank) % std::max(c.ranks, 2) == 0 ? 1 + static_cast<double>(i % 2) : 0;
  }
  return static_cast<double>((3 * rank + i) % 7);
}

double Reduced(const Case& c, std::int64_t i) {
  double all = Input(c, 0, i);
  for (int r = 1; r < c.ranks; ++r) {
    const double one = Input(c, r, i);
    if (c.redop == kit::RedOp::kProd) {
      all *= one;
    } else if (c.redop == kit::RedOp::kMin) {
      all = std::min(all, one);
    } else if (c.redop == kit::RedOp::kMax) {
      all = std::max(all, one);
    } else {
      all += one;
    }
  }
  if (c.redop != kit::RedOp::kAvg) return all;
  return TraitsOf(c.dtype).integer ? std::floor(all / c.ranks) : all / c.ranks;
}

std::int64_t SumBefore(const std::vector<std::int64_t>& counts, int rank) {
  std::int64_t sum = 0;
  for (int r = 0; r < rank; ++r) sum += counts[static_cast<std::size_t>(r)];
  return sum;
}

// Where the operands of one rank lie in its one buffer, in elements, and what comes out.
struct Layout {
  std::int64_t src = 0, dst = 0;        // elements
  std::int64_t src_at = 0, dst_at = 0;  // places
  std::vector<double> expected;         // of dst; empty: nothing is said about it
  std::int64_t total() const { return std::max(src_at + src, dst_at + dst); }
};

void Append(const Case& c, int from, std::int64_t at, std::int64_t count,
            std::vector<double>* out) {
  for (std::int64_t i = 0; i < count; ++i) out->push_back(Input(c, from, at + i));
}

void AppendReduced(const Case& c, std::int64_t at, std::int64_t count, std::vector<double>* out) {
  for (std::int64_t i = 0; i < count; ++i) out->push_back(Reduced(c, at + i));
}

// Reductions, and what goes to or comes from everybody in equal parts.
void LayOutEven(const Case& c, int rank, Layout* out) {
  const bool root = rank == c.root();
  out->src = out->dst = c.n;
  switch (c.kind) {
    case K::kAllReduce:
    case K::kReduce:
      if (root || c.kind == K::kAllReduce) AppendReduced(c, 0, c.n, &out->expected);
      break;
    case K::kReduceScatter:
      out->src *= c.ranks;
      out->dst_at = c.in_place ? rank * c.n : out->src;
      AppendReduced(c, rank * c.n, c.n, &out->expected);
      return;
    case K::kScatter:
      out->src *= c.ranks;
      out->dst_at = c.in_place && root ? rank * c.n : out->src;
      Append(c, c.root(), rank * c.n, c.n, &out->expected);
      return;
    case K::kAllGather:
    case K::kGather:
      out->dst *= c.ranks;
      out->dst_at = c.n;
      if (c.in_place && (root || c.kind == K::kAllGather)) {
        out->dst_at = 0;
        out->src_at = rank * c.n;
      }
      for (int r = 0; r < c.ranks && (root || c.kind == K::kAllGather); ++r) {
        Append(c, r, 0, c.n, &out->expected);
      }
      return;
    case K::kAllToAll:
      out->src = out->dst = c.n * c.ranks;
      for (int r = 0; r < c.ranks; ++r) Append(c, r, rank * c.n, c.n, &out->expected);
      break;
    default:
      break;
  }
  out->dst_at = c.in_place ? 0 : out->src;
}

void LayOutUneven(const Case& c, int rank, Layout* out) {
  const std::vector<std::int64_t> to = c.Counts(rank, true);
  const std::vector<std::int64_t> from = c.Counts(rank, false);
  const std::int64_t mine = to[static_cast<std::size_t>(rank)];
  const std::int64_t before = SumBefore(to, rank);
  out->src = SumBefore(to, c.ranks);
  out->dst = SumBefore(from, c.ranks);
  out->dst_at = out->src;
  if (c.kind == K::kAllGatherV) {
    out->src = mine;
    out->dst_at = c.in_place ? 0 : mine;
    out->src_at = c.in_place ? before : 0;
    for (int r = 0; r < c.ranks; ++r) {
      Append(c, r, 0, to[static_cast<std::size_t>(r)], &out->expected);
    }
  } else if (c.kind == K::kReduceScatterV) {
    out->dst = mine;
    if (c.in_place) out->dst_at = before;
    AppendReduced(c, before, mine, &out->expected);
  } else {
    if (c.in_place) out->dst_at = 0;
    for (int r = 0; r < c.ranks; ++r) {
      Append(c, r, SumBefore(c.Counts(r, true), rank), c.Share(r, rank), &out->expected);
    }
  }
}

void LayOutOneToSome(const Case& c, int rank, Layout* out) {
  out->src = out->dst = c.n;
  if (c.kind == K::kIncast) {
    out->dst = c.n * (c.ranks - 1);
    out->dst_at = c.n;
    if (rank != c.root()) return;
    for (const std::int64_t peer : c.Peers()) Append(c, int(peer), 0, c.n, &out->expected);
  } else {
    Append(c, c.root(), 0, c.n, &out->expected);
  }
}

Layout LayOut(const Case& c, int rank) {
  Layout layout;
  if (c.kind == K::kAllGatherV || c.kind == K::kReduceScatterV || c.kind == K::kAllToAllV) {
    LayOutUneven(c, rank, &layout);
  } else if (c.kind == K::kBroadcast || c.kind == K::kMulticast || c.kind == K::kIncast) {
    LayOutOneToSome(c, rank, &layout);
  } else if (c.kind != K::kBarrier) {
    LayOutEven(c, rank, &layout);
  }
  return layout;
}

void Describe(const Case& c, int rank, const Layout& layout, OpDesc* desc) {
  const bool one = c.kind == K::kBroadcast || c.kind == K::kMulticast;
  if (c.kind == K::kBarrier) return;
  if (c.in_place) desc->Bool("in_place", true);
  if (c.reduces()) desc->String("redop", kit::RedOpName(c.redop));
  if (one || c.kind == K::kReduce || c.kind == K::kGather || c.kind == K::kScatter ||
      c.kind == K::kIncast) {
    desc->Int("root", c.root());
  }
  if (c.kind == K::kIncast) desc->Ints("sources", c.Peers());
  if (c.kind == K::kMulticast) desc->Ints("destinations", c.Peers());
  if (c.kind == K::kAllGatherV || c.kind == K::kReduceScatterV) {
    desc->Ints("counts", c.Counts(rank, true));
  }
  if (c.kind == K::kAllToAllV) {
    desc->Ints("send_counts", c.Counts(rank, true)).Ints("recv_counts", c.Counts(rank, false));
  }
  desc->Tensor(one ? "data" : "src", c.dtype, {layout.src});
  if (!one) desc->Tensor("dst", c.dtype, {layout.dst});
}

absl::Status Compare(const Case& c, const Layout& layout, const std::vector<char>& after) {
  const double slack = c.redop == kit::RedOp::kAvg && c.reduces()
                           ? 4.0 * c.ranks * TraitsOf(c.dtype).unit_roundoff
                           : 0;
  for (std::size_t i = 0; i < layout.expected.size(); ++i) {
    const double expected = layout.expected[i];
    const double got =
        LoadElement(c.dtype, after.data(), i + static_cast<std::size_t>(layout.dst_at));
    if (std::abs(got - expected) <= slack * std::abs(expected)) continue;
    return absl::DataLossError(absl::StrCat("index ", i, ": expected ", expected, ", got ", got));
  }
  return absl::OkStatus();
}

// One case on one rank. `info` is what really ran.
absl::Status RunCase(NcclRank& rank, const Case& c, std::string* info) {
  const Layout layout = LayOut(c, rank.rank());
  const std::size_t size = kit::DtypeSize(c.dtype);
  std::vector<char> memory(static_cast<std::size_t>(layout.total()) * size);
  for (std::int64_t i = 0; i < layout.total(); ++i) {
    const std::int64_t at = i - layout.src_at;
    const bool input = at >= 0 && at < layout.src;
    StoreElement(c.dtype, memory.data(), static_cast<std::size_t>(i),
                 input ? Input(c, rank.rank(), at) : kPoison);
  }
  PARAM_ASSIGN_OR_RETURN(Buffer buffer,
                         rank.device().CreateBuffer(PARAM_MEMORY_DEVICE, memory.size()));
  PARAM_RETURN_IF_ERROR(buffer.Write(0, memory.data(), memory.size()));
  OpDesc desc(c.name());
  Describe(c, rank.rank(), layout, &desc);
  PARAM_ASSIGN_OR_RETURN(const CommOp op, rank.Prepare(desc));
  PARAM_ASSIGN_OR_RETURN(*info, rank.Info(op));
  std::vector<param_operand> operands;
  if (c.kind != K::kBarrier) {
    operands.push_back(buffer.At(static_cast<std::size_t>(layout.src_at) * size));
    if (desc.desc().tensor_count == 2) {
      operands.push_back(buffer.At(static_cast<std::size_t>(layout.dst_at) * size));
    }
  }
  Buffer workspace;
  PARAM_RETURN_IF_ERROR(rank.Enqueue(op, operands, &workspace));
  PARAM_RETURN_IF_ERROR(rank.stream().Synchronize());
  PARAM_RETURN_IF_ERROR(buffer.Read(0, memory.data(), memory.size()));
  return Compare(c, layout, memory);
}

// The types and reductions of one operation, on all ranks; one row.
Row CheckKind(NcclRanks& ranks, K kind, bool in_place) {
  Row row{absl::StrCat("nccl ", kit::kCollectiveNames[static_cast<int>(kind)],
                       in_place ? " in place" : ""),
          "ok", ""};
  std::string info;
  std::string skipped;
  int checked = 0;
  for (const param_dtype dtype :
       {PARAM_DTYPE_F64, PARAM_DTYPE_F32, PARAM_DTYPE_F16, PARAM_DTYPE_BF16, PARAM_DTYPE_F8E4M3,
        PARAM_DTYPE_F8E5M2, PARAM_DTYPE_I8, PARAM_DTYPE_U8, PARAM_DTYPE_I32, PARAM_DTYPE_I64}) {
    for (int redop = 0; redop < 5; ++redop) {
      Case c{kind, in_place, dtype, static_cast<kit::RedOp>(redop), 1, ranks.size()};
      if (!c.reduces() && redop > 0) break;
      for (const std::int64_t n : {1, 1000}) {
        c.n = n;
        const absl::Status status = ranks.OnAll([&](NcclRank& rank) {
          std::string ran;
          PARAM_RETURN_IF_ERROR(RunCase(rank, c, &ran));
          if (rank.rank() == 0) info = ran;
          return absl::OkStatus();
        });
        if (status.ok()) {
          ++checked;
          continue;
        }
        const std::string what = absl::StrCat(kit::DtypeName(dtype), " ",
                                              c.reduces() ? kit::RedOpName(c.redop) : "", " n=", n);
        row.detail = absl::StrCat(what, ": ", status.message());
        if (absl::IsUnimplemented(status)) {
          skipped = "; not " + row.detail;
        } else {
          row.verdict = absl::IsDataLoss(status) ? "WRONG" : "FAILED";
        }
        // A failure has aborted the communicator.
        if (const absl::Status again = Reconnect(ranks); !again.ok()) {
          row.verdict = "FAILED";
          absl::StrAppend(&row.detail, "; ", again.message());
        }
        if (row.failed()) return row;
      }
    }
  }
  row.detail = absl::StrCat(checked, " on ", ranks.size(), " GPU, ", info, skipped);
  return row;
}

bool HasInPlace(K kind) {
  return kind != K::kBroadcast && kind != K::kIncast && kind != K::kMulticast &&
         kind != K::kBarrier;
}

}  // namespace

std::vector<Row> CheckCollectives(NcclRanks& ranks) {
  std::vector<Row> rows;
  for (const K kind : {K::kAllReduce, K::kReduce, K::kBroadcast, K::kAllGather, K::kReduceScatter,
                       K::kAllToAll, K::kGather, K::kScatter, K::kAllGatherV, K::kReduceScatterV,
                       K::kAllToAllV, K::kIncast, K::kMulticast, K::kBarrier}) {
    rows.push_back(CheckKind(ranks, kind, false));
    if (HasInPlace(kind)) rows.push_back(CheckKind(ranks, kind, true));
  }
  return rows;
}

}  // namespace param::gpu_check
