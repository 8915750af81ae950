#include "tests/contract/collective_checks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "tests/contract/collective_model.h"

namespace param {
namespace {

using K = kit::CollectiveKind;
using Bytes = std::vector<unsigned char>;

constexpr std::size_t kGuard = 64;
constexpr unsigned char kSentinel = 0xA5;
constexpr param_dtype kTypes[] = {PARAM_DTYPE_I8,  PARAM_DTYPE_U8,  PARAM_DTYPE_I32,
                                  PARAM_DTYPE_I64, PARAM_DTYPE_F16, PARAM_DTYPE_BF16,
                                  PARAM_DTYPE_F32, PARAM_DTYPE_F64};
constexpr std::size_t kSizes[] = {1, 7, 1000};
constexpr std::size_t kLarge = 100003;

// Memory of the device between two guards, with what it held when the operation began.
struct Region {
  Buffer buffer;
  Bytes before;

  param_operand At(std::size_t bytes) const { return buffer.At(kGuard + bytes); }
  unsigned char* Data() { return before.data() + kGuard; }
};

// What one run of a case works on.
struct Operands {
  Region src, dst;  // dst is empty when both share src
  bool shared = false;
  Region& result() { return shared ? src : dst; }
};

// A ring of messages: `parts` of n elements from each rank to the next.
struct RingShape {
  param_dtype dtype = PARAM_DTYPE_F32;
  std::size_t n = 0, parts = 1;
  bool requests = false;  // else in one group
  bool tags = false;      // one each, received in another order; else one for all
};

// Those that return bool are false once the backend failed: what follows would be out of step.
class Checker {
 public:
  explicit Checker(const CommUnderTest& under) : under_(under) {}

  void RunAll();
  CollectiveReport Take() { return std::move(report_); }

 private:
  bool Kind(K kind);
  bool Case(const CollectiveCase& c, int times, bool with_request);
  bool TwoRequestsAtOnce();
  bool PointToPoint();
  bool Pairs();
  bool Ring(const RingShape& shape);

  absl::StatusOr<param_op*> Create(const param_op_desc& desc);
  absl::Status Enqueue(param_op* op, const std::vector<param_operand>& operands,
                       param_request** request);
  // One send or recv at an element of `data`.
  absl::Status Transfer(bool send, const Region& data, std::size_t at, param_dtype dtype,
                        std::size_t n, int peer, int tag, param_request** request);
  absl::Status Finish(param_request* request);
  // Ends what was created since the last call. REQUIRES: nothing is in flight.
  void Drop();

  absl::StatusOr<Region> Make(std::size_t bytes);
  absl::Status Fill(Region& region);
  absl::StatusOr<Operands> MakeOperands(const CollectiveCase& c);
  absl::Status Compare(const CollectiveCase& c, Operands& operands, std::string* wrong);
  bool CheckReceived(const std::string& name, absl::Status status, Region& region,
                     param_dtype dtype, std::size_t at, int from, std::size_t count);

  // Files an outcome. False for an error that is not UNIMPLEMENTED.
  bool Note(const std::string& name, const absl::Status& status);
  void Wrong(const std::string& name, const std::string& what);

