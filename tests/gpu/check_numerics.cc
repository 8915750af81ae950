#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/backend/kit_gemm.h"
#include "agent/backend/op_desc.h"
#include "agent/bench/fill.h"
#include "tests/gpu/gpu_check.h"

namespace param::gpu_check {
namespace {

constexpr std::uint64_t kSeed = 20260101;

absl::Status MakeOp(const Device& device, const GemmShape& shape, const std::string& library,
                    Op* out) {
  OpDesc gemm("gemm");
  gemm.Bool("trans_a", shape.trans_a).Bool("trans_b", shape.trans_b);
  gemm.Float("alpha", shape.alpha).Float("beta", shape.beta).String("library", library);
  const auto stored = [&shape](bool trans, std::int64_t rows, std::int64_t columns) {
    if (trans) std::swap(rows, columns);
    return std::array<std::int64_t, 3>{shape.batch, rows, columns};
  };
  gemm.Tensor("a", shape.input, stored(shape.trans_a, shape.m, shape.k));
  gemm.Tensor("b", shape.input, stored(shape.trans_b, shape.k, shape.n));
  gemm.Tensor("c", shape.result, stored(false, shape.m, shape.n));
  PARAM_ASSIGN_OR_RETURN(*out, device.CreateOp(gemm.desc()));
  return absl::OkStatus();
}

absl::Status MakeOperand(const Device& device, param_dtype dtype, std::int64_t count,
                         std::uint64_t which, std::vector<char>* host, Buffer* buffer) {
  const auto elements = static_cast<std::size_t>(count);
  host->resize(elements * kit::DtypeSize(dtype));
  FillElements(Fill::kNormal, dtype, DeriveSeed(kSeed, which), host->data(), elements);
  PARAM_ASSIGN_OR_RETURN(*buffer, device.CreateBuffer(PARAM_MEMORY_DEVICE, host->size()));
  return buffer->Write(0, host->data(), host->size());
}

std::string ShapeText(const GemmShape& shape) {
  std::string text = absl::StrCat(shape.m, "x", shape.n, "x", shape.k);
  if (shape.batch > 1) absl::StrAppend(&text, " batch ", shape.batch);
  if (shape.trans_a || shape.trans_b) {
    absl::StrAppend(&text, " ", shape.trans_a ? "T" : "N", shape.trans_b ? "T" : "N");
  }
  if (shape.alpha != 1 || shape.beta != 0) absl::StrAppend(&text, " alpha, beta");
  return text;
}

absl::StatusOr<GemmCheck> CheckOne(const Device& device, const GemmShape& shape,
                                   const std::string& library) {
  PARAM_ASSIGN_OR_RETURN(DeviceGemm gemm, DeviceGemm::Create(device, shape, library));
  PARAM_ASSIGN_OR_RETURN(Stream stream, device.CreateStream());
  return gemm.Verify(stream);
}

Row CheckRow(const Device& device, const GemmShape& shape, const std::string& library) {
  Row row{absl::StrCat(kit::DtypeName(shape.input), " ", ShapeText(shape), " ", library), "ok", ""};
  const absl::StatusOr<GemmCheck> check = CheckOne(device, shape, library);
  if (!check.ok()) {
    const bool skipped = check.status().code() == absl::StatusCode::kUnimplemented;
    row.verdict = skipped ? "skipped" : "FAILED";
    row.detail = std::string(check.status().message());
  } else if (!check->problem.empty()) {
    row.verdict = "WRONG";
    row.detail = check->problem;
  } else {
    row.detail =
        absl::StrFormat("error %.3f of tolerance, %d elements", check->max_error, check->checked);
  }
  return row;
}

}  // namespace

std::vector<param_dtype> AllTypes() {
  return {PARAM_DTYPE_F64,  PARAM_DTYPE_F32,    PARAM_DTYPE_TF32,   PARAM_DTYPE_F16,
          PARAM_DTYPE_BF16, PARAM_DTYPE_F8E4M3, PARAM_DTYPE_F8E5M2, PARAM_DTYPE_I8};
}

absl::StatusOr<DeviceGemm> DeviceGemm::Create(const Device& device, const GemmShape& shape,
                                              const std::string& library) {
  DeviceGemm gemm;
  gemm.shape_ = shape;
  PARAM_RETURN_IF_ERROR(MakeOp(device, shape, library, &gemm.op_));
  PARAM_RETURN_IF_ERROR(
      MakeOperand(device, shape.input, shape.a_elements(), 0, &gemm.host_a_, &gemm.a_));
  PARAM_RETURN_IF_ERROR(
      MakeOperand(device, shape.input, shape.b_elements(), 1, &gemm.host_b_, &gemm.b_));
  PARAM_RETURN_IF_ERROR(
      MakeOperand(device, shape.result, shape.c_elements(), 2, &gemm.host_c_, &gemm.c_));
  if (const std::size_t bytes = gemm.op_.workspace_bytes(); bytes > 0) {
    PARAM_ASSIGN_OR_RETURN(gemm.workspace_, device.CreateBuffer(PARAM_MEMORY_DEVICE, bytes));
  }
  return gemm;
}

absl::StatusOr<GemmCheck> DeviceGemm::Verify(Stream& stream) {
  if (shape_.beta == 0) {
    Poison(shape_.result, host_c_.data(), static_cast<std::size_t>(shape_.c_elements()));
  }
  PARAM_RETURN_IF_ERROR(c_.Write(0, host_c_.data(), host_c_.size()));
  PARAM_RETURN_IF_ERROR(Enqueue(stream));
  PARAM_RETURN_IF_ERROR(stream.Synchronize());
  std::vector<char> after(host_c_.size());
  PARAM_RETURN_IF_ERROR(c_.Read(0, after.data(), after.size()));
  const GemmData data = {host_a_.data(), host_b_.data(),
                         shape_.beta == 0 ? nullptr : host_c_.data(), after.data()};
  return CheckGemm(shape_, data, std::nullopt, kSeed);
}

bare_gemm DeviceGemm::Bare() const {
  bare_gemm bare = {};
  bare.dtype = shape_.input;
  bare.trans_b = shape_.trans_b ? 1 : 0;
  bare.m = shape_.m;
  bare.n = shape_.n;
  bare.k = shape_.k;
  bare.a = a_.native();
  bare.b = b_.native();
  bare.c = c_.native();
  return bare;
}

std::vector<Row> CheckNumerics(const Device& device) {
  std::vector<Row> rows;
  for (const param_dtype dtype : AllTypes()) {
    GemmShape square;
    square.m = square.n = square.k = 512;
    square.trans_b = true;
    square.input = dtype;
    square.result = kit::GemmResultType(dtype);
    std::vector<GemmShape> shapes = {square};
    for (const auto& [trans_a, trans_b] : {std::pair(false, false), {true, false}, {true, true}}) {
      shapes.push_back(square);
      shapes.back().trans_a = trans_a;
      shapes.back().trans_b = trans_b;
    }
    shapes.push_back(square);
    shapes.back().batch = 3;
    shapes.push_back(square);
    shapes.back().m = 129;
    shapes.back().n = 257;
    shapes.back().k = 65;
    shapes.push_back(square);
    shapes.back().m = 16;
    shapes.back().k = 8192;
    shapes.push_back(square);
    shapes.back().alpha = dtype == PARAM_DTYPE_I8 ? 2 : 1.5;
    shapes.back().beta = dtype == PARAM_DTYPE_I8 ? 1 : -0.5;
    for (const char* library : {"cublaslt", "cublas"}) {
      for (const GemmShape& shape : shapes) rows.push_back(CheckRow(device, shape, library));
    }
  }
  return rows;
}

}  // namespace param::gpu_check
