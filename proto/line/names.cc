#include <array>

#include "proto/line/messages.h"

namespace param::line {
namespace {

// In the order of the enumerations.
constexpr std::array<absl::string_view, 8> kPhases = {"place",  "spawn",  "rendezvous", "comm_init",
                                                      "verify", "warmup", "timed",      "teardown"};
constexpr std::array<absl::string_view, 4> kStatuses = {"PASSED", "WRONG", "SKIPPED", "FAILED"};

template <typename Enum, std::size_t kCount>
absl::StatusOr<Enum> FromName(const std::array<absl::string_view, kCount>& names,
                              absl::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return absl::InvalidArgumentError("unknown name");
}

}  // namespace

absl::string_view PhaseName(Phase phase) { return kPhases.at(static_cast<std::size_t>(phase)); }

absl::StatusOr<Phase> PhaseFromName(absl::string_view name) {
  return FromName<Phase>(kPhases, name);
}

absl::string_view CaseStatusName(CaseStatus status) {
  return kStatuses.at(static_cast<std::size_t>(status));
}

absl::StatusOr<CaseStatus> CaseStatusFromName(absl::string_view name) {
  return FromName<CaseStatus>(kStatuses, name);
}

}  // namespace param::line
