#pragma once
// What drivers put into a case's record besides its samples.

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/bench/agreement.h"
#include "agent/bench/driver.h"
#include "proto/catalog/cases.h"

namespace param {

// The entries of a backend's JSON object as texts, their names after `prefix`; nothing where `json`
// is an error or no object.
void AddJson(const absl::StatusOr<std::string>& json, absl::string_view prefix,
             std::map<std::string, std::string>& info);

// What is wrong with an armed `injection`, the same answer on every rank: without --check it would
// go unnoticed; the rank is not among `ranks`; that rank has only `outputs` output elements.
absl::Status CheckInjection(const MeasureOptions& measure, const Injection& injection, int ranks,
                            std::int64_t outputs);

// The result of a case that ended before it was measured.
CaseResult EndedBy(Agreement agreement);

}  // namespace param
