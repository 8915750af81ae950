// The cpu backend's operations: "gemm" and "copy".

#include "agent/backends/cpu/state.h"

namespace param::cpu {

std::int32_t OpCreate(param_ctx* ctx, const param_op_desc* desc, param_op** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    UseThreads(ctx->threads);  // oneDNN prepares for the number of threads that it sees
    auto op = std::make_unique<param_op>();
    if (std::strcmp(desc->name, "gemm") == 0) {
      PARAM_KIT_TRY(kit::ParseGemm(*desc, &op->gemm, err));
      PARAM_KIT_TRY(ChooseKernel(op->gemm, *ctx->host, ctx->threads, &op->kernel, &op->trial, err));
    } else if (std::strcmp(desc->name, "copy") == 0) {
      op->is_copy = true;
      PARAM_KIT_TRY(kit::ParseCopy(*desc, &op->copy_bytes, err));
    } else {
      return kit::Fail(err, kit::kUnimplemented, "backend cpu has no operation \"%s\"", desc->name);
    }
    *out = op.release();
    return kit::kOk;
  });
}

void OpDestroy(param_ctx*, param_op* op) { delete op; }

std::size_t OpWorkspaceBytes(param_ctx*, param_op*) { return 0; }

namespace {

std::int32_t EnqueueCopy(const param_op& op, const param_operand* operands, std::size_t count,
                         param_error* err) {
  if (count != 2) return kit::Fail(err, kit::kInvalidArgument, "copy: %zu operands, not 2", count);
  const param_operand& src = operands[0];
  const param_operand& dst = operands[1];
  PARAM_KIT_TRY(kit::CheckRange("copy: src", src.offset, op.copy_bytes, src.buffer->bytes, err));
  PARAM_KIT_TRY(kit::CheckRange("copy: dst", dst.offset, op.copy_bytes, dst.buffer->bytes, err));
  std::memmove(dst.buffer->data + dst.offset, src.buffer->data + src.offset, op.copy_bytes);
  return kit::kOk;
}

}  // namespace

std::int32_t OpEnqueue(param_ctx* ctx, param_op* op, param_stream*, const param_operand* operands,
                       std::size_t count, param_buffer*, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    if (op->is_copy) return EnqueueCopy(*op, operands, count, err);
    if (count != 3) {
      return kit::Fail(err, kit::kInvalidArgument, "gemm: %zu operands, not 3", count);
    }
    const std::size_t sizes[3] = {operands[0].buffer->bytes, operands[1].buffer->bytes,
                                  operands[2].buffer->bytes};
    PARAM_KIT_TRY(kit::CheckGemmOperands(op->gemm, operands, count, sizes, err));
    UseThreads(ctx->threads);
    return op->kernel->Run(operands[0].buffer->data + operands[0].offset,
                           operands[1].buffer->data + operands[1].offset,
                           operands[2].buffer->data + operands[2].offset, err);
  });
}

std::int32_t OpInfo(param_ctx* ctx, param_op* op, char* json, std::size_t capacity,
                    param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    kit::JsonObject info;
    if (op->is_copy) {
      info.Text("library", "libc").Text("implementation", "memmove");
      return kit::PutText(info.Done(), json, capacity, err);
    }
    const std::string implementation = op->kernel->implementation();
    info.Text("library", op->kernel->library()).Text("implementation", implementation);
    info.Text("threads", std::to_string(ctx->threads));
    if (!op->trial.empty()) info.Text("trial", op->trial);
    if (implementation.find("ref") != std::string::npos) info.Text("emulated", "true");
    if (op->gemm.dtype() == PARAM_DTYPE_I8 && !IsI8Exact()) {
      info.Text("exact_range", "-64..64 (no VNNI: pairs of products are summed in 16 bits)");
    }
    return kit::PutText(info.Done(), json, capacity, err);
  });
}

}  // namespace param::cpu
