// Prepared operations: which there are, and the ones that need no library.

#include <cstring>
#include <memory>

#include "agent/backends/cuda/gemm.h"

namespace param::cuda {
namespace {

class CopyOp : public param_op {
 public:
  explicit CopyOp(std::size_t bytes) : bytes_(bytes) {}

  std::int32_t Enqueue(param_ctx& ctx, cudaStream_t stream, const param_operand* operands,
                       std::size_t count, param_buffer* /*workspace*/, param_error* err) override {
    if (count != 2) {
      return kit::Fail(err, kit::kInvalidArgument, "copy: %zu operands, not 2", count);
    }
    char* at[2] = {};
    const char* const names[2] = {"copy: src", "copy: dst"};
    for (std::size_t i = 0; i < 2; ++i) {
      if (operands[i].buffer == nullptr) {
        return kit::Fail(err, kit::kInvalidArgument, "copy: operand %zu has no buffer", i);
      }
      const param_buffer& buffer = *operands[i].buffer;
      PARAM_KIT_TRY(kit::CheckRange(names[i], operands[i].offset, bytes_, buffer.bytes, err));
      at[i] = static_cast<char*>(buffer.data) + operands[i].offset;
    }
    PARAM_CUDA_TRY(err, &ctx.lost, cudaMemcpyAsync, at[1], at[0], bytes_, cudaMemcpyDefault,
                   stream);
    return kit::kOk;
  }

  std::string Info() const override {
    return kit::JsonObject()
        .Text("library", "CUDA runtime " + CudaVersion(CUDART_VERSION))
        .Text("implementation", "cudaMemcpyAsync")
        .Done();
  }

 private:
  std::size_t bytes_;
};

// Bytes of a tensor without gaps; UNIMPLEMENTED when it has some.
std::int32_t DenseBytes(const param_tensor& tensor, std::size_t* bytes, param_error* err) {
  std::size_t total = kit::DtypeSize(tensor.dtype);
  std::int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.dims[i] < 0 || (tensor.dims[i] > 1 && tensor.strides[i] != stride)) {
      return kit::Fail(err, kit::kUnimplemented, "copy: tensor \"%s\" is not dense and row-major",
                       tensor.name);
    }
    if (__builtin_mul_overflow(total, static_cast<std::size_t>(tensor.dims[i]), &total) ||
        __builtin_mul_overflow(stride, tensor.dims[i], &stride)) {
      return kit::Fail(err, kit::kInvalidArgument, "copy: tensor \"%s\" is too large", tensor.name);
    }
  }
  *bytes = total;
  return kit::kOk;
}

std::int32_t CreateCopy(const param_op_desc& desc, std::unique_ptr<param_op>* out,
                        param_error* err) {
  PARAM_KIT_TRY(kit::CheckAttrs(desc, {}, err));
  const param_tensor* src = nullptr;
  const param_tensor* dst = nullptr;
  PARAM_KIT_TRY(kit::GetTensor(desc, 0, "src", &src, err));
  PARAM_KIT_TRY(kit::GetTensor(desc, 1, "dst", &dst, err));
  std::size_t bytes = 0;
  std::size_t dst_bytes = 0;
  PARAM_KIT_TRY(DenseBytes(*src, &bytes, err));
  PARAM_KIT_TRY(DenseBytes(*dst, &dst_bytes, err));
  if (src->dtype != dst->dtype || src->rank != dst->rank ||
      !std::equal(src->dims, src->dims + src->rank, dst->dims)) {
    return kit::Fail(err, kit::kInvalidArgument, "copy: src and dst differ in type or shape");
  }
  *out = std::make_unique<CopyOp>(bytes);
  return kit::kOk;
}

std::int32_t CreateGemm(param_ctx& ctx, const param_op_desc& desc, std::unique_ptr<param_op>* out,
                        param_error* err) {
  kit::Gemm gemm;
  PARAM_KIT_TRY(kit::ParseGemm(desc, &gemm, err));
  if (gemm.library == "auto" || gemm.library == "cublaslt") {
    return CreateLtGemm(ctx, gemm, out, err);
  }
  if (gemm.library == "cublas") return CreateBlasGemm(ctx, gemm, out, err);
  return kit::Fail(err, kit::kUnimplemented, "cuda has no library \"%s\"; it has cublaslt, cublas",
                   gemm.library.c_str());
}

}  // namespace

std::int32_t OpCreate(param_ctx* ctx, const param_op_desc* desc, param_op** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    if (desc->name == nullptr)
      return kit::Fail(err, kit::kInvalidArgument, "an operation without a name");
    std::unique_ptr<param_op> made;
    if (std::strcmp(desc->name, "gemm") == 0) {
      PARAM_KIT_TRY(CreateGemm(*ctx, *desc, &made, err));
    } else if (std::strcmp(desc->name, "copy") == 0) {
      PARAM_KIT_TRY(CreateCopy(*desc, &made, err));
    } else {
      return kit::Fail(err, kit::kUnimplemented, "cuda has no operation \"%s\"", desc->name);
    }
    *out = made.release();
    return kit::kOk;
  });
}

void OpDestroy(param_ctx* ctx, param_op* op) {
  static_cast<void>(Enter(ctx, nullptr));
  delete op;
}

std::size_t OpWorkspaceBytes(param_ctx* /*ctx*/, param_op* op) { return op->workspace_bytes(); }

std::int32_t OpEnqueue(param_ctx* ctx, param_op* op, param_stream* stream,
                       const param_operand* operands, std::size_t count, param_buffer* workspace,
                       param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(Enter(ctx, err));
    return op->Enqueue(*ctx, stream->stream, operands, count, workspace, err);
  });
}

std::int32_t OpInfo(param_ctx* /*ctx*/, param_op* op, char* json, std::size_t capacity,
                    param_error* err) {
  return kit::Guard(err, [&] { return kit::PutText(op->Info(), json, capacity, err); });
}

}  // namespace param::cuda
