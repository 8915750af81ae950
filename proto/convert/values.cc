#include "proto/convert/values.h"

#include <type_traits>
#include <utility>

#include "proto/base/status.h"

namespace param {

v1::ParamValue ValueToProto(const Value& value) {
  v1::ParamValue out;
  std::visit(
      [&out](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::int64_t>) {
          out.set_integer(held);
        } else if constexpr (std::is_same_v<T, double>) {
          out.set_number(held);
        } else if constexpr (std::is_same_v<T, bool>) {
          out.set_boolean(held);
        } else {
          out.set_text(held);
        }
      },
      value);
  return out;
}

absl::StatusOr<Value> ValueFromProto(const v1::ParamValue& value) {
  switch (value.kind_case()) {
    case v1::ParamValue::kInteger:
      return Value(std::int64_t{value.integer()});
    case v1::ParamValue::kNumber:
      return Value(value.number());
    case v1::ParamValue::kBoolean:
      return Value(value.boolean());
    case v1::ParamValue::kText:
      return Value(value.text());
    case v1::ParamValue::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a value of an unknown kind");
}

void ParamsToProto(const Params& params, ProtoParams* out) {
  out->clear();
  for (const auto& [name, value] : params) (*out)[name] = ValueToProto(value);
}

absl::StatusOr<Params> ParamsFromProto(const ProtoParams& params) {
  Params out;
  for (const auto& [name, value] : params) {
    PARAM_ASSIGN_OR_RETURN(Value held, ValueFromProto(value), "parameter ", name);
    out.emplace(name, std::move(held));
  }
  return out;
}

}  // namespace param
