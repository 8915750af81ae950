// Both ways in which oneDNN multiplies.

#include <dnnl.h>

#include <array>
#include <cstdio>

#include "agent/backends/cpu/kernel.h"

namespace param::cpu {
namespace {

const char* StatusName(dnnl_status_t status) {
  switch (status) {
    case dnnl_success:
      return "success";
    case dnnl_out_of_memory:
      return "out of memory";
    case dnnl_invalid_arguments:
      return "invalid arguments";
    case dnnl_unimplemented:
      return "unimplemented";
    case dnnl_iterator_ends:
      return "iterator ends";
    case dnnl_runtime_error:
      return "runtime error";
    case dnnl_not_required:
      return "not required";
  }
  return "?";
}

std::int32_t Check(dnnl_status_t status, const char* call, param_error* err) {
  if (status == dnnl_success) [[likely]] {
    return kit::kOk;
  }
  const kit::Code code = status == dnnl_out_of_memory ? kit::kResourceExhausted : kit::kInternal;
  return kit::Fail(err, code, "oneDNN: %s: %s", call, StatusName(status));
}

class Sgemm final : public GemmKernel {
 public:
  explicit Sgemm(const kit::Gemm& gemm) : g_(gemm) {}

  std::int32_t Run(const void* a, const void* b, void* c, param_error* err) override {
    const auto* one_a = static_cast<const float*>(a);
    const auto* one_b = static_cast<const float*>(b);
    auto* one_c = static_cast<float*>(c);
    for (std::int64_t i = 0; i < g_.batch; ++i) {
      PARAM_KIT_TRY(Check(dnnl_sgemm(g_.trans_a ? 'T' : 'N', g_.trans_b ? 'T' : 'N', g_.m, g_.n,
                                     g_.k, static_cast<float>(g_.alpha), one_a, g_.a.ld, one_b,
                                     g_.b.ld, static_cast<float>(g_.beta), one_c, g_.c.ld),
                          "dnnl_sgemm", err));
      one_a += g_.a.batch_stride;
      one_b += g_.b.batch_stride;
      one_c += g_.c.batch_stride;
    }
    return kit::kOk;
  }
  std::string library() const override { return "oneDNN " + OnednnVersion(); }
  std::string implementation() const override { return "sgemm"; }

 private:
  kit::Gemm g_;
};

// Owners for oneDNN's handles; each is destroyed by the library's own call.
template <typename T, dnnl_status_t (*Destroy)(T)>
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (raw != nullptr) Destroy(raw);
  }
  T raw = nullptr;
};

class Matmul final : public GemmKernel {
 public:
  std::int32_t Prepare(const kit::Gemm& g, param_error* err);
  std::int32_t Run(const void* a, const void* b, void* c, param_error* err) override;
  std::string library() const override { return "oneDNN " + OnednnVersion(); }
  std::string implementation() const override { return "matmul " + implementation_; }

 private:
  std::int32_t CreatePrimitive(const kit::Gemm& g, const std::array<dnnl_memory_desc_t, 3>& descs,
                               param_error* err);

  Owned<dnnl_engine_t, dnnl_engine_destroy> engine_;
  Owned<dnnl_stream_t, dnnl_stream_destroy> stream_;
  Owned<dnnl_primitive_t, dnnl_primitive_destroy> primitive_;
  std::array<Owned<dnnl_memory_t, dnnl_memory_destroy>, 3> memory_;
  std::array<dnnl_exec_arg_t, 3> args_ = {};
  std::array<const void*, 3> bound_ = {};
  std::string implementation_;
};

dnnl_data_type_t TypeOf(param_dtype dtype) {
  if (dtype == PARAM_DTYPE_I8) return dnnl_s8;
  if (dtype == PARAM_DTYPE_I32) return dnnl_s32;
  return dtype == PARAM_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
}

// Two dimensions without a batch: oneDNN has faster ways for these.
std::int32_t DescOf(const kit::Gemm& g, const kit::GemmMatrix& matrix, bool transposed,
                    dnnl_memory_desc_t* out, param_error* err) {
  const std::int64_t rows = transposed ? matrix.cols : matrix.rows;
  const std::int64_t cols = transposed ? matrix.rows : matrix.cols;
  const std::int64_t row_stride = transposed ? 1 : matrix.ld;
  const std::int64_t col_stride = transposed ? matrix.ld : 1;
  if (g.batch == 1) {
    const dnnl_dims_t dims = {rows, cols};
    const dnnl_dims_t strides = {row_stride, col_stride};
    return Check(dnnl_memory_desc_init_by_strides(out, 2, dims, TypeOf(matrix.dtype), strides),
                 "dnnl_memory_desc_init_by_strides", err);
  }
  // One matrix for the whole batch is a dimension of one, which oneDNN repeats.
  const bool repeated = matrix.batch_stride == 0;
  const dnnl_dims_t dims = {repeated ? 1 : g.batch, rows, cols};
  const dnnl_dims_t strides = {repeated ? matrix.rows * matrix.ld : matrix.batch_stride, row_stride,
                               col_stride};
  return Check(dnnl_memory_desc_init_by_strides(out, 3, dims, TypeOf(matrix.dtype), strides),
               "dnnl_memory_desc_init_by_strides", err);
}

