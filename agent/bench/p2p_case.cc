#include "agent/bench/p2p_case.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/case_record.h"
#include "agent/bench/verify_gemm.h"
#include "proto/base/status.h"
#include "proto/catalog/collective_math.h"
#include "proto/catalog/values.h"

namespace param {
namespace {

constexpr std::int64_t kPiece = 1 << 20;  // bytes that are filled or checked at a time
constexpr std::int64_t kAnswerBytes = 4;
constexpr int kDataTag = 1;
constexpr int kAnswerTag = 2;

absl::StatusOr<P2pTest> TestFromName(absl::string_view name) {
  constexpr absl::string_view kNames[] = {"ping", "ping_pong", "uni", "bi"};
  for (int i = 0; i < 4; ++i) {
    if (name == kNames[i]) return static_cast<P2pTest>(i);
  }
  return absl::InvalidArgumentError(absl::StrCat("--test: ", name));
}

std::vector<int> Range(int first, int count) {
  std::vector<int> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

absl::StatusOr<std::vector<RankPair>> PairsOf(const Params& params, bool pairwise, int ranks) {
  const std::string src = TextParam(params, "src", "auto");
  const std::string dst = TextParam(params, "dst", "auto");
  std::vector<int> sources = Range(0, pairwise ? ranks / 2 : 1);
  std::vector<int> destinations =
      pairwise ? Range((ranks + 1) / 2, ranks / 2) : std::vector<int>{1};
  if (src != "auto") {
    PARAM_ASSIGN_OR_RETURN(sources, ParseRanks(src, ranks), "--src");
  }
  if (dst != "auto") {
    PARAM_ASSIGN_OR_RETURN(destinations, ParseRanks(dst, ranks), "--dst");
  }
  if (sources.size() != destinations.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--src names ", sources.size(), " ranks, --dst ",
                                                   destinations.size(),
                                                   ": a pair takes one of each"));
  }
  if (!pairwise && sources.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--src names ", sources.size(), " ranks: one2one has one pair"));
  }
  std::vector<RankPair> pairs;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (const int rank : {sources[i], destinations[i]}) {
      if (sources[i] != destinations[i] && !PairOf(pairs, rank).has_value()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " is in two pairs or twice in one"));
    }
    pairs.push_back({sources[i], destinations[i]});
  }
  return pairs;
}

}  // namespace

std::optional<RankPair> PairOf(const std::vector<RankPair>& pairs, int rank) {
  for (const RankPair& pair : pairs) {
    if (pair.source == rank || pair.destination == rank) return pair;
  }
  return std::nullopt;
}

bool Tells(P2pTest test, const RankPair& pair, int rank) {
  if (test == P2pTest::kBi) return rank == pair.source || rank == pair.destination;
  return rank == (test == P2pTest::kPing ? pair.destination : pair.source);
}

std::int64_t ReceivedBy(const P2pOrder& order, int rank) {
  const std::optional<RankPair> pair = PairOf(order.pairs, rank);
  if (!pair.has_value()) return 0;
  const bool one_way = order.test == P2pTest::kPing || order.test == P2pTest::kUni;
  return order.matrix || !one_way || pair->destination == rank ? order.size : 0;
}

