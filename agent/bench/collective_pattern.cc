#include "agent/bench/collective_pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#include "agent/backend/kit.h"
#include "agent/bench/element.h"
#include "proto/base/text.h"

namespace param {
namespace {

// The finaliser of SplitMix64: every bit of the input moves every bit of the output.
std::uint64_t Mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::uint64_t Hash(std::uint64_t seed, std::int64_t a, std::int64_t b) {
  return Mix(Mix(seed + 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(a + 1)) +
             0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(b + 1));
}

// The largest integer up to which the type counts without a gap, and which sums may reach.
std::int64_t LargestExact(param_dtype dtype) {
  switch (dtype) {
    case PARAM_DTYPE_I8:
      return 127;
    case PARAM_DTYPE_U8:
      return 255;
    case PARAM_DTYPE_I32:
      return 2147483647;
    case PARAM_DTYPE_I64:
    case PARAM_DTYPE_F64:
      return std::int64_t{1} << 52;  // far enough below what a double on the host tells apart
    case PARAM_DTYPE_F32:
      return std::int64_t{1} << 24;
    case PARAM_DTYPE_F16:
    case PARAM_DTYPE_TF32:
      return 2048;
    case PARAM_DTYPE_BF16:
      return 256;
    case PARAM_DTYPE_F8E4M3:
      return 16;
    case PARAM_DTYPE_F8E5M2:
      return 8;
  }
  return 1;
}

bool IsUnsigned(param_dtype dtype) { return dtype == PARAM_DTYPE_U8; }

// Uniform in [-limit, limit], or [0, limit] for unsigned types.
double Uniform(std::uint64_t bits, std::int64_t limit, bool is_unsigned) {
  const auto span = static_cast<std::uint64_t>(limit) * (is_unsigned ? 1 : 2) + 1;
  const auto value = static_cast<std::int64_t>(bits % span);
  return static_cast<double>(is_unsigned ? value : value - limit);
}

// 1 or -1 by a bit; 1 for unsigned types.
double Sign(std::uint64_t bits, bool is_unsigned) {
  return is_unsigned || (bits & 1) == 0 ? 1 : -1;
}

double SumInput(const CollectivePattern& p, int rank, std::int64_t index) {
  const std::int64_t limit = LargestExact(p.dtype);
  const std::uint64_t bits = Hash(p.seed, rank, index);
  if (p.ranks <= limit) {
    return Uniform(bits, std::min<std::int64_t>(limit / p.ranks, 1000), IsUnsigned(p.dtype));
  }
  const std::int64_t every = (p.ranks + limit - 1) / limit;
  const bool contributes =
      (static_cast<std::int64_t>(Hash(p.seed, -7, index) >> 33) + rank) % every == 0;
  return contributes ? Sign(bits >> 8, IsUnsigned(p.dtype)) : 0;
}

// c(i), and what is moved from one rank to another at index i.
struct AvgParts {
  double common = 0, moved = 0;
  int giver = 0, taker = 0;
};

AvgParts AvgOf(const CollectivePattern& p, std::int64_t index) {
  // Positive, so that nothing cancels: the errors of a library that scales first stay relative.
  const std::int64_t room = 2 * LargestExact(p.dtype) / (std::int64_t{2} * p.ranks + 1);
  const std::int64_t limit = std::clamp<std::int64_t>(room, 1, 500);
  const std::uint64_t bits = Hash(p.seed, -3, index);
  AvgParts parts;
  parts.common = 1 + Uniform(bits, limit - 1, /*is_unsigned=*/true);
  parts.moved = std::floor(parts.common / 2 * static_cast<double>(bits >> 40 & 0xff) / 255);
  parts.giver = static_cast<int>((bits >> 12) % static_cast<std::uint64_t>(p.ranks));
  parts.taker = (parts.giver + 1) % p.ranks;
  return parts;
}

double AvgInput(const CollectivePattern& p, int rank, std::int64_t index) {
  const AvgParts parts = AvgOf(p, index);
  double value = parts.common;
  if (rank == parts.giver) value -= parts.moved;
  if (rank == parts.taker) value += parts.moved;
  return value;
}

double ProdInput(const CollectivePattern& p, int rank, std::int64_t index) {
  const std::uint64_t common = Hash(p.seed, -5, index);
  const double sign = Sign(Hash(p.seed, rank, index) >> 5, IsUnsigned(p.dtype));
  const bool chosen = static_cast<int>(common % static_cast<std::uint64_t>(p.ranks)) == rank;
  return chosen ? sign * ((common >> 32 & 1) != 0 ? 3 : 2) : sign;
}

std::vector<std::int64_t> Offsets(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> offsets(counts.size() + 1, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) offsets[i + 1] = offsets[i] + counts[i];
  return offsets;
}

// One block per rank, as `counts` say, the i-th from the i-th rank.
std::vector<OutputBlock> FromEach(const std::vector<std::int64_t>& counts,
                                  const std::vector<std::int64_t>& source_begins) {
  const std::vector<std::int64_t> offsets = Offsets(counts);
  std::vector<OutputBlock> blocks;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    blocks.push_back({offsets[i], counts[i], static_cast<int>(i), source_begins[i]});
  }
  return blocks;
}

std::vector<OutputBlock> OutputOfAllToAllV(const CollectiveRequest& request,
                                           const CollectiveLayout& layout, int rank) {
  std::vector<std::int64_t> begins;
  begins.reserve(static_cast<std::size_t>(request.ranks));
  const std::int64_t total = request.size / request.element_bytes;
  for (int row = 0; row < request.ranks; ++row) {
    begins.push_back(Offsets(DealOut(request.split, total, request.ranks, row,
                                     request.seed))[static_cast<std::size_t>(rank)]);
  }
  return FromEach(layout.recv_counts, begins);
}

}  // namespace