std::int32_t Matmul::Prepare(const kit::Gemm& g, param_error* err) {
  PARAM_KIT_TRY(Check(dnnl_engine_create(&engine_.raw, dnnl_cpu, 0), "dnnl_engine_create", err));
  PARAM_KIT_TRY(Check(dnnl_stream_create(&stream_.raw, engine_.raw, dnnl_stream_default_flags),
                      "dnnl_stream_create", err));
  std::array<dnnl_memory_desc_t, 3> descs = {};
  PARAM_KIT_TRY(DescOf(g, g.a, g.trans_a, &descs[0], err));
  PARAM_KIT_TRY(DescOf(g, g.b, g.trans_b, &descs[1], err));
  PARAM_KIT_TRY(DescOf(g, g.c, false, &descs[2], err));
  PARAM_KIT_TRY(CreatePrimitive(g, descs, err));
  constexpr std::array<int, 3> kArgs = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  for (std::size_t i = 0; i < 3; ++i) {
    PARAM_KIT_TRY(
        Check(dnnl_memory_create(&memory_[i].raw, &descs[i], engine_.raw, DNNL_MEMORY_NONE),
              "dnnl_memory_create", err));
    args_[i] = {kArgs[i], memory_[i].raw};
  }
  return kit::kOk;
}

std::int32_t Matmul::CreatePrimitive(const kit::Gemm& g,
                                     const std::array<dnnl_memory_desc_t, 3>& descs,
                                     param_error* err) {
  Owned<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy> attr;
  Owned<dnnl_post_ops_t, dnnl_post_ops_destroy> post_ops;
  PARAM_KIT_TRY(Check(dnnl_primitive_attr_create(&attr.raw), "dnnl_primitive_attr_create", err));
  if (g.alpha != 1) {
    const auto alpha = static_cast<float>(g.alpha);
    PARAM_KIT_TRY(Check(dnnl_primitive_attr_set_output_scales(attr.raw, 1, 0, &alpha),
                        "dnnl_primitive_attr_set_output_scales", err));
  }
  if (g.beta != 0) {
    PARAM_KIT_TRY(Check(dnnl_post_ops_create(&post_ops.raw), "dnnl_post_ops_create", err));
    PARAM_KIT_TRY(Check(dnnl_post_ops_append_sum(post_ops.raw, static_cast<float>(g.beta)),
                        "dnnl_post_ops_append_sum", err));
    PARAM_KIT_TRY(Check(dnnl_primitive_attr_set_post_ops(attr.raw, post_ops.raw),
                        "dnnl_primitive_attr_set_post_ops", err));
  }
  dnnl_matmul_desc_t desc = {};
  PARAM_KIT_TRY(Check(dnnl_matmul_desc_init(&desc, &descs[0], &descs[1], nullptr, &descs[2]),
                      "dnnl_matmul_desc_init", err));
  Owned<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy> primitive_desc;
  const dnnl_status_t status =
      dnnl_primitive_desc_create(&primitive_desc.raw, &desc, attr.raw, engine_.raw, nullptr);
  if (status == dnnl_unimplemented) {
    return kit::Fail(err, kit::kUnimplemented, "oneDNN %s multiplies no %s on this processor%s",
                     OnednnVersion().c_str(), kit::DtypeName(g.dtype()),
                     g.dtype() == PARAM_DTYPE_BF16 ? " (it needs AVX-512)" : "");
  }
  PARAM_KIT_TRY(Check(status, "dnnl_primitive_desc_create", err));
  const char* name = nullptr;
  PARAM_KIT_TRY(Check(dnnl_primitive_desc_query(primitive_desc.raw, dnnl_query_impl_info_str, 0,
                                                static_cast<void*>(&name)),
                      "dnnl_primitive_desc_query", err));
  implementation_ = name;
  return Check(dnnl_primitive_create(&primitive_.raw, primitive_desc.raw), "dnnl_primitive_create",
               err);
}

std::int32_t Matmul::Run(const void* a, const void* b, void* c, param_error* err) {
  const std::array<const void*, 3> operands = {a, b, c};
  for (std::size_t i = 0; i < 3; ++i) {
    if (bound_[i] == operands[i]) continue;
    // The C interface knows no constant memory; the sources are only read.
    PARAM_KIT_TRY(Check(dnnl_memory_set_data_handle(memory_[i].raw, const_cast<void*>(operands[i])),
                        "dnnl_memory_set_data_handle", err));
    bound_[i] = operands[i];
  }
  PARAM_KIT_TRY(Check(dnnl_primitive_execute(primitive_.raw, stream_.raw, 3, args_.data()),
                      "dnnl_primitive_execute", err));
  return Check(dnnl_stream_wait(stream_.raw), "dnnl_stream_wait", err);
}

}  // namespace

std::string OnednnVersion() {
  const dnnl_version_t* const v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

bool IsI8Exact() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx2_vnni ||
         (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
}

std::int32_t MakeSgemm(const kit::Gemm& gemm, std::unique_ptr<GemmKernel>* out, param_error* err) {
  if (gemm.dtype() != PARAM_DTYPE_F32) {
    return kit::Fail(err, kit::kUnimplemented, "dnnl_sgemm multiplies no %s",
                     kit::DtypeName(gemm.dtype()));
  }
  *out = std::make_unique<Sgemm>(gemm);
  return kit::kOk;
}

std::int32_t MakeMatmul(const kit::Gemm& gemm, std::unique_ptr<GemmKernel>* out, param_error* err) {
  if (gemm.dtype() != PARAM_DTYPE_F32 && gemm.dtype() != PARAM_DTYPE_BF16 &&
      gemm.dtype() != PARAM_DTYPE_I8) {
    return kit::Fail(err, kit::kUnimplemented, "oneDNN %s multiplies no %s on processors",
                     OnednnVersion().c_str(), kit::DtypeName(gemm.dtype()));
  }
  auto kernel = std::make_unique<Matmul>();
  PARAM_KIT_TRY(kernel->Prepare(gemm, err));
  *out = std::move(kernel);
  return kit::kOk;
}

}  // namespace param::cpu