absl::StatusOr<P2pOrder> P2pOrderOf(const CaseContext& context) {
  const Params& params = context.params;
  P2pOrder order;
  order.ranks = context.team.size();
  if (order.ranks < 2) {
    return absl::InvalidArgumentError(
        "one rank alone has nobody to talk to: give --nodes 2 or --ranks-per-node 2");
  }
  const std::string pattern = TextParam(params, "pattern", "one2one");
  order.matrix = pattern == "matrix";
  PARAM_ASSIGN_OR_RETURN(order.test, TestFromName(TextParam(params, "test", "ping_pong")));
  order.size = IntParam(params, "size", 8);
  order.window = IntParam(params, "window", 64);
  order.barrier = BoolParam(params, "barrier", true);
  PARAM_ASSIGN_OR_RETURN(order.fill, FillFromName(context.measure.fill));
  PARAM_ASSIGN_OR_RETURN(order.injection, ParseInjection(context.measure.inject));
  if (order.matrix && context.measure.mode == "pipelined") {
    return absl::UnimplementedError("--mode pipelined: the matrix takes one iteration at a time");
  }
  if (order.matrix) {
    if (TextParam(params, "test", "ping_pong") != "ping_pong") {
      return absl::UnimplementedError(
          "--test makes no difference to the matrix: this case would only repeat the one without "
          "it");
    }
    for (int i = 0; i < order.ranks; ++i) {
      for (int j = 0; j < order.ranks; ++j) {
        if (i != j) order.pairs.push_back({i, j});
      }
    }
  } else {
    PARAM_ASSIGN_OR_RETURN(order.pairs, PairsOf(params, pattern == "pairwise", order.ranks));
  }
  PARAM_RETURN_IF_ERROR(CheckInjection(context.measure, order.injection, order.ranks,
                                       ReceivedBy(order, order.injection.rank)));
  return order;
}

P2pLink::P2pLink(const CaseContext& context, const P2pOrder& order, Device& device, Stream& stream)
    : context_(context), order_(order), device_(device), stream_(stream) {}

absl::StatusOr<CommOp> P2pLink::Prepare(const char* name, int peer, std::int64_t bytes,
                                        int tag) const {
  OpDesc desc(name);
  desc.Int("peer", peer).Int("tag", tag).Tensor("data", PARAM_DTYPE_U8, {bytes});
  return context_.comm->CreateOp(desc.desc());
}

absl::Status P2pLink::CreateOps(P2pTest test, const RankPair& pair) {
  const int rank = context_.team.rank();
  test_ = test;
  is_source_ = rank == pair.source;
  peer_ = is_source_ ? pair.destination : rank == pair.destination ? pair.source : -1;
  if (peer_ < 0) return absl::OkStatus();
  PARAM_ASSIGN_OR_RETURN(send_, Prepare("send", peer_, order_.size, kDataTag));
  PARAM_ASSIGN_OR_RETURN(receive_, Prepare("recv", peer_, order_.size, kDataTag));
  if (test_ != P2pTest::kUni) return absl::OkStatus();
  PARAM_ASSIGN_OR_RETURN(answer_, Prepare("send", peer_, kAnswerBytes, kAnswerTag));
  PARAM_ASSIGN_OR_RETURN(heard_, Prepare("recv", peer_, kAnswerBytes, kAnswerTag));
  return absl::OkStatus();
}

absl::Status P2pLink::Allocate() {
  const auto bytes = static_cast<std::size_t>(std::max(order_.size, kAnswerBytes));
  PARAM_ASSIGN_OR_RETURN(out_, device_.CreateBuffer(PARAM_MEMORY_DEVICE, bytes), "to send");
  PARAM_ASSIGN_OR_RETURN(in_, device_.CreateBuffer(PARAM_MEMORY_DEVICE, bytes), "to receive");
  return absl::OkStatus();
}

absl::Status P2pLink::FillInputs() {
  std::vector<char> piece(static_cast<std::size_t>(
      std::min<std::int64_t>(kPiece, static_cast<std::int64_t>(out_.bytes()))));
  FillElements(order_.fill, PARAM_DTYPE_U8,
               DeriveSeed(context_.measure.seed, static_cast<std::uint64_t>(context_.team.rank())),
               piece.data(), piece.size());
  for (std::size_t at = 0; at < out_.bytes(); at += piece.size()) {
    PARAM_RETURN_IF_ERROR(out_.Write(at, piece.data(), std::min(piece.size(), out_.bytes() - at)));
  }
  return absl::OkStatus();
}

