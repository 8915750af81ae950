#pragma once
// The few kernels that no library brings. Each launches on a stream and returns at once.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace param::cuda {

// One thread spins until `*released` reaches `ticket` (host-mapped memory, written by the host), or
// a second has passed: then it writes `ticket` to `*expired` and ends. 64-bit tickets only grow, so
// a late kernel of an earlier hold never waits for a later release.
cudaError_t LaunchHold(const std::uint64_t* released, std::uint64_t* expired, std::uint64_t ticket,
                       cudaStream_t stream);

// How the bits of an element are made.
enum class FillType { kF64, kF32, kF16, kBf16, kF8E4M3, kF8E5M2, kI8 };

// Values spread evenly over [-1, 1) (i8: -128 to 127), the same for the same index: constant data
// would let the chip draw less power, clock higher and look faster than it is.
cudaError_t LaunchFill(void* data, std::size_t elements, FillType type, cudaStream_t stream);

}  // namespace param::cuda
