// From a descriptor to the arguments of one MPI call.

#include <memory>

#include "agent/backends/mpi/counts.h"
#include "agent/backends/mpi/state.h"

namespace param::mpi {
namespace {

using K = kit::CollectiveKind;

// Above what MPI promises of tags; kit::ParseCollective keeps users' below.
constexpr int kHighestTag = 32769;

std::int32_t CheckTags(param_ctx* ctx, param_error* err) {
  void* value = nullptr;
  int found = 0;
  const int code =
      MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
  if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Comm_get_attr", code);
  if (found != 0 && *static_cast<int*>(value) >= kHighestTag) return kit::kOk;
  return kit::Fail(err, kit::kUnimplemented, "this MPI has tags up to %d only",
                   found != 0 ? *static_cast<int*>(value) : 32767);
}

// Counts per peer, or the one count that all peers share.
std::vector<std::int64_t> CountsOf(const param_op& op) {
  const kit::Collective& c = op.c;
  const auto size = static_cast<std::size_t>(op.comm->size);
  switch (c.kind) {
    case K::kAllToAll:
      return {static_cast<std::int64_t>(c.src / size)};
    case K::kReduceScatter:
    case K::kScatter:
      return {static_cast<std::int64_t>(c.dst)};
    case K::kAllGatherV:
    case K::kReduceScatterV:
      return c.send_counts;
    case K::kAllToAllV: {
      std::vector<std::int64_t> both = c.send_counts;
      both.insert(both.end(), c.recv_counts.begin(), c.recv_counts.end());
      return both;
    }
    default:
      return {static_cast<std::int64_t>(c.src)};
  }
}

std::int32_t ChooseType(param_ctx* ctx, param_op* op, std::int64_t* block, param_error* err) {
  op->type = TypeOf(op->c.dtype);
  const std::vector<std::int64_t> counts = CountsOf(*op);
  *block = BlockFor(counts);
  if (*block == 0 || (*block > 1 && op->c.reduces())) {
    return kit::Fail(err, kit::kUnimplemented,
                     "%s: MPI counts in 32 bits, and what has more than %lld elements %s",
                     kit::kCollectiveNames[static_cast<int>(op->c.kind)],
                     static_cast<long long>(kMaxCount),
                     op->c.reduces() ? "cannot be reduced in larger units"
                                     : "must divide into blocks of a power of two");
  }
  if (*block == 1) return kit::kOk;
  MPI_Datatype element = op->type;
  int code = MPI_Type_contiguous(static_cast<int>(*block), element, &op->type);
  if (code == MPI_SUCCESS) code = MPI_Type_commit(&op->type);
  if (code != MPI_SUCCESS) return FailWith(ctx, err, "MPI_Type_contiguous", code);
  op->owns_type = true;
  return kit::kOk;
}

void Fill(const std::vector<std::int64_t>& counts, std::int64_t block, std::vector<int>* out,
          std::vector<int>* displs) {
  std::int64_t at = 0;
  for (const std::int64_t count : counts) {
    out->push_back(static_cast<int>(count / block));
    displs->push_back(static_cast<int>(at / block));
    at += count;
  }
}

std::int32_t CheckInPlace(const param_op& op, param_error* err) {
  if (op.c.kind == K::kAllToAllV && op.c.in_place && op.c.send_counts != op.c.recv_counts) {
    return kit::Fail(
        err, kit::kUnimplemented,
        "all_to_allv in place: MPI takes as much from each rank as it sends there, and "
        "send_counts differ from recv_counts");
  }
  return kit::kOk;
}

std::int32_t Prepare(param_ctx* ctx, const param_op_desc& desc, param_op* op, param_error* err) {
  kit::Collective& c = op->c;
  PARAM_KIT_TRY(kit::ParseCollective(desc, op->comm->rank, op->comm->size, &c, err));
  PARAM_KIT_TRY(CheckInPlace(*op, err));
  op->operands = c.kind == K::kBarrier ? 0 : (c.one_buffer() ? 1 : 2);
  op->is_root = c.root == op->comm->rank;
  if (c.reduces()) {
    PARAM_KIT_TRY(ReductionFor(ctx, c.redop, c.dtype, &op->reduction, &op->user_reduction, err));
    op->averages_here = c.redop == kit::RedOp::kAvg && (c.kind != K::kReduce || op->is_root);
    // MPI in place would take the whole operand for scratch and leave the result at its beginning;
    // ours belongs into the own slot, with the rest untouched.
    op->via_workspace = c.in_place && (c.kind == K::kReduceScatter || c.kind == K::kReduceScatterV);
    op->finishes = op->averages_here || op->via_workspace;
  }
  if (c.kind == K::kIncast || c.kind == K::kMulticast) {
    PARAM_KIT_TRY(CheckTags(ctx, err));
    op->parts.assign(c.peers.size(), MPI_REQUEST_NULL);
  }
  std::int64_t block = 1;
  PARAM_KIT_TRY(ChooseType(ctx, op, &block, err));
  if (block < 1)
    return kit::Fail(err, kit::kInternal, "a block of %lld elements",
                     static_cast<long long>(block));
  op->n = static_cast<int>(CountsOf(*op).front() / block);
  Fill(c.send_counts, block, &op->send_counts, &op->send_displs);
  Fill(c.recv_counts, block, &op->recv_counts, &op->recv_displs);
  // all_gather_v sends the own share.
  if (c.kind == K::kAllGatherV) op->n = op->send_counts[static_cast<std::size_t>(op->comm->rank)];
  return kit::kOk;
}

}  // namespace

std::int32_t OpCreate(param_ctx* ctx, param_comm* comm, const param_op_desc* desc, param_op** out,
                      param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    auto op = std::make_unique<param_op>();
    op->comm = comm;
    PARAM_KIT_TRY(Prepare(ctx, *desc, op.get(), err));
    *out = op.release();
    return kit::kOk;
  });
}

void OpDestroy(param_ctx* ctx, param_op* raw) {
  const std::unique_ptr<param_op> op(raw);
  if (op->owns_type && !ctx->broken && !ctx->aborted.load()) MPI_Type_free(&op->type);
}

std::size_t OpWorkspaceBytes(param_ctx*, param_op* op) {
  return op->via_workspace ? op->c.dst * op->c.size() : 0;
}

}  // namespace param::mpi
