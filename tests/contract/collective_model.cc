#include "tests/contract/collective_model.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace param {
namespace {

using K = kit::CollectiveKind;
using kit::RedOp;

bool IsSigned(param_dtype dtype) { return dtype != PARAM_DTYPE_U8; }

bool IsInteger(param_dtype dtype) {
  return dtype == PARAM_DTYPE_I8 || dtype == PARAM_DTYPE_U8 || dtype == PARAM_DTYPE_I32 ||
         dtype == PARAM_DTYPE_I64;
}

// A prime up to which the type holds every whole number.
std::size_t Modulus(param_dtype dtype) {
  if (dtype == PARAM_DTYPE_I8) return 127;
  if (dtype == PARAM_DTYPE_U8 || dtype == PARAM_DTYPE_BF16) return 251;
  return dtype == PARAM_DTYPE_F16 ? 2039 : 1000003;
}

std::size_t Before(const std::int64_t* counts, std::int32_t rank, std::size_t stride = 1) {
  std::int64_t sum = 0;
  for (std::int32_t i = 0; i < rank; ++i) sum += counts[static_cast<std::size_t>(i) * stride];
  return static_cast<std::size_t>(sum);
}

std::vector<std::int64_t> MakeCounts(std::size_t n, std::size_t step, std::size_t ranks) {
  std::vector<std::int64_t> counts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const bool zero = ranks > 1 && r == step % ranks;
    counts[r] = zero ? 0 : static_cast<std::int64_t>((r * 7 + step * 3 + n) % (n + 1) + n / 2);
  }
  return counts;
}

// Symmetric when it has to work in place.
std::vector<std::int64_t> MakeMatrix(std::size_t n, std::size_t step, std::size_t ranks,
                                     bool symmetric) {
  std::vector<std::int64_t> matrix(ranks * ranks);
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::size_t a = symmetric ? std::min(from, to) : from;
      const std::size_t b = symmetric ? std::max(from, to) : to;
      const bool zero_row = !symmetric && ranks > 1 && step % 2 == 1 && from == step / 2 % ranks;
      const bool zero = zero_row || (a + b + step) % 3 == 0;
      matrix[from * ranks + to] =
          zero ? 0 : static_cast<std::int64_t>((a * 5 + b * 3 + step + n) % (n + 1) + n / 2);
    }
  }
  return matrix;
}

// All other ranks, every second of them, or the last one; forwards and backwards.
std::vector<std::int32_t> MakePeers(std::int32_t root, std::size_t step, std::int32_t ranks) {
  std::vector<std::int32_t> peers;
  for (std::int32_t r = 0; r < ranks; ++r) {
    if (r != root && (step % 3 != 1 || (r + root) % 2 == 1)) peers.push_back(r);
  }
  if (step % 3 == 2 && !peers.empty()) peers = {peers.back()};
  if (step % 2 == 1) std::reverse(peers.begin(), peers.end());
  return peers;
}

// The block of a packed buffer that element i lies in, and where in it.
struct Spot {
  std::int32_t block = 0;
  std::size_t at = 0;
};

Spot Find(const std::int64_t* counts, std::size_t stride, std::size_t i) {
  Spot spot{0, i};
  while (spot.at >=
         static_cast<std::size_t>(counts[static_cast<std::size_t>(spot.block) * stride])) {
    spot.at -= static_cast<std::size_t>(counts[static_cast<std::size_t>(spot.block) * stride]);
    ++spot.block;
  }
  return spot;
}

std::int64_t Reduced(const CollectiveCase& c, std::size_t i, std::int32_t ranks) {
  std::int64_t result = InputAt(c, 0, i, ranks);
  for (std::int32_t r = 1; r < ranks; ++r) {
    const std::int64_t one = InputAt(c, r, i, ranks);
    if (c.redop == RedOp::kProd) {
      result *= one;
    } else if (c.redop == RedOp::kMin) {
      result = std::min(result, one);
    } else if (c.redop == RedOp::kMax) {
      result = std::max(result, one);
    } else {
      result += one;
    }
  }
  return c.redop == RedOp::kAvg ? result / ranks : result;
}

}  // namespace

