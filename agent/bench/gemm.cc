// General matrix multiplication: each rank on its own, C = alpha * op(A) * op(B) + beta * C.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/backend/device.h"
#include "agent/backend/kit_gemm.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/agreement.h"
#include "agent/bench/case_record.h"
#include "agent/bench/device_timer.h"
#include "agent/bench/driver.h"
#include "agent/bench/element.h"
#include "agent/bench/fill.h"
#include "agent/bench/measure.h"
#include "agent/bench/peak_cache.h"
#include "agent/bench/verify_gemm.h"
#include "proto/base/clock.h"
#include "proto/base/status.h"

namespace param {

const BenchmarkDriver& GemmDriver();

namespace {

// Host memory that is not touched before it is filled.
class HostArray {
 public:
  static absl::StatusOr<HostArray> Create(std::size_t bytes) {
    HostArray array;
    array.data_.reset(new (std::nothrow) char[bytes]);
    if (array.data_ == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " B of host memory"));
    }
    return array;
  }
  char* data() const { return data_.get(); }

 private:
  std::unique_ptr<char[]> data_;
};

template <typename T>
absl::StatusOr<T> Get(const Params& params, absl::string_view name) {
  const auto it = params.find(name);
  if (it == params.end() || !std::holds_alternative<T>(it->second)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": missing or of another type"));
  }
  return std::get<T>(it->second);
}

struct Request {
  GemmShape shape;
  std::string library;
  Fill fill = Fill::kNormal;
  Injection injection;
};

absl::StatusOr<GemmShape> ShapeOf(const Params& params) {
  GemmShape shape;
  PARAM_ASSIGN_OR_RETURN(shape.m, Get<std::int64_t>(params, "m"));
  PARAM_ASSIGN_OR_RETURN(shape.n, Get<std::int64_t>(params, "n"));
  PARAM_ASSIGN_OR_RETURN(shape.k, Get<std::int64_t>(params, "k"));
  PARAM_ASSIGN_OR_RETURN(shape.batch, Get<std::int64_t>(params, "batch"));
  PARAM_ASSIGN_OR_RETURN(shape.trans_a, Get<bool>(params, "trans_a"));
  PARAM_ASSIGN_OR_RETURN(shape.trans_b, Get<bool>(params, "trans_b"));
  PARAM_ASSIGN_OR_RETURN(shape.alpha, Get<double>(params, "alpha"));
  PARAM_ASSIGN_OR_RETURN(shape.beta, Get<double>(params, "beta"));
  PARAM_ASSIGN_OR_RETURN(const std::string dtype, Get<std::string>(params, "dtype"));
  PARAM_ASSIGN_OR_RETURN(shape.input, DtypeFromName(dtype));
  shape.result = kit::GemmResultType(shape.input);
  return shape;
}

// What was asked, or what is wrong with it: the same answer on every rank.
absl::StatusOr<Request> RequestOf(const CaseContext& context) {
  Request request;
  PARAM_ASSIGN_OR_RETURN(request.shape, ShapeOf(context.params));
  PARAM_ASSIGN_OR_RETURN(request.library, Get<std::string>(context.params, "library"));
  PARAM_ASSIGN_OR_RETURN(request.fill, FillFromName(context.measure.fill));
  PARAM_ASSIGN_OR_RETURN(request.injection, ParseInjection(context.measure.inject));
  PARAM_RETURN_IF_ERROR(CheckInjection(context.measure, request.injection, context.team.size(),
                                       request.shape.c_elements()));
  return request;
}

// The objects of one case. Made in two steps: first what may be refused, then what costs memory.
class GemmCase final : public Operation {
 public:
  GemmCase(CaseContext& context, const Request& request)
      : context_(context),
        request_(request),
        shape_(request.shape),
        device_(Device::Borrow(context.device, context.device_ctx)) {}

  const Device& device() const { return device_; }
  Stream& stream() { return stream_; }
  const Op& op() const { return op_; }

  // UNIMPLEMENTED when this backend cannot do it.
  absl::Status CreateOps() {
    OpDesc gemm("gemm");
    gemm.Bool("trans_a", shape_.trans_a).Bool("trans_b", shape_.trans_b);
    gemm.Float("alpha", shape_.alpha).Float("beta", shape_.beta);
    gemm.String("library", request_.library);
    const auto stored = [this](bool trans, std::int64_t rows, std::int64_t columns) {
      if (trans) std::swap(rows, columns);
      return std::array<std::int64_t, 3>{shape_.batch, rows, columns};
    };
    gemm.Tensor("a", shape_.input, stored(shape_.trans_a, shape_.m, shape_.k));
    gemm.Tensor("b", shape_.input, stored(shape_.trans_b, shape_.k, shape_.n));
    gemm.Tensor("c", shape_.result, stored(false, shape_.m, shape_.n));
    PARAM_ASSIGN_OR_RETURN(op_, device_.CreateOp(gemm.desc()));
    if (shape_.beta == 0) return absl::OkStatus();
    OpDesc copy("copy");
    copy.Tensor("src", shape_.result, {shape_.c_elements()});
    copy.Tensor("dst", shape_.result, {shape_.c_elements()});
    PARAM_ASSIGN_OR_RETURN(restore_, device_.CreateOp(copy.desc()));
    return absl::OkStatus();
  }

