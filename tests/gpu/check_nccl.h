#pragma once
// Checks of the nccl backend on all GPUs of the machine; each adds rows to the table.

#include <vector>

#include "tests/gpu/gpu_check.h"
#include "tests/gpu/nccl_rank.h"

namespace param::gpu_check {

// A new communicator in place of whatever there is.
absl::Status Reconnect(NcclRanks& ranks);

// Every operation, type and reduction, in place and out of place, on a connected communicator.
std::vector<Row> CheckCollectives(NcclRanks& ranks);

}  // namespace param::gpu_check
