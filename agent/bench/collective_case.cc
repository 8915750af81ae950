#include "agent/bench/collective_case.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/backend/kit.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/case_record.h"
#include "agent/bench/element.h"
#include "agent/bench/verify_gemm.h"
#include "proto/base/status.h"
#include "proto/catalog/values.h"

namespace param {
namespace {

// Elements that are filled or checked at a time: a period, so that one piece serves for all.
constexpr std::int64_t kPiece = kPatternPeriod;

absl::Status OnlyRepeats(absl::string_view what, CollectiveOp op) {
  return absl::UnimplementedError(absl::StrCat(what, " makes no difference to ",
                                               CollectiveOpName(op),
                                               ": this case would only repeat the one without it"));
}

bool IsDefault(const Params& params, absl::string_view name) {
  const auto bench = FindBenchmark("collective");
  if (!bench.ok()) return true;
  for (const ParamSpec& spec : (*bench)->params) {
    if (spec.name != name) continue;
    const auto fallback = ParseValues(spec, spec.fallback);
    const auto given = params.find(name);
    return given == params.end() || (fallback.ok() && fallback->front() == given->second);
  }
  return true;
}

// Parameters that the operation does not have.
absl::Status CheckApplies(const Params& params, CollectiveOp op) {
  if (!Reduces(op) && TextParam(params, "redop", "sum") != "sum") return OnlyRepeats("--redop", op);
  if (op == CollectiveOp::kBarrier) {
    for (const absl::string_view name : {"size", "dtype", "buffers"}) {
      if (!IsDefault(params, name)) return OnlyRepeats(FlagName(name), op);
    }
  }
  if (!HasRoot(op) && IntParam(params, "root", 0) != 0) return OnlyRepeats("--root", op);
  if (!TakesSplit(op) && TextParam(params, "split", "even") != "even") {
    return OnlyRepeats("--split", op);
  }
  if (!TakesPeers(op) && TextParam(params, "peers", "all") != "all") {
    return OnlyRepeats("--peers", op);
  }
  if (!TakesInPlace(op) && BoolParam(params, "in_place", false)) {
    return OnlyRepeats("--in-place", op);
  }
  return absl::OkStatus();
}

// Output elements of a rank; 0 for one that is not of the job.
absl::StatusOr<std::int64_t> OutputsOf(const CollectiveRequest& request, int rank) {
  if (rank >= request.ranks) return std::int64_t{0};
  PARAM_ASSIGN_OR_RETURN(const CollectiveLayout there, LayOut(request, rank));
  std::int64_t outputs = 0;
  for (const OutputBlock& block : OutputOf(request, there, rank)) outputs += block.count;
  return outputs;
}

std::int64_t SumBefore(const std::vector<std::int64_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
}

}  // namespace

absl::StatusOr<CollectiveOrder> OrderOf(const CaseContext& context) {
  const Params& params = context.params;
  CollectiveOrder order;
  const std::string name = TextParam(params, "op", "");
  const std::optional<CollectiveOp> op = CollectiveOpFromName(name);
  if (!op.has_value()) return absl::InvalidArgumentError(absl::StrCat("--op: ", name));
  const std::optional<Split> split = SplitFromName(TextParam(params, "split", "even"));
  if (!split.has_value()) return absl::InvalidArgumentError("--split is not known");
  PARAM_ASSIGN_OR_RETURN(const param_dtype dtype, DtypeFromName(TextParam(params, "dtype", "f32")));
  PARAM_RETURN_IF_ERROR(CheckApplies(params, *op));
  order.redop = TextParam(params, "redop", "sum");
  order.request = {*op,
                   IntParam(params, "size", 0),
                   static_cast<std::int64_t>(kit::DtypeSize(dtype)),
                   context.team.size(),
                   static_cast<int>(IntParam(params, "root", 0)),
                   *split,
                   context.measure.seed,
                   {}};
  if (const std::string peers = TextParam(params, "peers", "all"); peers != "all") {
    PARAM_ASSIGN_OR_RETURN(order.request.peers, ParseRanks(peers, context.team.size()), "--peers");
  }
  order.pattern = {dtype, Redop::kNone, context.team.size(), context.measure.seed};
  if (Reduces(*op)) {
    PARAM_ASSIGN_OR_RETURN(order.pattern.redop, RedopFromName(order.redop));
  }
  order.in_place = BoolParam(params, "in_place", false);
  order.inflight = IntParam(params, "inflight", 1);
  order.buffers = IntParam(params, "buffers", 1);
  order.barrier = BoolParam(params, "barrier", true);
  PARAM_ASSIGN_OR_RETURN(order.fill, FillFromName(context.measure.fill));
  PARAM_ASSIGN_OR_RETURN(order.injection, ParseInjection(context.measure.inject));
  PARAM_RETURN_IF_ERROR(LayOut(order.request, context.team.rank()).status());
  PARAM_ASSIGN_OR_RETURN(const std::int64_t outputs,
                         OutputsOf(order.request, order.injection.rank));
  PARAM_RETURN_IF_ERROR(
      CheckInjection(context.measure, order.injection, context.team.size(), outputs));
  if (context.measure.check) PARAM_RETURN_IF_ERROR(order.pattern.CanCheck());
  if (order.inflight > 1 && context.measure.mode != "pipelined") {
    return absl::InvalidArgumentError(
        absl::StrCat("--inflight ", order.inflight,
                     " needs --mode pipelined: an isolated iteration is one operation"));
  }
  return order;
}

CollectiveCase::CollectiveCase(const CaseContext& context, const CollectiveOrder& order)
    : context_(context),
      order_(order),
      device_(Device::Borrow(context.device, context.device_ctx)) {}

absl::StatusOr<CommOp> CollectiveCase::CreateOp() const {
  const CollectiveOp op = order_.request.op;
  const param_dtype dtype = order_.pattern.dtype;
  OpDesc desc(CollectiveOpName(op));
  if (Reduces(op)) desc.String("redop", order_.redop);
  if (HasRoot(op)) desc.Int("root", order_.request.root);
  if (TakesInPlace(op)) desc.Bool("in_place", order_.in_place);
  if (op == CollectiveOp::kAllGatherV || op == CollectiveOp::kReduceScatterV) {
    desc.Ints("counts", layout_.counts);
  } else if (op == CollectiveOp::kAllToAllV) {
    desc.Ints("send_counts", layout_.send_counts).Ints("recv_counts", layout_.recv_counts);
  } else if (op == CollectiveOp::kIncast) {
    desc.Ints("sources", layout_.peers);
  } else if (op == CollectiveOp::kMulticast) {
    desc.Ints("destinations", layout_.peers);
  }
  if (one_buffer()) {
    desc.Tensor("data", dtype, {layout_.src});
  } else if (op != CollectiveOp::kBarrier) {
    desc.Tensor("src", dtype, {layout_.src}).Tensor("dst", dtype, {layout_.dst});
  }
  return context_.comm->CreateOp(desc.desc());
}

absl::Status CollectiveCase::CreateOps() {
  PARAM_ASSIGN_OR_RETURN(layout_, LayOut(order_.request, context_.team.rank()));
  sets_.resize(static_cast<std::size_t>(std::max(order_.inflight, order_.buffers)));
  for (Set& set : sets_) {
    PARAM_ASSIGN_OR_RETURN(set.op, CreateOp());
  }
  if (!order_.barrier) return absl::OkStatus();
  OpDesc barrier("barrier");
  PARAM_ASSIGN_OR_RETURN(barrier_, context_.comm->CreateOp(barrier.desc()), "barrier");
  return absl::OkStatus();
}

std::int64_t CollectiveCase::OwnShare() const {
  const int rank = context_.team.rank();
  if (!layout_.counts.empty()) return SumBefore(layout_.counts, rank);
  return std::min(layout_.src, layout_.dst) * rank;
}

void CollectiveCase::PlaceOperands(Set& set) const {
  set.operands = {set.a.At(0), set.b ? set.b.At(0) : set.a.At(0)};
  if (!order_.in_place) return;
  const std::size_t share = static_cast<std::size_t>(OwnShare()) * element();
  const bool at_root = context_.team.rank() == order_.request.root;
  switch (order_.request.op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kAllGatherV:
      set.operands[0] = set.b.At(share);
      return;
    case CollectiveOp::kGather:
      if (at_root) set.operands[0] = set.b.At(share);
      return;
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kReduceScatterV:
      set.operands[1] = set.a.At(share);
      return;
    case CollectiveOp::kScatter:
      if (at_root) set.operands[1] = set.a.At(share);
      return;
    default:
      set.operands[1] = set.a.At(0);
  }
}

absl::Status CollectiveCase::Allocate() {
  PARAM_ASSIGN_OR_RETURN(stream_, device_.CreateStream());
  const auto bytes = [this](std::int64_t elements) {
    return static_cast<std::size_t>(std::max<std::int64_t>(elements, 1)) * element();
  };
  for (Set& set : sets_) {
    // In place all_to_allv may receive more than it sends.
    const std::int64_t a = order_.in_place && order_.request.op == CollectiveOp::kAllToAllV
                               ? std::max(layout_.src, layout_.dst)
                               : layout_.src;
    PARAM_ASSIGN_OR_RETURN(set.a, device_.CreateBuffer(PARAM_MEMORY_DEVICE, bytes(a)), "source");
    if (!one_buffer()) {
      PARAM_ASSIGN_OR_RETURN(set.b, device_.CreateBuffer(PARAM_MEMORY_DEVICE, bytes(layout_.dst)),
                             "destination");
    }
    PlaceOperands(set);
    Buffer workspace;
    if (const std::size_t need = set.op.workspace_bytes(); need > 0) {
      PARAM_ASSIGN_OR_RETURN(workspace, device_.CreateBuffer(PARAM_MEMORY_DEVICE, need),
                             "workspace");
    }
    workspaces_.push_back(std::move(workspace));
  }
  return absl::OkStatus();
}

absl::Span<const param_operand> CollectiveCase::operands(const Set& set) const {
  if (order_.request.op == CollectiveOp::kBarrier) return {};
  return {set.operands.data(), one_buffer() ? std::size_t{1} : std::size_t{2}};
}

bool CollectiveCase::idle() const {
  if (!TakesPeers(order_.request.op) || context_.team.rank() == order_.request.root) return false;
  return std::find(layout_.peers.begin(), layout_.peers.end(), context_.team.rank()) ==
         layout_.peers.end();
}

absl::Status CollectiveCase::Meet() {
  if (!barrier_) return absl::OkStatus();
  return barrier_.Enqueue(stream_, {}, nullptr);
}

absl::Status CollectiveCase::Enqueue() {
  const std::size_t at = next_;
  next_ = next_ + 1 == sets_.size() ? 0 : next_ + 1;
  Set& set = sets_[at];
  const Buffer* const workspace = workspaces_[at] ? &workspaces_[at] : nullptr;
  if (order_.inflight == 1) return set.op.Enqueue(stream_, operands(set), workspace);
  // The oldest gives way: with more sets than --inflight, that is not the one of this set.
  const std::size_t oldest =
      (at + sets_.size() - static_cast<std::size_t>(order_.inflight)) % sets_.size();
  if (param_request* const request = std::exchange(sets_[oldest].pending, nullptr)) {
    PARAM_RETURN_IF_ERROR(sets_[oldest].op.Wait(request));
  }
  return set.op.Start(stream_, operands(set), workspace, &set.pending);
}

absl::Status CollectiveCase::Drain() {
  absl::Status first;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    Set& set = sets_[(next_ + i) % sets_.size()];
    param_request* const request = std::exchange(set.pending, nullptr);
    if (request != nullptr) first.Update(set.op.Wait(request));
  }
  return first;
}

