#pragma once
// What drivers put into a case's record besides its samples.

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/bench/agreement.h"
#include "agent/bench/driver.h"

namespace param {

// The entries of a backend's JSON object as texts, their names after `prefix`; nothing where `json`
// is an error or no object.
void AddJson(const absl::StatusOr<std::string>& json, absl::string_view prefix,
             std::map<std::string, std::string>& info);

// The result of a case that ended before it was measured.
CaseResult EndedBy(Agreement agreement);

}  // namespace param
