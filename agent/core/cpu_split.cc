#include "agent/core/cpu_split.h"

#include <algorithm>
#include <cstddef>

namespace param::agent {

std::vector<std::vector<int>> SplitCpus(std::vector<int> cpus, int local_ranks) {
  const std::size_t ranks = static_cast<std::size_t>(std::max(local_ranks, 1));
  std::vector<std::vector<int>> out(ranks);
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  if (cpus.empty()) return out;
  if (cpus.size() < ranks) {
    for (std::size_t r = 0; r < ranks; ++r) out[r] = {cpus[r % cpus.size()]};
    return out;
  }
  const std::size_t each = cpus.size() / ranks;
  const std::size_t more = cpus.size() % ranks;
  auto next = cpus.begin();
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto end = next + static_cast<std::ptrdiff_t>(each + (r < more ? 1 : 0));
    out[r].assign(next, end);
    next = end;
  }
  return out;
}

}  // namespace param::agent