bool CollectiveCase::reduces() const {
  return kind == K::kAllReduce || kind == K::kReduce || kind == K::kReduceScatter ||
         kind == K::kReduceScatterV;
}

bool CollectiveCase::one_buffer() const { return kind == K::kBroadcast || kind == K::kMulticast; }

std::string CollectiveCase::Name() const {
  std::string name = kit::kCollectiveNames[static_cast<int>(kind)];
  if (kind == K::kBarrier) return name;
  name += std::string(" ") + kit::DtypeName(dtype);
  if (reduces()) name += std::string(" ") + kit::RedOpName(redop);
  if (in_place) name += " in place";
  name += " n=" + std::to_string(n) + " root=" + std::to_string(root);
  const auto list = [&](const char* what, const auto& values) {
    if (values.empty()) return;
    name += std::string(" ") + what;
    char comma = '=';
    for (const auto value : values) {
      name += comma + std::to_string(value);
      comma = ',';
    }
  };
  list("counts", counts);
  list("matrix", matrix);
  list("peers", peers);
  return name;
}

CollectiveCase MakeCase(K kind, param_dtype dtype, RedOp redop, bool in_place, std::size_t n,
                        std::size_t step, std::int32_t ranks) {
  CollectiveCase c;
  c.kind = kind;
  c.dtype = dtype;
  c.redop = redop;
  c.in_place = in_place;
  c.n = n;
  const auto w = static_cast<std::size_t>(ranks);
  c.root = static_cast<std::int32_t>(step % w);
  if (kind == K::kAllGatherV || kind == K::kReduceScatterV) c.counts = MakeCounts(n, step, w);
  if (kind == K::kAllToAllV) c.matrix = MakeMatrix(n, step, w, in_place);
  if (kind == K::kIncast || kind == K::kMulticast) c.peers = MakePeers(c.root, step / w, ranks);
  return c;
}

Placement PlacementOf(const CollectiveCase& c, std::int32_t rank, std::int32_t ranks) {
  const auto w = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  Placement p{c.n, c.n, c.in_place || c.one_buffer(), 0, 0};
  switch (c.kind) {
    case K::kAllGather:
    case K::kGather:
      p.dst = c.n * w;
      p.src_at = c.n * r;
      break;
    case K::kReduceScatter:
    case K::kScatter:
      p.src = c.n * w;
      p.dst_at = c.n * r;
      break;
    case K::kAllToAll:
      p.src = p.dst = c.n * w;
      break;
    case K::kAllGatherV:
      p.src = static_cast<std::size_t>(c.counts[r]);
      p.dst = Before(c.counts.data(), ranks);
      p.src_at = Before(c.counts.data(), rank);
      break;
    case K::kReduceScatterV:
      p.src = Before(c.counts.data(), ranks);
      p.dst = static_cast<std::size_t>(c.counts[r]);
      p.dst_at = Before(c.counts.data(), rank);
      break;
    case K::kAllToAllV:
      p.src = Before(&c.matrix[r * w], ranks);
      p.dst = Before(&c.matrix[r], ranks, w);
      break;
    case K::kIncast:
      p.dst = c.n * c.peers.size();
      break;
    default:
      break;
  }
  const bool root_only = c.kind == K::kGather || c.kind == K::kScatter;
  if (root_only && rank != c.root) p.shared = false;
  if (!p.shared) p.src_at = p.dst_at = 0;
  return p;
}