  // Buffers, filled.
  absl::Status Allocate() {
    PARAM_ASSIGN_OR_RETURN(stream_, device_.CreateStream());
    PARAM_RETURN_IF_ERROR(Make(shape_.input, shape_.a_elements(), 0, &host_a_, &a_), "A");
    PARAM_RETURN_IF_ERROR(Make(shape_.input, shape_.b_elements(), 1, &host_b_, &b_), "B");
    PARAM_ASSIGN_OR_RETURN(c_, device_.CreateBuffer(PARAM_MEMORY_DEVICE, c_bytes()), "C");
    if (shape_.beta != 0) {
      PARAM_RETURN_IF_ERROR(
          Make(shape_.result, shape_.c_elements(), 2, &host_c_before_, &c_before_), "C before");
    }
    if (const std::size_t bytes = op_.workspace_bytes(); bytes > 0) {
      PARAM_ASSIGN_OR_RETURN(workspace_, device_.CreateBuffer(PARAM_MEMORY_DEVICE, bytes),
                             "workspace");
    }
    operands_ = {a_.At(0), b_.At(0), c_.At(0)};
    restore_operands_ = {c_before_.At(0), c_.At(0)};
    return absl::OkStatus();
  }

  absl::Status Prepare() override {
    if (shape_.beta == 0) return absl::OkStatus();
    return restore_.Enqueue(stream_, restore_operands_, nullptr);
  }

  absl::Status Enqueue() override {
    return op_.Enqueue(stream_, operands_, workspace_ ? &workspace_ : nullptr);
  }

  // Runs once and compares.
  absl::StatusOr<GemmCheck> Verify() {
    PARAM_ASSIGN_OR_RETURN(const HostArray c, HostArray::Create(c_bytes()));
    Poison(shape_.result, c.data(), static_cast<std::size_t>(shape_.c_elements()));
    PARAM_RETURN_IF_ERROR(c_.Write(0, c.data(), c_bytes()));
    PARAM_RETURN_IF_ERROR(Prepare());
    PARAM_RETURN_IF_ERROR(Enqueue());
    PARAM_RETURN_IF_ERROR(stream_.Synchronize());
    const Injection& injection = request_.injection;
    std::optional<std::int64_t> watched;
    if (injection.armed) watched = injection.index;
    if (injection.armed && injection.rank == context_.team.rank()) {
      PARAM_RETURN_IF_ERROR(Inject(), "injecting");
    }
    PARAM_RETURN_IF_ERROR(c_.Read(0, c.data(), c_bytes()));
    // A and B come back from the device too: a copy that went wrong must not pass as right.
    PARAM_RETURN_IF_ERROR(Compare(a_, host_a_), "A");
    PARAM_RETURN_IF_ERROR(Compare(b_, host_b_), "B");
    const GemmData data = {host_a_.data(), host_b_.data(), host_c_before_.data(), c.data()};
    return CheckGemm(shape_, data, watched, context_.measure.seed);
  }

  // What only verification needed.
  void FreeHost() {
    host_a_ = HostArray();
    host_b_ = HostArray();
    host_c_before_ = HostArray();
  }

 private:
  std::size_t c_bytes() const {
    return static_cast<std::size_t>(shape_.c_elements()) * kit::DtypeSize(shape_.result);
  }

  absl::Status Make(param_dtype dtype, std::int64_t elements, std::uint64_t which, HostArray* host,
                    Buffer* buffer) {
    const std::size_t count = static_cast<std::size_t>(elements);
    const std::size_t bytes = count * kit::DtypeSize(dtype);
    PARAM_ASSIGN_OR_RETURN(*host, HostArray::Create(bytes));
    PARAM_ASSIGN_OR_RETURN(*buffer, device_.CreateBuffer(PARAM_MEMORY_DEVICE, bytes));
    const std::uint64_t rank = static_cast<std::uint64_t>(context_.team.rank());
    const std::uint64_t seed = DeriveSeed(context_.measure.seed, 8 * rank + which);
    FillElements(request_.fill, dtype, seed, host->data(), count);
    return buffer->Write(0, host->data(), bytes);
  }