absl::Status CollectiveCase::FillSet(Set& set, bool pattern) {
  const int rank = context_.team.rank();
  std::vector<char> piece(static_cast<std::size_t>(std::min(kPiece, layout_.src)) * element());
  const param_operand& src = set.operands[0];
  Buffer& buffer = src.buffer == set.a.get() ? set.a : set.b;
  // One piece, over and over: the pattern repeats after it, and of what is only timed nobody asks.
  const std::int64_t fresh = std::min(kPiece, layout_.src);
  if (pattern) {
    FillPattern(order_.pattern, rank, 0, fresh, piece.data());
  } else if (layout_.src > 0) {
    FillElements(order_.fill, order_.pattern.dtype,
                 DeriveSeed(order_.request.seed, static_cast<std::uint64_t>(rank)), piece.data(),
                 static_cast<std::size_t>(fresh));
  }
  for (std::int64_t at = 0; at < layout_.src; at += kPiece) {
    const std::int64_t count = std::min(kPiece, layout_.src - at);

    PARAM_RETURN_IF_ERROR(buffer.Write(src.offset + static_cast<std::size_t>(at) * element(),
                                       piece.data(), static_cast<std::size_t>(count) * element()));
  }
  return absl::OkStatus();
}

absl::Status CollectiveCase::FillInputs() {
  for (Set& set : sets_) PARAM_RETURN_IF_ERROR(FillSet(set, /*pattern=*/false));
  return absl::OkStatus();
}

