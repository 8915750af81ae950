// The fake backend's operations: "noop", "copy" and an honest, slow "gemm".

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>

#include "agent/backends/fake/state.h"

namespace param::fake {
namespace {

// Above it the naive loops would take longer than any test waits.
constexpr double kMaxGemmFlops = 2.0 * (1 << 24);

std::int32_t PrepareGemm(const param_op_desc& desc, param_op* op, param_error* err) {
  PARAM_KIT_TRY(kit::ParseGemm(desc, &op->gemm, err));
  const kit::Gemm& g = op->gemm;
  if (g.library != "auto") {
    return kit::Fail(err, kit::kUnimplemented, "library %s is not part of backend fake",
                     g.library.c_str());
  }
  if (g.dtype() != PARAM_DTYPE_F64 && g.dtype() != PARAM_DTYPE_F32 && g.dtype() != PARAM_DTYPE_I8) {
    return kit::Fail(err, kit::kUnimplemented, "backend fake multiplies f64, f32 and i8, not %s",
                     kit::DtypeName(g.dtype()));
  }
  if (g.flops() > kMaxGemmFlops) {
    return kit::Fail(err, kit::kUnimplemented,
                     "backend fake multiplies up to m*n*k*batch = %d, this is %.0f", 1 << 24,
                     g.flops() / 2);
  }
  return kit::kOk;
}

// Sum is the type that the reference adds up in.
template <typename T, typename Sum, typename Result>
void Multiply(const kit::Gemm& g, const T* a, const T* b, Result* c) {
  const std::int64_t a_row = g.trans_a ? 1 : g.a.ld;
  const std::int64_t a_col = g.trans_a ? g.a.ld : 1;
  const std::int64_t b_row = g.trans_b ? 1 : g.b.ld;
  const std::int64_t b_col = g.trans_b ? g.b.ld : 1;
  std::vector<Sum> row(static_cast<std::size_t>(g.n));
  for (std::int64_t batch = 0; batch < g.batch; ++batch) {
    const T* const one_a = a + batch * g.a.batch_stride;
    const T* const one_b = b + batch * g.b.batch_stride;
    for (std::int64_t i = 0; i < g.m; ++i) {
      std::fill(row.begin(), row.end(), Sum{0});
      for (std::int64_t k = 0; k < g.k; ++k) {
        const Sum factor = static_cast<Sum>(one_a[i * a_row + k * a_col]);
        for (std::int64_t j = 0; j < g.n; ++j) {
          row[static_cast<std::size_t>(j)] +=
              factor * static_cast<Sum>(one_b[k * b_row + j * b_col]);
        }
      }
      Result* const to = c + batch * g.c.batch_stride + i * g.c.ld;
      for (std::int64_t j = 0; j < g.n; ++j) {
        const double old = g.beta == 0 ? 0 : g.beta * static_cast<double>(to[j]);
        const double value = g.alpha * static_cast<double>(row[static_cast<std::size_t>(j)]) + old;
        to[j] = static_cast<Result>(std::is_integral_v<Result> ? std::nearbyint(value) : value);
      }
    }
  }
}

template <typename T>
T* Data(const param_operand& operand) {
  return reinterpret_cast<T*>(operand.buffer->data.data() + operand.offset);
}

void RunGemm(const kit::Gemm& g, const param_operand* operands) {
  if (g.dtype() == PARAM_DTYPE_F64) {
    Multiply<double, double>(g, Data<double>(operands[0]), Data<double>(operands[1]),
                             Data<double>(operands[2]));
  } else if (g.dtype() == PARAM_DTYPE_F32) {
    Multiply<float, double>(g, Data<float>(operands[0]), Data<float>(operands[1]),
                            Data<float>(operands[2]));
  } else {
    Multiply<std::int8_t, std::int64_t>(g, Data<std::int8_t>(operands[0]),
                                        Data<std::int8_t>(operands[1]),
                                        Data<std::int32_t>(operands[2]));
  }
}

Seen Look(const param_operand* operands) {
  Seen seen;
  for (std::size_t i = 0; i < 3; ++i) {
    seen.buffers[i] = operands[i].buffer;
    seen.offsets[i] = operands[i].offset;
    seen.versions[i] = operands[i].buffer->version;
  }
  return seen;
}

// With a virtual clock, repeating an operation on unchanged memory changes nothing and takes no
// time: only then iterations are as cheap as tests of the harness need.
std::int32_t EnqueueGemm(param_ctx& ctx, param_op& op, const param_operand* operands,
                         std::size_t count, param_error* err) {
  if (count != 3) return kit::Fail(err, kit::kInvalidArgument, "gemm: %zu operands, not 3", count);
  const std::size_t sizes[3] = {operands[0].buffer->data.size(), operands[1].buffer->data.size(),
                                operands[2].buffer->data.size()};
  PARAM_KIT_TRY(kit::CheckGemmOperands(op.gemm, operands, count, sizes, err));
  const bool is_virtual = ctx.script.LatencyNs(ctx.host->rank).has_value();
  if (is_virtual && op.gemm.beta == 0 && Look(operands) == op.seen) return kit::kOk;
  RunGemm(op.gemm, operands);
  if (ctx.faults->IsWrong()) Data<unsigned char>(operands[2])[op.gemm.c.bytes - 1] ^= 0x40;
  operands[2].buffer->version = ++ctx.writes;
  op.seen = Look(operands);
  return kit::kOk;
}

std::int32_t EnqueueCopy(param_ctx& ctx, const param_op& op, const param_operand* operands,
                         std::size_t count, param_error* err) {
  if (count != 2) return kit::Fail(err, kit::kInvalidArgument, "copy: %zu operands, not 2", count);
  const char* const names[2] = {"copy: src", "copy: dst"};
  for (std::size_t i = 0; i < 2; ++i) {
    PARAM_KIT_TRY(kit::CheckRange(names[i], operands[i].offset, op.copy_bytes,
                                  operands[i].buffer->data.size(), err));
  }
  std::memmove(Data<char>(operands[1]), Data<char>(operands[0]), op.copy_bytes);
  if (ctx.faults->IsWrong() && op.copy_bytes > 0) {
    Data<unsigned char>(operands[1])[op.copy_bytes - 1] ^= 0x40;
  }
  operands[1].buffer->version = ++ctx.writes;
  return kit::kOk;
}

}  // namespace

std::int32_t OpCreate(param_ctx* ctx, const param_op_desc* desc, param_op** out, param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    PARAM_KIT_TRY(ctx->faults->Reach("case", err));
    auto op = std::make_unique<param_op>();
    if (std::strcmp(desc->name, "gemm") == 0) {
      op->kind = OpKind::kGemm;
      PARAM_KIT_TRY(PrepareGemm(*desc, op.get(), err));
    } else if (std::strcmp(desc->name, "copy") == 0) {
      op->kind = OpKind::kCopy;
      PARAM_KIT_TRY(kit::ParseCopy(*desc, &op->copy_bytes, err));
    } else if (std::strcmp(desc->name, "noop") == 0) {
      PARAM_KIT_TRY(kit::CheckAttrs(*desc, {}, err));
    } else {
      return kit::Fail(err, kit::kUnimplemented, "backend fake has no operation \"%s\"",
                       desc->name);
    }
    ctx->enqueued = 0;
    *out = op.release();
    return kit::kOk;
  });
}