  const CommUnderTest under_;
  CollectiveReport report_;
  std::set<std::string> seen_unimplemented_;
  std::vector<param_op*> kept_;
  std::vector<Buffer> workspaces_;
  std::size_t step_ = 0;
};

// ---- memory ------------------------------------------------------------------------------------

absl::StatusOr<Region> Checker::Make(std::size_t bytes) {
  Region region;
  region.before.assign(bytes + 2 * kGuard, kSentinel);
  PARAM_ASSIGN_OR_RETURN(region.buffer,
                         under_.device->CreateBuffer(PARAM_MEMORY_DEVICE, region.before.size()));
  return region;
}

absl::Status Checker::Fill(Region& region) {
  return region.buffer.Write(0, region.before.data(), region.before.size());
}

absl::StatusOr<Operands> Checker::MakeOperands(const CollectiveCase& c) {
  const Placement p = PlacementOf(c, under_.rank, under_.size);
  const std::size_t size = kit::DtypeSize(c.dtype);
  Operands made;
  made.shared = p.shared;
  const std::size_t src_room = p.shared ? std::max(p.src, p.dst) : p.src;
  PARAM_ASSIGN_OR_RETURN(made.src, Make(src_room * size));
  for (std::size_t i = 0; i < p.src; ++i) {
    PutElement(c.dtype, InputAt(c, under_.rank, i, under_.size),
               made.src.Data() + (p.src_at + i) * size);
  }
  PARAM_RETURN_IF_ERROR(Fill(made.src));
  if (!p.shared) {
    PARAM_ASSIGN_OR_RETURN(made.dst, Make(p.dst * size));
    PARAM_RETURN_IF_ERROR(Fill(made.dst));
  }
  return made;
}

// What differs first between two images of a region; "" when nothing does. Elements count from the
// one at `origin`.
std::string Difference(param_dtype dtype, const Bytes& expected, const Bytes& got,
                       std::size_t origin) {
  if (got == expected) return "";
  const std::size_t end = expected.size() - kGuard;
  for (std::size_t at = 0; at < expected.size(); ++at) {
    if ((at >= kGuard && at < end) || got[at] == expected[at]) continue;
    return absl::StrCat("byte ", static_cast<std::int64_t>(at) - static_cast<std::int64_t>(kGuard),
                        " outside of the operand's ", end - kGuard, " was written");
  }
  const std::size_t size = kit::DtypeSize(dtype);
  std::string first;
  std::size_t count = 0;
  for (std::size_t at = kGuard; at < end; at += size) {
    if (std::memcmp(&got[at], &expected[at], size) == 0) continue;
    if (count++ > 0) continue;
    first = absl::StrCat(
        "element ",
        static_cast<std::int64_t>((at - kGuard) / size) - static_cast<std::int64_t>(origin),
        ": expected ", ElementText(dtype, &expected[at]), ", got ", ElementText(dtype, &got[at]));
  }
  return absl::StrCat(first, " (", count, " of ", (end - kGuard) / size, " wrong)");
}

absl::StatusOr<Bytes> ReadAll(const Region& region) {
  Bytes got(region.before.size());
  PARAM_RETURN_IF_ERROR(region.buffer.Read(0, got.data(), got.size()));
  return got;
}

absl::Status Checker::Compare(const CollectiveCase& c, Operands& operands, std::string* wrong) {
  const Placement p = PlacementOf(c, under_.rank, under_.size);
  const std::size_t size = kit::DtypeSize(c.dtype);
  Bytes expected = operands.result().before;
  for (std::size_t i = 0; i < p.dst; ++i) {
    const std::optional<std::int64_t> value = ResultAt(c, under_.rank, i, under_.size);
    if (!value.has_value()) break;  // the rank gets nothing: its operand stays as it was
    PutElement(c.dtype, *value, expected.data() + kGuard + (p.dst_at + i) * size);
  }
  PARAM_ASSIGN_OR_RETURN(const Bytes got, ReadAll(operands.result()));
  if (p.shared && c.reduces() && p.src > p.dst) {
    // The other ranks' shares of src may have served as scratch.
    const auto own = static_cast<std::ptrdiff_t>(kGuard + p.dst_at * size);
    const auto own_end = own + static_cast<std::ptrdiff_t>(p.dst * size);
    std::copy(got.begin() + kGuard, got.begin() + own, expected.begin() + kGuard);
    std::copy(got.begin() + own_end, got.end() - kGuard, expected.begin() + own_end);
  }
  *wrong = Difference(c.dtype, expected, got, p.dst_at);
  if (!wrong->empty() || p.shared) return absl::OkStatus();
  PARAM_ASSIGN_OR_RETURN(const Bytes source, ReadAll(operands.src));
  const std::string changed = Difference(c.dtype, operands.src.before, source, 0);
  if (!changed.empty()) *wrong = "src was changed: " + changed;
  return absl::OkStatus();
}

// ---- running -----------------------------------------------------------------------------------

absl::StatusOr<param_op*> Checker::Create(const param_op_desc& desc) {
  BackendError error;
  param_op* op = nullptr;
  PARAM_RETURN_IF_ERROR(
      BackendStatus(under_.table->op_create(under_.ctx, under_.comm, &desc, &op, &error), error));
  return op;
}

// Blocks without a request and without a stream; completes in the stream otherwise.
absl::Status Checker::Enqueue(param_op* op, const std::vector<param_operand>& operands,
                              param_request** request) {
  const std::size_t bytes = under_.table->op_workspace_bytes == nullptr
                                ? 0
                                : under_.table->op_workspace_bytes(under_.ctx, op);
  if (bytes > 0) {
    PARAM_ASSIGN_OR_RETURN(Buffer made, under_.device->CreateBuffer(PARAM_MEMORY_DEVICE, bytes));
    workspaces_.push_back(std::move(made));
  }
  BackendError error;
  return BackendStatus(
      under_.table->op_enqueue(under_.ctx, op,
                               under_.stream == nullptr ? nullptr : under_.stream->get(),
                               operands.data(), operands.size(),
                               bytes > 0 ? workspaces_.back().get() : nullptr, request, &error),
      error);
}

absl::Status Checker::Finish(param_request* request) {
  BackendError error;
  if (request != nullptr) {
    std::int32_t done = 0;
    PARAM_RETURN_IF_ERROR(
        BackendStatus(under_.table->request_test(under_.ctx, request, &done, &error), error));
    PARAM_RETURN_IF_ERROR(
        BackendStatus(under_.table->request_wait(under_.ctx, request, &error), error));
  }
  if (under_.stream != nullptr) PARAM_RETURN_IF_ERROR(under_.stream->Synchronize());
  return absl::OkStatus();
}

void Checker::Drop() {
  for (param_op* const op : kept_) under_.table->op_destroy(under_.ctx, op);
  kept_.clear();
  workspaces_.clear();
}

std::vector<param_operand> Bind(const CollectiveCase& c, const Operands& operands, Placement p) {
  if (c.kind == K::kBarrier) return {};
  const std::size_t size = kit::DtypeSize(c.dtype);
  if (c.one_buffer()) return {operands.src.At(0)};
  const Region& dst = operands.shared ? operands.src : operands.dst;
  return {operands.src.At(p.src_at * size), dst.At(p.dst_at * size)};
}

bool Checker::Note(const std::string& name, const absl::Status& status) {
  if (status.ok()) return true;
  const std::string text = absl::StrCat(name, ", rank ", under_.rank, " of ", under_.size, ": ",
                                        CodeName(status.code()), ": ", status.message());
  if (status.code() != absl::StatusCode::kUnimplemented) {
    report_.failures.push_back(text);
    return false;
  }
  const std::string kind = name.substr(0, name.find(' '));
  if (seen_unimplemented_.insert(absl::StrCat(kind, status.message())).second) {
    report_.unimplemented.push_back(text);
  }
  return true;
}

void Checker::Wrong(const std::string& name, const std::string& what) {
  report_.failures.push_back(
      absl::StrCat(name, ", rank ", under_.rank, " of ", under_.size, ": ", what));
}

// One operation, `times` runs of it, each in memory of its own.
bool Checker::Case(const CollectiveCase& c, int times, bool with_request) {
  const std::string name = c.Name() + (with_request ? " with a request" : "");
  const CaseDesc desc(c, under_.rank, under_.size);
  const absl::StatusOr<param_op*> op = Create(desc.desc());
  if (!op.ok()) return Note(name, op.status());
  kept_.push_back(*op);
  const Placement p = PlacementOf(c, under_.rank, under_.size);
  for (int i = 0; i < times; ++i) {
    absl::StatusOr<Operands> operands = MakeOperands(c);
    if (!operands.ok()) return Note(name, operands.status());
    param_request* request = nullptr;
    absl::Status status = Enqueue(*op, Bind(c, *operands, p), with_request ? &request : nullptr);
    if (status.ok()) status = Finish(request);
    std::string wrong;
    if (status.ok()) status = Compare(c, *operands, &wrong);
    if (!status.ok()) {
      Drop();
      return Note(name, status);
    }
    ++report_.ran;
    if (!wrong.empty()) Wrong(name, wrong);
  }
  Drop();
  return true;
}

bool Checker::Kind(K kind) {
  CollectiveCase probe;
  probe.kind = kind;
  const bool can_be_in_place = !probe.one_buffer() && kind != K::kIncast;
  const int redops = probe.reduces() ? 5 : 1;
  for (const param_dtype dtype : kTypes) {
    for (int i = 0; i < redops * (can_be_in_place ? 2 : 1); ++i) {
      const auto redop = static_cast<kit::RedOp>(i % redops);
      const bool in_place = i >= redops;
      const auto run = [&](std::size_t n, int times) {
        return Case(MakeCase(kind, dtype, redop, in_place, n, step_++, under_.size), times, false);
      };
      for (const std::size_t n : kSizes) {
        if (!run(n, n == 7 ? 2 : 1)) return false;
      }
      if (redop == kit::RedOp::kSum && !run(kLarge, 1)) return false;
      if (redop == kit::RedOp::kSum && dtype == PARAM_DTYPE_F32 && !run(0, 1)) return false;
    }
  }
  return Case(MakeCase(kind, PARAM_DTYPE_F32, kit::RedOp::kSum, false, 1000, step_++, under_.size),
              2, true);
}

// ---- several requests --------------------------------------------------------------------------

bool Checker::TwoRequestsAtOnce() {
  const std::string name = "all_reduce f32, two requests in flight";
  const CollectiveCase c =
      MakeCase(K::kAllReduce, PARAM_DTYPE_F32, kit::RedOp::kSum, false, 1000, step_++, under_.size);
  const CaseDesc desc(c, under_.rank, under_.size);
  const Placement p = PlacementOf(c, under_.rank, under_.size);
  std::vector<Operands> operands;
  std::vector<param_request*> requests;
  absl::Status status;
  for (int i = 0; i < 2 && status.ok(); ++i) {
    absl::StatusOr<Operands> made = MakeOperands(c);
    if (!made.ok()) return Note(name, made.status());
    operands.push_back(*std::move(made));
    const absl::StatusOr<param_op*> op = Create(desc.desc());
    if (!op.ok()) return Note(name, op.status());
    kept_.push_back(*op);
    param_request* request = nullptr;
    status = Enqueue(*op, Bind(c, operands.back(), p), &request);
    if (status.ok()) requests.push_back(request);
  }
  // The last one first: waiting must not depend on the order.
  while (!requests.empty()) {
    const absl::Status finished = Finish(requests.back());
    requests.pop_back();
    if (status.ok()) status = finished;
  }
  for (std::size_t i = 0; i < operands.size() && status.ok(); ++i) {
    std::string wrong;
    status = Compare(c, operands[i], &wrong);
    ++report_.ran;
    if (!wrong.empty()) Wrong(name, wrong);
  }
  Drop();
  return Note(name, status);
}

// ---- send and recv -----------------------------------------------------------------------------

std::int64_t Sent(param_dtype dtype, int from, std::size_t i) {
  CollectiveCase c;
  c.kind = K::kBroadcast;
  c.dtype = dtype;
  return InputAt(c, from, i, 1);
}

// Where `count` values sent by `from` lie in a region, at an element.
void PutSent(Region& region, param_dtype dtype, std::size_t at, int from, std::size_t first,
             std::size_t count) {
  const std::size_t size = kit::DtypeSize(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    PutElement(dtype, Sent(dtype, from, first + i), region.Data() + (at + i) * size);
  }
}

absl::Status Checker::Transfer(bool send, const Region& data, std::size_t at, param_dtype dtype,
                               std::size_t n, int peer, int tag, param_request** request) {
  const CaseDesc desc(send, dtype, n, peer, tag);
  PARAM_ASSIGN_OR_RETURN(param_op* const op, Create(desc.desc()));
  kept_.push_back(op);
  return Enqueue(op, {data.At(at * kit::DtypeSize(dtype))}, request);
}

// Even ranks send to the next one and take its answer; blocking.
bool Checker::Pairs() {
  const std::string name = "send f32 n=1000 between pairs";
  const int peer = under_.rank ^ 1;
  if (peer >= under_.size) return true;
  constexpr std::size_t kCount = 1000;
  absl::StatusOr<Region> region = Make(2 * kCount * 4);
  if (!region.ok()) return Note(name, region.status());
  PutSent(*region, PARAM_DTYPE_F32, 0, under_.rank, 0, kCount);
  absl::Status status = Fill(*region);
  for (int i = 0; i < 2 && status.ok(); ++i) {
    const bool send = (under_.rank + i) % 2 == 0;
    status = Transfer(send, *region, send ? 0 : kCount, PARAM_DTYPE_F32, kCount, peer, 3, nullptr);
    if (status.ok()) status = Finish(nullptr);
  }
  return CheckReceived(name, status, *region, PARAM_DTYPE_F32, kCount, peer, kCount);
}

bool Checker::CheckReceived(const std::string& name, absl::Status status, Region& region,
                            param_dtype dtype, std::size_t at, int from, std::size_t count) {
  if (status.ok()) {
    PutSent(region, dtype, at, from, 0, count);
    const absl::StatusOr<Bytes> got = ReadAll(region);
    status = got.status();
    if (got.ok()) {
      ++report_.ran;
      const std::string wrong = Difference(dtype, region.before, *got, at);
      if (!wrong.empty()) Wrong(name, wrong);
    }
  }
  Drop();
  return Note(name, status);
}

// Everyone sends to the next rank and receives from the one before, `parts` messages each, in one
// group or as requests.
bool Checker::Ring(const RingShape& shape) {
  const int next = (under_.rank + 1) % under_.size;
  const int previous = (under_.rank + under_.size - 1) % under_.size;
  const std::size_t total = shape.n * shape.parts;
  const std::string name = absl::StrCat(
      "send ", kit::DtypeName(shape.dtype), " n=", shape.n, " x ", shape.parts,
      shape.requests ? " as requests" : " in a group", shape.tags ? ", tags in another order" : "");
  absl::StatusOr<Region> region = Make(2 * total * kit::DtypeSize(shape.dtype));
  if (!region.ok()) return Note(name, region.status());
  PutSent(*region, shape.dtype, 0, under_.rank, 0, total);
  absl::Status status = Fill(*region);
  BackendError error;
  if (status.ok() && !shape.requests) {
    status = BackendStatus(under_.table->group_begin(under_.ctx, &error), error);
  }
  std::vector<param_request*> requests;
  for (std::size_t i = 0; i < 2 * shape.parts && status.ok(); ++i) {
    const bool send = i < shape.parts;
    std::size_t part = i % shape.parts;
    if (!send && shape.tags) part = shape.parts - 1 - part;
    param_request* request = nullptr;
    status = Transfer(send, *region, (send ? 0 : total) + part * shape.n, shape.dtype, shape.n,
                      send ? next : previous, shape.tags ? static_cast<int>(part) : 5,
                      shape.requests ? &request : nullptr);
    if (request != nullptr) requests.push_back(request);
  }
  if (!shape.requests) {
    const absl::Status ended = BackendStatus(under_.table->group_end(under_.ctx, &error), error);
    if (status.ok()) status = ended;
  }
  for (param_request* const request : requests) {
    const absl::Status finished = Finish(request);
    if (status.ok()) status = finished;
  }
  if (status.ok()) status = Finish(nullptr);
  return CheckReceived(name, status, *region, shape.dtype, total, previous, total);
}

bool Checker::PointToPoint() {
  if (under_.size < 2) return true;
  if (!Pairs()) return false;
  for (const param_dtype dtype : kTypes) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{7}, kLarge}) {
      if (!Ring({dtype, n, 1, false, false})) return false;
    }
  }
  return Ring({PARAM_DTYPE_F32, 1000, 16, false, false}) &&
         Ring({PARAM_DTYPE_F32, 1000, 4, false, true}) &&
         Ring({PARAM_DTYPE_F32, 1000, 4, true, false}) &&
         Ring({PARAM_DTYPE_F32, kLarge, 2, true, true});
}

void Checker::RunAll() {
  if (!Case(CollectiveCase(), 3, false) || !Case(CollectiveCase(), 1, true)) return;
  for (int kind = 0; kind < static_cast<int>(K::kBarrier); ++kind) {
    if (!Kind(static_cast<K>(kind))) return;
  }
  if (!TwoRequestsAtOnce()) return;
  PointToPoint();
}

}  // namespace

CollectiveReport CheckCollectives(const CommUnderTest& comm) {
  Checker checker(comm);
  checker.RunAll();
  return checker.Take();
}

}  // namespace param
