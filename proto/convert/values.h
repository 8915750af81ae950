#pragma once
// Parameter values of the catalogue <-> wire messages. Thread safe.

#include <google/protobuf/map.h>

#include <string>

#include "absl/status/statusor.h"
#include "param/v1/result.pb.h"
#include "proto/catalog/spec.h"

namespace param {

v1::ParamValue ValueToProto(const Value& value);

// INVALID_ARGUMENT when no kind is set: a newer peer sent a kind that this program does not know.
absl::StatusOr<Value> ValueFromProto(const v1::ParamValue& value);

using ProtoParams = google::protobuf::Map<std::string, v1::ParamValue>;
void ParamsToProto(const Params& params, ProtoParams* out);

// The error names the parameter.
absl::StatusOr<Params> ParamsFromProto(const ProtoParams& params);

}  // namespace param