absl::StatusOr<Redop> RedopFromName(absl::string_view name) {
  constexpr absl::string_view kNames[] = {"sum", "prod", "min", "max", "avg"};
  for (int i = 0; i < 5; ++i) {
    if (name == kNames[i]) return static_cast<Redop>(i + 1);
  }
  return absl::InvalidArgumentError(absl::StrCat("redop: \"", name, "\" is not known"));
}

double CollectivePattern::Input(int rank, std::int64_t index) const {
  const std::int64_t at = index % kPatternPeriod;
  switch (redop) {
    case Redop::kSum:
      return SumInput(*this, rank, at);
    case Redop::kAvg:
      return AvgInput(*this, rank, at);
    case Redop::kProd:
      return ProdInput(*this, rank, at);
    case Redop::kNone:
    case Redop::kMin:
    case Redop::kMax:
      return Uniform(Hash(seed, rank, at), LargestExact(dtype), IsUnsigned(dtype));
  }
  return 0;
}

double CollectivePattern::Combined(std::int64_t index) const {
  if (redop == Redop::kAvg) return AvgOf(*this, index % kPatternPeriod).common;
  double result = Input(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = Input(rank, index);
    if (redop == Redop::kProd) {
      result *= next;
    } else if (redop == Redop::kMin) {
      result = std::min(result, next);
    } else if (redop == Redop::kMax) {
      result = std::max(result, next);
    } else {
      result += next;
    }
  }
  return result;
}

double CollectivePattern::Tolerance(double expected) const {
  if (redop != Redop::kAvg || TraitsOf(dtype).integer) return 0;
  return 2 * (ranks + 2) * TraitsOf(dtype).unit_roundoff * std::fabs(expected);
}

absl::Status CollectivePattern::CanCheck() const {
  if (redop != Redop::kAvg || ranks <= LargestExact(dtype)) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "avg of ", kit::DtypeName(dtype), " over ", ranks,
      " ranks overflows the type while it adds, so it cannot be checked; --no-check times it"));
}

