#pragma once
// Collectives computed from what all ranks gave: slow, simple and right, for the fake backend,
// whose only channel is an exchange among all ranks. Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/backend/kit_collective.h"

namespace param::fake {

// A collective as one rank sees it, with what only the others know.
struct CollectiveView {
  kit::Collective what;
  std::int32_t rank = 0, ranks = 1;
  // all_to_allv: [from * ranks + to].
  std::vector<std::int64_t> matrix;
};

// Whether the rank's operand src (or data) is read, and dst (or data) written.
bool Reads(const CollectiveView& view);
bool Writes(const CollectiveView& view);
// Bytes that every rank gives, padded to the largest share.
std::size_t GivenBytes(const CollectiveView& view);
// INVALID_ARGUMENT when a rank sends another count than this one expects.
std::int32_t CheckMatrix(const CollectiveView& view, param_error* err);

// This rank's dst, from what all gave: `given` holds GivenBytes() of each rank, one after the
// other.
std::vector<unsigned char> ResultOf(const CollectiveView& view,
                                    const std::vector<unsigned char>& given);

}  // namespace param::fake
