// What is about a communicator rather than an operation: phases, groups, requests, splitting,
// registration, graphs, deadline and abort.

#include "tests/gpu/check_nccl.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace param::gpu_check {
namespace {

constexpr std::int64_t kCount = 100'000;

absl::Status Check(bool good, const std::string& what) {
  return good ? absl::OkStatus() : absl::DataLossError(what);
}

// Runs `body` on all ranks and makes a row of it; a failure costs the communicator.
Row OnAllRow(NcclRanks& ranks, const char* what,
             const std::function<absl::Status(NcclRank&)>& body) {
  Row row{absl::StrCat("nccl ", what), "ok", absl::StrCat(ranks.size(), " GPU")};
  const absl::Status status = ranks.OnAll(body);
  if (status.ok()) return row;
  row.verdict = absl::IsDataLoss(status) ? "WRONG" : "FAILED";
  row.detail = std::string(status.message());
  if (const absl::Status again = Reconnect(ranks); !again.ok()) {
    absl::StrAppend(&row.detail, "; ", again.message());
  }
  return row;
}

absl::StatusOr<Buffer> BufferOf(const NcclRank& rank, const std::vector<std::int32_t>& values) {
  const std::size_t bytes = values.size() * sizeof(values[0]);
  PARAM_ASSIGN_OR_RETURN(Buffer buffer, rank.device().CreateBuffer(PARAM_MEMORY_DEVICE, bytes));
  PARAM_RETURN_IF_ERROR(buffer.Write(0, values.data(), bytes));
  return buffer;
}

// What every element of the buffer must be.
absl::Status ExpectAll(const Buffer& buffer, std::int32_t expected) {
  std::vector<std::int32_t> got(static_cast<std::size_t>(kCount));
  PARAM_RETURN_IF_ERROR(buffer.Read(0, got.data(), got.size() * sizeof(got[0])));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected) continue;
    return absl::DataLossError(
        absl::StrCat("index ", i, ": expected ", expected, ", got ", got[i]));
  }
  return absl::OkStatus();
}

void DescribeSum(OpDesc* desc) {
  desc->String("redop", "sum").Tensor("src", PARAM_DTYPE_I32, {kCount});
  desc->Tensor("dst", PARAM_DTYPE_I32, {kCount});
}

// Source and destination of a sum over ranks: rank + 1 in, nonsense where the result is to be.
struct SumBuffers {
  Buffer src, dst;
  std::vector<param_operand> operands() const { return {src.At(0), dst.At(0)}; }
};

absl::StatusOr<SumBuffers> MakeSum(const NcclRank& rank) {
  const std::vector<std::int32_t> mine(static_cast<std::size_t>(kCount), rank.rank() + 1);
  const std::vector<std::int32_t> nonsense(mine.size(), -7);
  SumBuffers buffers;
  PARAM_ASSIGN_OR_RETURN(buffers.src, BufferOf(rank, mine));
  PARAM_ASSIGN_OR_RETURN(buffers.dst, BufferOf(rank, nonsense));
  return buffers;
}

std::int32_t SumOfAll(int ranks) { return ranks * (ranks + 1) / 2; }

absl::Status CheckPhases(NcclRank& rank) {
  return Check(rank.phases() == "bootstrap connect ", absl::StrCat("phases: ", rank.phases()));
}

// To the next rank and from the one before, in one group.
absl::Status CheckRing(NcclRank& rank) {
  const int next = (rank.rank() + 1) % rank.ranks();
  const int before = (rank.rank() + rank.ranks() - 1) % rank.ranks();
  PARAM_ASSIGN_OR_RETURN(const SumBuffers buffers, MakeSum(rank));
  OpDesc send("send");
  send.Int("peer", next).Int("tag", 3).Tensor("data", PARAM_DTYPE_I32, {kCount});
  OpDesc recv("recv");
  recv.Int("peer", before).Int("tag", 3).Tensor("data", PARAM_DTYPE_I32, {kCount});
  PARAM_ASSIGN_OR_RETURN(const CommOp sender, rank.Prepare(send));
  PARAM_ASSIGN_OR_RETURN(const CommOp receiver, rank.Prepare(recv));
  BackendError error;
  const param_comm_v1& table = rank.table();
  PARAM_RETURN_IF_ERROR(BackendStatus(table.group_begin(rank.ctx(), &error), error));
  Buffer none;
  const absl::Status sent = rank.Enqueue(sender, {buffers.src.At(0)}, &none);
  param_request* request = nullptr;
  const absl::Status received = rank.Enqueue(receiver, {buffers.dst.At(0)}, &none, &request);
  PARAM_RETURN_IF_ERROR(BackendStatus(table.group_end(rank.ctx(), &error), error));
  PARAM_RETURN_IF_ERROR(sent);
  PARAM_RETURN_IF_ERROR(received);
  PARAM_RETURN_IF_ERROR(BackendStatus(table.request_wait(rank.ctx(), request, &error), error));
  return ExpectAll(buffers.dst, before + 1);
}