absl::Status P2pLink::RunWindow() {
  const param_operand out = out_.At(0);
  const param_operand in = in_.At(0);
  const bool sends = is_source_ || test_ == P2pTest::kBi;
  PARAM_RETURN_IF_ERROR(context_.comm->GroupBegin());
  for (std::int64_t i = 0; i < order_.window; ++i) {
    if (receives()) PARAM_RETURN_IF_ERROR(receive_.Enqueue(stream_, {&in, 1}, nullptr));
    if (sends) PARAM_RETURN_IF_ERROR(send_.Enqueue(stream_, {&out, 1}, nullptr));
  }
  PARAM_RETURN_IF_ERROR(context_.comm->GroupEnd());
  if (test_ == P2pTest::kBi) return absl::OkStatus();
  return is_source_ ? heard_.Enqueue(stream_, {&in, 1}, nullptr)
                    : answer_.Enqueue(stream_, {&out, 1}, nullptr);
}

absl::Status P2pLink::Run() {
  if (peer_ < 0) return absl::OkStatus();
  if (windowed()) return RunWindow();
  const param_operand out = out_.At(0);
  const param_operand in = in_.At(0);
  if (is_source_) PARAM_RETURN_IF_ERROR(send_.Enqueue(stream_, {&out, 1}, nullptr));
  if (!receives()) return absl::OkStatus();
  PARAM_RETURN_IF_ERROR(receive_.Enqueue(stream_, {&in, 1}, nullptr));
  if (is_source_ || test_ == P2pTest::kPing) return absl::OkStatus();
  return send_.Enqueue(stream_, {&out, 1}, nullptr);
}

absl::StatusOr<std::string> P2pLink::Check(std::int64_t* checked) {
  if (peer_ < 0) return std::string();
  const int rank = context_.team.rank();
  const CollectivePattern pattern = {PARAM_DTYPE_U8, Redop::kNone, order_.ranks,
                                     context_.measure.seed};
  std::vector<char> piece(static_cast<std::size_t>(std::min(kPiece, order_.size)));
  const auto length = [&](std::int64_t at) {
    return static_cast<std::size_t>(std::min(kPiece, order_.size - at));
  };
  for (std::int64_t at = 0; at < order_.size; at += kPiece) {
    FillPattern(pattern, rank, at, static_cast<std::int64_t>(length(at)), piece.data());
    PARAM_RETURN_IF_ERROR(out_.Write(static_cast<std::size_t>(at), piece.data(), length(at)));
    // Somebody else's numbers: what does not arrive cannot look right.
    FillPattern(pattern, -2, at, static_cast<std::int64_t>(length(at)), piece.data());
    PARAM_RETURN_IF_ERROR(in_.Write(static_cast<std::size_t>(at), piece.data(), length(at)));
  }
  PARAM_RETURN_IF_ERROR(Run());
  PARAM_RETURN_IF_ERROR(stream_.Synchronize());
  PARAM_RETURN_IF_ERROR(context_.comm->AsyncError());
  if (!receives()) return std::string();
  if (order_.injection.armed && order_.injection.rank == rank) {
    const auto at = static_cast<std::size_t>(order_.injection.index);
    std::array<char, 8> value = {};
    PARAM_RETURN_IF_ERROR(in_.Read(at, value.data(), 1));
    CorruptElement(PARAM_DTYPE_U8, value.data());
    PARAM_RETURN_IF_ERROR(in_.Write(at, value.data(), 1));
  }
  // A window's answer has overwritten nothing here: it goes the other way.
  OutputChecker checker(pattern, {{0, order_.size, peer_, 0}});
  for (std::int64_t at = 0; at < order_.size; at += kPiece) {
    PARAM_RETURN_IF_ERROR(in_.Read(static_cast<std::size_t>(at), piece.data(), length(at)));
    checker.Check(piece.data(), at, static_cast<std::int64_t>(length(at)));
  }
  *checked += checker.checked();
  if (checker.problem().empty()) return std::string();
  return absl::StrCat("rank ", rank, ", message from rank ", peer_, ": ", checker.problem(), "; ",
                      checker.wrong(), " of ", checker.checked(), " bytes are wrong");
}

absl::StatusOr<std::string> P2pLink::Info() const {
  return send_ ? send_.Info() : absl::StatusOr<std::string>(std::string("{}"));
}

}  // namespace param
