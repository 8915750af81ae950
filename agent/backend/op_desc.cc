#include "agent/backend/op_desc.h"

namespace param {

const char* OpDesc::Keep(absl::string_view text) { return texts_.emplace_back(text).c_str(); }

param_attr& OpDesc::Add(absl::string_view name, param_attr_kind kind) {
  param_attr attr = {};
  attr.name = Keep(name);
  attr.kind = kind;
  attr.count = 1;
  return attrs_.emplace_back(attr);
}

OpDesc& OpDesc::Int(absl::string_view name, std::int64_t value) {
  Add(name, PARAM_ATTR_INT).value.i = value;
  return *this;
}

OpDesc& OpDesc::Float(absl::string_view name, double value) {
  Add(name, PARAM_ATTR_FLOAT).value.f = value;
  return *this;
}

OpDesc& OpDesc::Bool(absl::string_view name, bool value) {
  Add(name, PARAM_ATTR_BOOL).value.i = value ? 1 : 0;
  return *this;
}

OpDesc& OpDesc::String(absl::string_view name, absl::string_view value) {
  Add(name, PARAM_ATTR_STRING).value.s = Keep(value);
  return *this;
}

OpDesc& OpDesc::Ints(absl::string_view name, absl::Span<const std::int64_t> values) {
  const std::vector<std::int64_t>& kept = lists_.emplace_back(values.begin(), values.end());
  param_attr& attr = Add(name, PARAM_ATTR_INT_LIST);
  attr.count = kept.size();
  attr.value.ints = kept.data();
  return *this;
}

OpDesc& OpDesc::Tensor(absl::string_view name, param_dtype dtype,
                       absl::Span<const std::int64_t> dims) {
  param_tensor tensor = {};
  tensor.name = Keep(name);
  tensor.dtype = dtype;
  tensor.rank = static_cast<std::int32_t>(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    tensor.dims[i] = dims[i];
    tensor.strides[i] = stride;
    stride *= dims[i];
  }
  tensors_.push_back(tensor);
  return *this;
}

const param_op_desc& OpDesc::desc() {
  desc_.name = name_.c_str();
  desc_.attr_count = attrs_.size();
  desc_.attrs = attrs_.data();
  desc_.tensor_count = tensors_.size();
  desc_.tensors = tensors_.data();
  return desc_;
}

}  // namespace param