std::int64_t InputAt(const CollectiveCase& c, std::int32_t rank, std::size_t i,
                     std::int32_t ranks) {
  const auto r = static_cast<std::size_t>(rank);
  if (!c.reduces()) {
    return static_cast<std::int64_t>((r * 31 + i * 7 + i / 256 * 3 + 1) % Modulus(c.dtype));
  }
  if (c.redop == RedOp::kProd) {
    const std::int64_t factor = rank < 4 && (r + i) % 3 == 0 ? 2 : 1;
    return IsSigned(c.dtype) && (r + i) % 5 == 0 ? -factor : factor;
  }
  if (c.redop == RedOp::kAvg) {
    // The sum is a multiple of the ranks; of integers one more, which the division cuts off.
    const auto w = static_cast<std::size_t>(ranks);
    const std::size_t more = IsInteger(c.dtype) && rank == 0 ? 1 : 0;
    const auto value = static_cast<std::int64_t>(i % 5 + 2 * ((r + i) % w) + more);
    return IsSigned(c.dtype) && i % 2 == 1 ? -value : value;
  }
  return static_cast<std::int64_t>((r * 3 + i * 5 + i / 64) % 8) - (IsSigned(c.dtype) ? 3 : 0);
}

std::optional<std::int64_t> ResultAt(const CollectiveCase& c, std::int32_t rank, std::size_t i,
                                     std::int32_t ranks) {
  const auto w = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const bool is_root = rank == c.root;
  switch (c.kind) {
    case K::kAllReduce:
      return Reduced(c, i, ranks);
    case K::kReduce:
      return is_root ? std::optional(Reduced(c, i, ranks)) : std::nullopt;
    case K::kReduceScatter:
      return Reduced(c, r * c.n + i, ranks);
    case K::kReduceScatterV:
      return Reduced(c, Before(c.counts.data(), rank) + i, ranks);
    case K::kBroadcast:
      return InputAt(c, c.root, i, ranks);
    case K::kMulticast: {
      const bool named = std::find(c.peers.begin(), c.peers.end(), rank) != c.peers.end();
      return named ? std::optional(InputAt(c, c.root, i, ranks)) : std::nullopt;
    }
    case K::kGather:
      if (!is_root) return std::nullopt;
      [[fallthrough]];
    case K::kAllGather:
      return InputAt(c, static_cast<std::int32_t>(i / c.n), i % c.n, ranks);
    case K::kAllGatherV: {
      const Spot spot = Find(c.counts.data(), 1, i);
      return InputAt(c, spot.block, spot.at, ranks);
    }
    case K::kScatter:
      return InputAt(c, c.root, r * c.n + i, ranks);
    case K::kAllToAll:
      return InputAt(c, static_cast<std::int32_t>(i / c.n), r * c.n + i % c.n, ranks);
    case K::kAllToAllV: {
      const Spot spot = Find(&c.matrix[r], w, i);
      const std::int64_t* const row = &c.matrix[static_cast<std::size_t>(spot.block) * w];
      return InputAt(c, spot.block, Before(row, rank) + spot.at, ranks);
    }
    case K::kIncast:
      if (!is_root) return std::nullopt;
      return InputAt(c, c.peers[i / c.n], i % c.n, ranks);
    case K::kBarrier:
    case K::kSend:
    case K::kRecv:
      return std::nullopt;
  }
  return std::nullopt;
}

void PutElement(param_dtype dtype, std::int64_t value, void* to) {
  const auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof(typed)); };
  const auto put_small = [&](auto typed) {
    kit::FromFloat(static_cast<float>(value), &typed);
    put(typed);
  };
  if (dtype == PARAM_DTYPE_F64) return put(static_cast<double>(value));
  if (dtype == PARAM_DTYPE_F32) return put(static_cast<float>(value));
  if (dtype == PARAM_DTYPE_F16) return put_small(kit::F16{});
  if (dtype == PARAM_DTYPE_BF16) return put_small(kit::Bf16{});
  if (dtype == PARAM_DTYPE_I8) return put(static_cast<std::int8_t>(value));
  if (dtype == PARAM_DTYPE_U8) return put(static_cast<std::uint8_t>(value));
  if (dtype == PARAM_DTYPE_I32) return put(static_cast<std::int32_t>(value));
  put(value);
}