// Both buffers whole, before the inputs are written over it: what nobody writes must not look
// right.
absl::Status CollectiveCase::PoisonOutput(Set& set) {
  std::vector<char> piece(static_cast<std::size_t>(kPiece) * element());
  Poison(order_.pattern.dtype, piece.data(), static_cast<std::size_t>(kPiece));
  for (Buffer* buffer : {&set.a, &set.b}) {
    for (std::size_t at = 0; at < buffer->bytes(); at += piece.size()) {
      PARAM_RETURN_IF_ERROR(
          buffer->Write(at, piece.data(), std::min(piece.size(), buffer->bytes() - at)));
    }
  }
  return absl::OkStatus();
}

absl::Status CollectiveCase::Inject(Set& set) {
  const param_operand& dst = set.operands[one_buffer() ? 0 : 1];
  Buffer& buffer = dst.buffer == set.a.get() ? set.a : set.b;
  const std::size_t offset =
      dst.offset + static_cast<std::size_t>(order_.injection.index) * element();
  std::array<char, 8> value = {};
  PARAM_RETURN_IF_ERROR(buffer.Read(offset, value.data(), element()));
  CorruptElement(order_.pattern.dtype, value.data());
  return buffer.Write(offset, value.data(), element());
}

absl::StatusOr<std::string> CollectiveCase::CheckSet(Set& set, std::int64_t* checked) {
  const int rank = context_.team.rank();
  OutputChecker checker(order_.pattern, OutputOf(order_.request, layout_, rank));
  const param_operand& dst = set.operands[one_buffer() ? 0 : 1];
  const Buffer& buffer = dst.buffer == set.a.get() ? set.a : set.b;
  std::vector<char> piece(static_cast<std::size_t>(std::min(kPiece, layout_.dst)) * element());
  for (std::int64_t at = 0; at < layout_.dst; at += kPiece) {
    const std::int64_t count = std::min(kPiece, layout_.dst - at);
    PARAM_RETURN_IF_ERROR(buffer.Read(dst.offset + static_cast<std::size_t>(at) * element(),
                                      piece.data(), static_cast<std::size_t>(count) * element()));
    checker.Check(piece.data(), at, count);
  }
  *checked += checker.checked();
  if (checker.problem().empty()) return std::string();
  return absl::StrCat("rank ", rank, ", ", CollectiveOpName(order_.request.op), ": ",
                      checker.problem(), "; ", checker.wrong(), " of ", checker.checked(),
                      " elements are wrong");
}

absl::StatusOr<std::string> CollectiveCase::Check(std::int64_t* checked) {
  if (order_.request.op == CollectiveOp::kBarrier) return std::string();
  std::string problem;
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    Set& set = sets_[i];
    PARAM_RETURN_IF_ERROR(PoisonOutput(set));
    const bool gives = !one_buffer() || context_.team.rank() == order_.request.root;
    if (gives) PARAM_RETURN_IF_ERROR(FillSet(set, /*pattern=*/true), "filling");
    next_ = i;  // by the way that is timed: with --inflight through a request
    PARAM_RETURN_IF_ERROR(Enqueue());
    PARAM_RETURN_IF_ERROR(Drain());
    PARAM_RETURN_IF_ERROR(stream_.Synchronize());
    PARAM_RETURN_IF_ERROR(context_.comm->AsyncError());
    if (i == 0 && order_.injection.armed && order_.injection.rank == context_.team.rank()) {
      PARAM_RETURN_IF_ERROR(Inject(set), "injecting");
    }
    PARAM_ASSIGN_OR_RETURN(std::string found, CheckSet(set, checked));
    if (problem.empty()) problem = std::move(found);
  }
  return problem;
}

}  // namespace param