  absl::Status Inject() {
    const std::size_t size = kit::DtypeSize(shape_.result);
    const std::size_t offset = static_cast<std::size_t>(request_.injection.index) * size;
    std::array<char, 8> element = {};
    PARAM_RETURN_IF_ERROR(c_.Read(offset, element.data(), size));
    CorruptElement(shape_.result, element.data());
    return c_.Write(offset, element.data(), size);
  }

  // Reads a buffer back over the host's copy, which it must equal.
  static absl::Status Compare(const Buffer& buffer, const HostArray& host) {
    constexpr std::size_t kPiece = 4 << 20;
    const std::size_t bytes = buffer.bytes();
    PARAM_ASSIGN_OR_RETURN(const HostArray piece, HostArray::Create(std::min(bytes, kPiece)));
    for (std::size_t at = 0; at < bytes; at += kPiece) {
      const std::size_t length = std::min(kPiece, bytes - at);
      PARAM_RETURN_IF_ERROR(buffer.Read(at, piece.data(), length));
      if (std::memcmp(piece.data(), host.data() + at, length) != 0) {
        return absl::DataLossError(
            absl::StrCat("what was written to the device reads back differently, in bytes ", at,
                         " to ", at + length));
      }
    }
    return absl::OkStatus();
  }

  CaseContext& context_;
  const Request& request_;
  const GemmShape& shape_;
  Device device_;
  Stream stream_;
  HostArray host_a_, host_b_, host_c_before_;
  Buffer a_, b_, c_, c_before_, workspace_;
  Op op_, restore_;
  std::array<param_operand, 3> operands_ = {};
  std::array<param_operand, 2> restore_operands_ = {};
};

void AddPeak(CaseContext& context, const GemmCase& gemm, param_dtype dtype, CaseResult& result) {
  PeakCache own;
  PeakCache& peaks = context.peaks == nullptr ? own : *context.peaks;
  const std::optional<PeakRate> peak = peaks.Get(gemm.device(), dtype);
  if (!peak.has_value()) return;
  result.scalars["peak"] = peak->flops;
  result.info["peak_how"] = peak->how;
}

// Verification, for the record.
absl::Status Verify(CaseContext& context, GemmCase& gemm, CaseResult& result) {
  PARAM_ASSIGN_OR_RETURN(const GemmCheck check, gemm.Verify(), "verifying");
  result.scalars["max_error"] = check.max_error;
  result.info["checked_elements"] = absl::StrCat(check.checked);
  if (!check.problem.empty()) {
    result.outcome = Outcome::kWrong;
    result.reason = absl::StrCat("rank ", context.team.rank(), ": ", check.problem);
  }
  return absl::OkStatus();
}

// Everything from memory to the timer: what may still fail the case alone.
absl::Status MakeReady(CaseContext& context, GemmCase& gemm, CaseResult& result,
                       std::optional<DeviceTimer>& timer) {
  PARAM_RETURN_IF_ERROR(gemm.Allocate(), "allocating");
  if (context.measure.check) PARAM_RETURN_IF_ERROR(Verify(context, gemm, result));
  gemm.FreeHost();
  PARAM_ASSIGN_OR_RETURN(DeviceTimer made, DeviceTimer::Create(gemm.device(), gemm.stream()));
  timer.emplace(std::move(made));
  return absl::OkStatus();
}

absl::StatusOr<CaseResult> RunGemm(CaseContext& context) {
  context.reporter.VerifyBegins();
  const absl::StatusOr<Request> request = RequestOf(context);
  std::optional<GemmCase> gemm;
  absl::Status step = request.status();
  if (step.ok()) step = gemm.emplace(context, *request).CreateOps();
  PARAM_ASSIGN_OR_RETURN(Agreement possible, AgreeOnStep(context.team, step));
  if (possible.outcome != Outcome::kPassed) return EndedBy(std::move(possible));

  CaseResult result;
  std::optional<DeviceTimer> timer;
  step = MakeReady(context, *gemm, result, timer);
  PARAM_ASSIGN_OR_RETURN(Agreement ready, AgreeOnStep(context.team, step));
  if (ready.outcome != Outcome::kPassed) return EndedBy(std::move(ready));

  AddJson(gemm->device().Clocks(), "clocks_before.", result.info);
  const SystemClock clock;
  // A wrong rank is timed too: the others count on it, and its time helps to find out why.
  PARAM_ASSIGN_OR_RETURN(
      const Measurement measured,
      Measure(context.team, *timer, *gemm, context.measure, clock, context.reporter));
  AddJson(gemm->device().Clocks(), "clocks_after.", result.info);
  AddPeak(context, *gemm, request->shape.input, result);  // last: nobody waits for it to start
  AddJson(gemm->op().Info(), "", result.info);
  measured.Describe(result);
  return result;
}

}  // namespace

const BenchmarkDriver& GemmDriver() {
  static constexpr BenchmarkDriver kDriver = {"gemm", RunGemm};
  return kDriver;
}

}  // namespace param