void OpDestroy(param_ctx*, param_op* op) { delete op; }

std::size_t OpWorkspaceBytes(param_ctx*, param_op*) { return 0; }

std::int32_t OpEnqueue(param_ctx* ctx, param_op* op, param_stream* stream,
                       const param_operand* operands, std::size_t count, param_buffer*,
                       param_error* err) {
  return kit::Guard(err, [&]() -> std::int32_t {
    ++ctx->enqueued;
    if (!ctx->script.faults.empty()) PARAM_KIT_TRY(ctx->faults->Reach(PhaseOf(*ctx), err));
    switch (op->kind) {
      case OpKind::kNoop:
        break;
      case OpKind::kCopy:
        PARAM_KIT_TRY(EnqueueCopy(*ctx, *op, operands, count, err));
        break;
      case OpKind::kGemm:
        PARAM_KIT_TRY(EnqueueGemm(*ctx, *op, operands, count, err));
        break;
    }
    SpendTime(*ctx, *stream);
    return kit::kOk;
  });
}

std::int32_t OpInfo(param_ctx*, param_op* op, char* json, std::size_t capacity, param_error* err) {
  return kit::Guard(err, [&] {
    const char* const what = op->kind == OpKind::kGemm ? "naive loops" : "memmove";
    return kit::PutText(kit::JsonObject()
                            .Text("library", "fake")
                            .Text("implementation", op->kind == OpKind::kNoop ? "nothing" : what)
                            .Done(),
                        json, capacity, err);
  });
}

}  // namespace param::fake
