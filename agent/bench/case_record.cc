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

CaseResult EndedBy(Agreement agreement) {
  CaseResult result;
  result.outcome = agreement.outcome;
  result.reason = std::move(agreement.reason);
  return result;
}

}  // namespace param
