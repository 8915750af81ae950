#pragma once
// Which cores each local rank gets.

#include <vector>

namespace param::agent {

// `cpus` divided among `local_ranks` (>= 1) in runs of neighbours, the first ranks getting one more
// where it does not come out even. With fewer cores than ranks each rank gets one, shared in turn.
// Without cores every rank gets none: leave affinity alone.
std::vector<std::vector<int>> SplitCpus(std::vector<int> cpus, int local_ranks);

}  // namespace param::agent