std::vector<OutputBlock> OutputOf(const CollectiveRequest& request, const CollectiveLayout& layout,
                                  int rank) {
  const auto ranks = static_cast<std::size_t>(request.ranks);
  const bool at_root = rank == request.root;
  switch (request.op) {
    case CollectiveOp::kAllReduce:
      return {{0, layout.dst, -1, 0}};
    case CollectiveOp::kReduce:
      if (!at_root) return {};
      return {{0, layout.dst, -1, 0}};
    case CollectiveOp::kMulticast:
      if (!at_root &&
          std::find(layout.peers.begin(), layout.peers.end(), rank) == layout.peers.end()) {
        return {};
      }
      [[fallthrough]];
    case CollectiveOp::kBroadcast:
      return {{0, layout.dst, request.root, 0}};
    case CollectiveOp::kReduceScatter:
      return {{0, layout.dst, -1, layout.dst * rank}};
    case CollectiveOp::kReduceScatterV:
      return {{0, layout.dst, -1, Offsets(layout.counts)[static_cast<std::size_t>(rank)]}};
    case CollectiveOp::kScatter:
      return {{0, layout.dst, request.root, layout.dst * rank}};
    case CollectiveOp::kGather:
      if (!at_root) return {};
      [[fallthrough]];
    case CollectiveOp::kAllGather:
      return FromEach(std::vector<std::int64_t>(ranks, layout.src),
                      std::vector<std::int64_t>(ranks, 0));
    case CollectiveOp::kAllGatherV:
      return FromEach(layout.counts, std::vector<std::int64_t>(ranks, 0));
    case CollectiveOp::kAllToAll: {
      const std::int64_t share = layout.src / request.ranks;
      return FromEach(std::vector<std::int64_t>(ranks, share),
                      std::vector<std::int64_t>(ranks, share * rank));
    }
    case CollectiveOp::kAllToAllV:
      return OutputOfAllToAllV(request, layout, rank);
    case CollectiveOp::kIncast: {
      if (!at_root) return {};
      std::vector<OutputBlock> blocks;
      for (std::size_t i = 0; i < layout.peers.size(); ++i) {
        blocks.push_back({layout.src * static_cast<std::int64_t>(i), layout.src,
                          static_cast<int>(layout.peers[i]), 0});
      }
      return blocks;
    }
    case CollectiveOp::kBarrier:
      return {};
  }
  return {};
}

OutputChecker::OutputChecker(const CollectivePattern& pattern, std::vector<OutputBlock> blocks)
    : pattern_(pattern), blocks_(std::move(blocks)) {}

void OutputChecker::Check(const void* elements, std::int64_t first, std::int64_t count) {
  for (const OutputBlock& block : blocks_) {
    const std::int64_t begin = std::max(first, block.begin);
    const std::int64_t end = std::min(first + count, block.begin + block.count);
    if (begin < end) CheckBlock(block, elements, first, begin, end);
  }
}

void OutputChecker::CheckBlock(const OutputBlock& block, const void* elements, std::int64_t first,
                               std::int64_t begin, std::int64_t end) {
  const std::vector<double>& table = TableOf(block.source, block.source_begin + block.count);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t at = (block.source_begin + i - block.begin) % kPatternPeriod;
    const double expected = table[static_cast<std::size_t>(at)];
    const double got = LoadElement(pattern_.dtype, elements, static_cast<std::size_t>(i - first));
    ++checked_;
    if (std::fabs(got - expected) <= pattern_.Tolerance(expected)) continue;
    if (++wrong_ > 1) continue;
    problem_ = absl::StrCat("index ", i, ": expected ", FormatDouble(expected), ", got ",
                            FormatDouble(got));
  }
}

const std::vector<double>& OutputChecker::TableOf(int source, std::int64_t needed) {
  const auto length = static_cast<std::size_t>(std::min(needed, kPatternPeriod));
  if (source != table_source_) table_.clear();
  table_source_ = source;
  for (std::size_t i = table_.size(); i < length; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    table_.push_back(source < 0 ? pattern_.Combined(at) : pattern_.Input(source, at));
  }
  return table_;
}

void FillPattern(const CollectivePattern& pattern, int rank, std::int64_t first, std::int64_t count,
                 void* out) {
  const std::size_t size = kit::DtypeSize(pattern.dtype);
  char* const bytes = static_cast<char*>(out);
  const std::int64_t fresh = std::min(count, kPatternPeriod);
  for (std::int64_t i = 0; i < fresh; ++i) {
    StoreElement(pattern.dtype, bytes, static_cast<std::size_t>(i), pattern.Input(rank, first + i));
  }
  for (std::int64_t done = fresh; done < count;) {
    const std::int64_t length = std::min(fresh, count - done);
    std::memcpy(bytes + static_cast<std::size_t>(done) * size, bytes,
                static_cast<std::size_t>(length) * size);
    done += length;
  }
}

}  // namespace param
