#pragma once
// MPI counts in 32 bits. What has more elements is counted in blocks of them, where it divides.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace param::mpi {

inline constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();

// Elements per block, a power of two and as small as possible, so that all of `counts` are whole
// blocks and their sum has at most kMaxCount of them; 0 when there is no such number. 1 for what
// fits anyway.
inline std::int64_t BlockFor(const std::vector<std::int64_t>& counts) {
  std::int64_t sum = 0;
  std::uint64_t bits = 0;
  for (const std::int64_t count : counts) {
    sum += count;
    bits |= static_cast<std::uint64_t>(count);
  }
  std::int64_t block = 1;
  while (sum / block > kMaxCount) block *= 2;
  return (bits & static_cast<std::uint64_t>(block - 1)) == 0 ? block : 0;
}

}  // namespace param::mpi
