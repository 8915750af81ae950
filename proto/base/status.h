#pragma once
// Errors: absl::Status with context added on the way up, and the two macros that do it.
// The code is chosen where the error is first understood; each layer adds only what it alone knows.

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace param {

// Puts "context: " before the message of an error; keeps its code and every payload.
template <typename... Parts>
[[nodiscard]] absl::Status Annotate(const absl::Status& status, const Parts&... parts) {
  if (status.ok() || sizeof...(parts) == 0) return status;
  absl::Status out(status.code(), absl::StrCat(parts..., ": ", status.message()));
  status.ForEachPayload(
      [&out](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

// An absl::Status from errno, with the call and what it was applied to ("open /x: No such file").
[[nodiscard]] absl::Status ErrnoStatus(int error_number, absl::string_view what);

// One word for a code, as users see it: "INVALID_ARGUMENT".
absl::string_view CodeName(absl::StatusCode code);

}  // namespace param

#define PARAM_CONCAT_INNER(a, b) a##b
#define PARAM_CONCAT(a, b) PARAM_CONCAT_INNER(a, b)

// PARAM_RETURN_IF_ERROR(store.Put(job), "job ", job.id);   the parts are evaluated on error only
#define PARAM_RETURN_IF_ERROR(expr, ...) \
  PARAM_RETURN_IF_ERROR_INNER(PARAM_CONCAT(status_, __LINE__), expr __VA_OPT__(, ) __VA_ARGS__)
#define PARAM_RETURN_IF_ERROR_INNER(tmp, expr, ...)             \
  do {                                                          \
    if (absl::Status tmp = (expr); !tmp.ok()) {                 \
      return ::param::Annotate(tmp __VA_OPT__(, ) __VA_ARGS__); \
    }                                                           \
  } while (false)

// PARAM_ASSIGN_OR_RETURN(const Plan plan, planner.Plan(spec), "planning ", spec.name);
#define PARAM_ASSIGN_OR_RETURN(lhs, expr, ...)                          \
  PARAM_ASSIGN_OR_RETURN_INNER(PARAM_CONCAT(status_or_, __LINE__), lhs, \
                               expr __VA_OPT__(, ) __VA_ARGS__)
#define PARAM_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr, ...)                           \
  auto tmp = (expr);                                                                \
  if (!tmp.ok()) return ::param::Annotate(tmp.status() __VA_OPT__(, ) __VA_ARGS__); \
  lhs = *std::move(tmp)
