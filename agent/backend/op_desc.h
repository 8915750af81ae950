#pragma once
// Builds the descriptor of an operation and owns its texts.
//
//   OpDesc gemm("gemm");
//   gemm.Bool("trans_a", false).Float("alpha", 1).String("library", "auto");
//   gemm.Tensor("a", PARAM_DTYPE_F32, {1, m, k});
//   PARAM_ASSIGN_OR_RETURN(Op op, device.CreateOp(gemm.desc()));

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agent/backend/param_backend.h"

namespace param {

// Not copyable: the descriptor points into it. Not thread safe.
class OpDesc {
 public:
  explicit OpDesc(absl::string_view name) : name_(name) {}
  OpDesc(const OpDesc&) = delete;
  OpDesc& operator=(const OpDesc&) = delete;

  OpDesc& Int(absl::string_view name, std::int64_t value);
  OpDesc& Float(absl::string_view name, double value);
  OpDesc& Bool(absl::string_view name, bool value);
  OpDesc& String(absl::string_view name, absl::string_view value);
  OpDesc& Ints(absl::string_view name, absl::Span<const std::int64_t> values);
  // A dense row-major tensor. REQUIRES: at most PARAM_MAX_DIMS dims, and their product and that of
  // the element size fit in 63 bits (the catalogue's footprint has checked it).
  OpDesc& Tensor(absl::string_view name, param_dtype dtype, absl::Span<const std::int64_t> dims);

  // Valid until this is changed or gone.
  const param_op_desc& desc();

 private:
  const char* Keep(absl::string_view text);
  param_attr& Add(absl::string_view name, param_attr_kind kind);

  std::string name_;
  std::deque<std::string> texts_;  // a deque: its elements stay where they are
  std::deque<std::vector<std::int64_t>> lists_;
  std::vector<param_attr> attrs_;
  std::vector<param_tensor> tensors_;
  param_op_desc desc_ = {};
};

}  // namespace param
