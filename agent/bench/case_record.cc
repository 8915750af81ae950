#include "agent/bench/case_record.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace param {

void AddJson(const absl::StatusOr<std::string>& json, absl::string_view prefix,
             std::map<std::string, std::string>& info) {
  if (!json.ok()) return;
  const nlohmann::json parsed = nlohmann::json::parse(*json, nullptr, false);
  if (!parsed.is_object()) return;
  for (const auto& [key, value] : parsed.items()) {
    info[absl::StrCat(prefix, key)] =
        value.is_string() ? value.get<std::string>()
                          : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

absl::Status CheckInjection(const MeasureOptions& measure, const Injection& injection, int ranks,
                            std::int64_t outputs) {
  if (!injection.armed) return absl::OkStatus();
  if (!measure.check) {
    return absl::InvalidArgumentError("--inject: without --check it would go unnoticed");
  }
  if (injection.rank >= ranks) {
    return absl::InvalidArgumentError(absl::StrCat("--inject: rank ", injection.rank,
                                                   " is not one of the job's ", ranks,
                                                   " ranks (0 to ", ranks - 1, ")"));
  }
  if (injection.index < outputs) return absl::OkStatus();
  if (outputs == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--inject: rank ", injection.rank, " has no output in this case"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--inject: element ", injection.index, " is not one of the ", outputs,
      " output elements of rank ", injection.rank, " in this case (0 to ", outputs - 1, ")"));
}

CaseResult EndedBy(Agreement agreement) {
  CaseResult result;
  result.outcome = agreement.outcome;
  result.reason = std::move(agreement.reason);
  return result;
}

}  // namespace param