// Two operations under way, tested until done, then waited for.
absl::Status CheckRequests(NcclRank& rank) {
  OpDesc desc("all_reduce");
  DescribeSum(&desc);
  PARAM_ASSIGN_OR_RETURN(const CommOp op, rank.Prepare(desc));
  SumBuffers buffers[2];
  param_request* requests[2] = {};
  Buffer none;
  for (int i = 0; i < 2; ++i) {
    PARAM_ASSIGN_OR_RETURN(buffers[i], MakeSum(rank));
    PARAM_RETURN_IF_ERROR(rank.Enqueue(op, buffers[i].operands(), &none, &requests[i]));
  }
  BackendError error;
  for (std::int32_t done = 0; done == 0;) {
    PARAM_RETURN_IF_ERROR(
        BackendStatus(rank.table().request_test(rank.ctx(), requests[1], &done, &error), error));
  }
  for (int i = 0; i < 2; ++i) {
    PARAM_RETURN_IF_ERROR(
        BackendStatus(rank.table().request_wait(rank.ctx(), requests[i], &error), error));
    PARAM_RETURN_IF_ERROR(ExpectAll(buffers[i].dst, SumOfAll(rank.ranks())));
  }
  return absl::OkStatus();
}

// Even and odd ranks, each in reverse order; then one that takes no part.
absl::Status CheckSplit(NcclRank& rank) {
  const param_comm_v1& table = rank.table();
  BackendError error;
  param_comm* half = nullptr;
  PARAM_RETURN_IF_ERROR(BackendStatus(
      table.comm_split(rank.ctx(), rank.comm(), rank.rank() % 2, -rank.rank(), &half, &error),
      error));
  std::int32_t expected = 0;
  int last = 0;
  for (int r = rank.rank() % 2; r < rank.ranks(); r += 2) {
    expected += r + 1;
    last = r;
  }
  PARAM_ASSIGN_OR_RETURN(const SumBuffers buffers, MakeSum(rank));
  OpDesc sum("all_reduce");
  DescribeSum(&sum);
  PARAM_RETURN_IF_ERROR(rank.Run(sum, buffers.operands(), half));
  PARAM_RETURN_IF_ERROR(ExpectAll(buffers.dst, expected));
  OpDesc broadcast("broadcast");
  broadcast.Int("root", 0).Tensor("data", PARAM_DTYPE_I32, {kCount});
  PARAM_RETURN_IF_ERROR(rank.Run(broadcast, {buffers.src.At(0)}, half));
  PARAM_RETURN_IF_ERROR(ExpectAll(buffers.src, last + 1));  // the root is the highest rank
  PARAM_RETURN_IF_ERROR(BackendStatus(table.comm_destroy(rank.ctx(), half, &error), error));
  param_comm* rest = nullptr;
  const int color = rank.rank() == 0 ? -1 : 0;
  PARAM_RETURN_IF_ERROR(
      BackendStatus(table.comm_split(rank.ctx(), rank.comm(), color, 0, &rest, &error), error));
  if (color < 0) return Check(rest == nullptr, "a communicator for a rank that takes no part");
  return BackendStatus(table.comm_destroy(rank.ctx(), rest, &error), error);
}

absl::Status CheckRegistered(NcclRank& rank) {
  PARAM_ASSIGN_OR_RETURN(const SumBuffers buffers, MakeSum(rank));
  BackendError error;
  for (const Buffer* buffer : {&buffers.src, &buffers.dst}) {
    PARAM_RETURN_IF_ERROR(BackendStatus(
        rank.table().buffer_register(rank.ctx(), rank.comm(), buffer->get(), &error), error));
  }
  OpDesc desc("all_reduce");
  DescribeSum(&desc);
  PARAM_RETURN_IF_ERROR(rank.Run(desc, buffers.operands()));
  PARAM_RETURN_IF_ERROR(ExpectAll(buffers.dst, SumOfAll(rank.ranks())));
  // Given back while the buffers are there still.
  return rank.Destroy();
}

// Captured once, launched twice, each time on a result that was overwritten.
absl::Status CheckGraph(NcclRank& rank) {
  PARAM_ASSIGN_OR_RETURN(SumBuffers buffers, MakeSum(rank));
  OpDesc desc("all_reduce");
  DescribeSum(&desc);
  PARAM_ASSIGN_OR_RETURN(const CommOp op, rank.Prepare(desc));
  const param_device_v1& device = rank.device().table();
  param_ctx* const ctx = rank.device().ctx();
  param_stream* const stream = rank.stream().get();
  BackendError error;
  param_graph* graph = nullptr;
  Buffer none;
  PARAM_RETURN_IF_ERROR(BackendStatus(device.graph_begin(ctx, stream, &error), error));
  const absl::Status captured = rank.Enqueue(op, buffers.operands(), &none);
  const absl::Status ended = BackendStatus(device.graph_end(ctx, stream, &graph, &error), error);
  PARAM_RETURN_IF_ERROR(captured);
  PARAM_RETURN_IF_ERROR(ended);
  const std::vector<std::int32_t> nonsense(static_cast<std::size_t>(kCount), -7);
  absl::Status status = ExpectAll(buffers.dst, -7);  // capturing runs nothing
  for (int i = 0; i < 2 && status.ok(); ++i) {
    status = buffers.dst.Write(0, nonsense.data(), nonsense.size() * sizeof(nonsense[0]));
    if (status.ok()) {
      status = BackendStatus(device.graph_launch(ctx, graph, stream, &error), error);
    }
    if (status.ok()) status = rank.stream().Synchronize();
    if (status.ok()) status = ExpectAll(buffers.dst, SumOfAll(rank.ranks()));
  }
  device.graph_destroy(ctx, graph);
  return status;
}

