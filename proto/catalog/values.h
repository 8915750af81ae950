#pragma once
// Inside the catalogue: single values and safe reading of a case's parameters.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/catalog/spec.h"

namespace param {

// The one value of a parameter's default. REQUIRES: the fallback is valid (a test holds that).
Value DefaultValue(const ParamSpec& spec);

// Text of a user, cut to a length fit for an error message, in quotes.
std::string Quoted(absl::string_view text);

// A bound of a parameter for people: whole numbers without an exponent.
std::string BoundText(double bound);

// The value of `name`, or `otherwise` when it is missing or of another type: parameters may come
// from a peer, so these never throw.
std::int64_t IntParam(const Params& params, absl::string_view name, std::int64_t otherwise);
double FloatParam(const Params& params, absl::string_view name, double otherwise);
bool BoolParam(const Params& params, absl::string_view name, bool otherwise);
std::string TextParam(const Params& params, absl::string_view name, absl::string_view otherwise);

}  // namespace param