std::string ElementText(param_dtype dtype, const void* from) {
  const auto text = [&](auto typed) {
    std::memcpy(&typed, from, sizeof(typed));
    if constexpr (std::is_same_v<decltype(typed), kit::F16> ||
                  std::is_same_v<decltype(typed), kit::Bf16>) {
      return std::to_string(kit::ToFloat(typed));
    } else {
      return std::to_string(typed);
    }
  };
  if (dtype == PARAM_DTYPE_F64) return text(double{});
  if (dtype == PARAM_DTYPE_F32) return text(float{});
  if (dtype == PARAM_DTYPE_F16) return text(kit::F16{});
  if (dtype == PARAM_DTYPE_BF16) return text(kit::Bf16{});
  if (dtype == PARAM_DTYPE_I8) return text(std::int8_t{});
  if (dtype == PARAM_DTYPE_U8) return text(std::uint8_t{});
  if (dtype == PARAM_DTYPE_I32) return text(std::int32_t{});
  return text(std::int64_t{});
}

// ---- CaseDesc ----------------------------------------------------------------------------------

CaseDesc::CaseDesc(const CollectiveCase& c, std::int32_t rank, std::int32_t ranks) {
  const auto w = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  if (c.reduces()) {
    Int("redop", 0, PARAM_ATTR_STRING);
    attrs_.back().value.s = kit::RedOpName(c.redop);
  }
  const bool rooted = c.kind == K::kReduce || c.kind == K::kBroadcast || c.kind == K::kGather ||
                      c.kind == K::kScatter || c.kind == K::kIncast || c.kind == K::kMulticast;
  if (rooted) Int("root", c.root);
  if (c.in_place) Int("in_place", 1, PARAM_ATTR_BOOL);
  if (!c.counts.empty()) {
    first_ = c.counts;
    Ints("counts", first_);
  }
  if (!c.matrix.empty()) {
    for (std::size_t i = 0; i < w; ++i) first_.push_back(c.matrix[r * w + i]);
    for (std::size_t i = 0; i < w; ++i) second_.push_back(c.matrix[i * w + r]);
    Ints("send_counts", first_);
    Ints("recv_counts", second_);
  }
  if (c.kind == K::kIncast || c.kind == K::kMulticast) {
    first_.assign(c.peers.begin(), c.peers.end());
    Ints(c.kind == K::kIncast ? "sources" : "destinations", first_);
  }
  const Placement p = PlacementOf(c, rank, ranks);
  if (c.one_buffer()) {
    Tensor("data", c.dtype, p.src);
  } else if (c.kind != K::kBarrier) {
    Tensor("src", c.dtype, p.src);
    Tensor("dst", c.dtype, p.dst);
  }
  Finish(kit::kCollectiveNames[static_cast<int>(c.kind)]);
}

CaseDesc::CaseDesc(bool send, param_dtype dtype, std::size_t n, std::int32_t peer,
                   std::int32_t tag) {
  Int("peer", peer);
  Int("tag", tag);
  Tensor("data", dtype, n);
  Finish(send ? "send" : "recv");
}

void CaseDesc::Int(const char* name, std::int64_t value, param_attr_kind kind) {
  param_attr attr = {};
  attr.name = name;
  attr.kind = kind;
  attr.count = 1;
  attr.value.i = value;
  attrs_.push_back(attr);
}

void CaseDesc::Ints(const char* name, const std::vector<std::int64_t>& values) {
  Int(name, 0, PARAM_ATTR_INT_LIST);
  attrs_.back().count = values.size();
  attrs_.back().value.ints = values.data();
}

void CaseDesc::Tensor(const char* name, param_dtype dtype, std::size_t elements) {
  param_tensor tensor = {};
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.rank = 1;
  tensor.dims[0] = static_cast<std::int64_t>(elements);
  tensor.strides[0] = 1;
  tensors_.push_back(tensor);
}

void CaseDesc::Finish(const char* name) {
  desc_.name = name;
  desc_.attr_count = attrs_.size();
  desc_.attrs = attrs_.data();
  desc_.tensor_count = tensors_.size();
  desc_.tensors = tensors_.data();
}

}  // namespace param