// A rank that never comes.
Row CheckDeadline(NcclRanks& ranks) {
  Row row{"nccl create, a rank missing", "ok", ""};
  NcclRank& first = ranks[0];
  std::uint8_t id[PARAM_COMM_ID_BYTES] = {};
  BackendError error;
  absl::Status status = BackendStatus(first.table().unique_id(first.ctx(), id, &error), error);
  const auto begin = std::chrono::steady_clock::now();
  if (status.ok()) status = first.Create(id, ranks.size() + 1, 1'000'000'000);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  row.detail = absl::StrFormat("after %.2f s: %s", took.count(), status.message());
  if (!absl::IsDeadlineExceeded(status) || took.count() > 5) row.verdict = "FAILED";
  return row;
}

// All but rank 0 stay away from its collective; another thread aborts it.
Row CheckAbort(NcclRanks& ranks) {
  Row row{"nccl abort", "ok", ""};
  NcclRank& first = ranks[0];
  const auto abort_it = [&]() -> absl::Status {
    PARAM_ASSIGN_OR_RETURN(const SumBuffers buffers, MakeSum(first));
    OpDesc desc("all_reduce");
    DescribeSum(&desc);
    PARAM_ASSIGN_OR_RETURN(const CommOp op, first.Prepare(desc));
    Buffer none;
    PARAM_RETURN_IF_ERROR(first.Enqueue(op, buffers.operands(), &none));
    std::thread aborter([&] { first.Abort(); });
    const absl::Status ended = first.stream().Synchronize();
    aborter.join();
    PARAM_RETURN_IF_ERROR(ended, "the stream after the abort");
    const absl::Status later = first.Enqueue(op, buffers.operands(), &none);
    BackendError error;
    const absl::Status known =
        BackendStatus(first.table().comm_async_error(first.ctx(), first.comm(), &error), error);
    row.detail = absl::StrCat(ranks.size() > 1 ? "in flight; " : "nothing in flight, one GPU; ",
                              later.message());
    return Check(absl::IsAborted(later) && absl::IsAborted(known),
                 absl::StrCat("afterwards: ", later.message(), "; ", known.message()));
  };
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = abort_it();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!status.ok()) {
    row.verdict = "FAILED";
    row.detail = std::string(status.message());
  } else if (took.count() > 10) {
    row.verdict = "FAILED";
    absl::StrAppend(&row.detail, "; took ", took.count(), " s");
  }
  for (int r = 0; r < ranks.size(); ++r) ranks[r].Abort();
  return row;
}

std::vector<Row> CheckAll(NcclRanks& ranks) {
  std::vector<Row> rows = {OnAllRow(ranks, "create, in phases", CheckPhases)};
  for (Row& row : CheckCollectives(ranks)) rows.push_back(std::move(row));
  rows.push_back(OnAllRow(ranks, "send, recv in a group", CheckRing));
  rows.push_back(OnAllRow(ranks, "requests", CheckRequests));
  rows.push_back(OnAllRow(ranks, "split", CheckSplit));
  rows.push_back(OnAllRow(ranks, "graph of all_reduce", CheckGraph));
  rows.push_back(OnAllRow(ranks, "registered buffers, destroy", CheckRegistered));
  rows.push_back(CheckDeadline(ranks));
  const absl::Status again = Reconnect(ranks);
  rows.push_back(again.ok() ? CheckAbort(ranks)
                            : Row{"nccl abort", "FAILED", std::string(again.message())});
  const absl::Status last = Reconnect(ranks);
  rows.push_back(
      {"nccl create after an abort", last.ok() ? "ok" : "FAILED", std::string(last.message())});
  return rows;
}

}  // namespace

absl::Status Reconnect(NcclRanks& ranks) {
  ranks.Disconnect().IgnoreError();  // what was aborted is merely given back
  return ranks.Connect();
}

std::vector<Row> CheckNccl(const LoadedBackend& cuda, const LoadedBackend& nccl, int devices) {
  const auto failed = [](const absl::Status& status) {
    return std::vector<Row>{{"nccl", "FAILED", std::string(status.message())}};
  };
  absl::StatusOr<std::unique_ptr<NcclRanks>> ranks = NcclRanks::Open(cuda, nccl, devices);
  if (!ranks.ok()) return failed(ranks.status());
  if (const absl::Status status = (*ranks)->Connect(); !status.ok()) return failed(status);
  return CheckAll(**ranks);
}

}  // namespace param::gpu_check
