#pragma once
// Which CPUs this process may run on.

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace param {

// Binds this process (threads made later inherit it) and checks that it took effect. Empty: leaves
// everything as it is. INVALID_ARGUMENT or FAILED_PRECONDITION name the CPUs.
absl::Status BindToCpus(const std::vector<int>& cpus);

// In ascending order.
absl::StatusOr<std::vector<int>> AllowedCpus();

// "0-3,8"; REQUIRES: ascending.
std::string CpuListText(const std::vector<int>& cpus);

}  // namespace param
