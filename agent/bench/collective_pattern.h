#pragma once
// What goes into a collective and what must come out of it, exactly. Pure.
//
// An input depends on its rank and on its index, so that a block that comes from the wrong rank,
// lies at the wrong place or was never written is seen. Inputs of reductions are chosen so that the
// result is exact in the element type whatever the order of the operations:
//   sum   integers so small that no partial sum leaves the range in which the type counts exactly;
//         with more ranks than that, only some contribute for one index
//   avg   a positive number c(i) on every rank, with up to half of it given by one rank to another
//   prod  2 or 3 (or their negative) on one rank, 1 or -1 on the others
//   min, max, and all that only moves data: any integers the type counts exactly
// Values repeat over indices with a long prime period, so that large buffers fill and check fast.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/backend/param_backend.h"
#include "proto/catalog/collective_math.h"

namespace param {

enum class Redop { kNone, kSum, kProd, kMin, kMax, kAvg };  // kNone: data is only moved
absl::StatusOr<Redop> RedopFromName(absl::string_view name);

inline constexpr std::int64_t kPatternPeriod = 1'000'003;

// The inputs of all ranks. Cheap to copy.
struct CollectivePattern {
  param_dtype dtype = PARAM_DTYPE_F32;
  Redop redop = Redop::kNone;
  int ranks = 1;
  std::uint64_t seed = 0;

  // Input of `rank` at index `index`.
  double Input(int rank, std::int64_t index) const;
  // What the inputs of all ranks at that index combine to.
  double Combined(std::int64_t index) const;
  // How far an output may be from `expected`: 0, but for the avg of floats, where a library may
  // scale each input before it adds: a rounding error for each rank and two more.
  double Tolerance(double expected) const;
  // UNIMPLEMENTED for what no library can do exactly: the avg of more ranks than the type counts.
  absl::Status CanCheck() const;
};

// A stretch of a rank's output, and where it comes from.
struct OutputBlock {
  std::int64_t begin = 0, count = 0;  // in the output, elements
  int source = -1;                    // a rank; -1: all ranks combined
  std::int64_t source_begin = 0;      // index in the source's input
};

// The output of `rank`, block by block; empty where it has none (gather off the root, barrier).
std::vector<OutputBlock> OutputOf(const CollectiveRequest& request, const CollectiveLayout& layout,
                                  int rank);

// Compares `count` elements of output that begin at index `first` with what they must be. "" or the
// first that is wrong: "index 17: expected 5, got 1.5e38". `wrong` counts all of them.
class OutputChecker {
 public:
  OutputChecker(const CollectivePattern& pattern, std::vector<OutputBlock> blocks);
  void Check(const void* elements, std::int64_t first, std::int64_t count);

  std::int64_t checked() const { return checked_; }
  std::int64_t wrong() const { return wrong_; }
  const std::string& problem() const { return problem_; }

 private:
  void CheckBlock(const OutputBlock& block, const void* elements, std::int64_t first,
                  std::int64_t begin, std::int64_t end);
  // One period of what `source` gives, made when first needed; the last is kept.
  const std::vector<double>& TableOf(int source, std::int64_t needed);

  const CollectivePattern pattern_;
  const std::vector<OutputBlock> blocks_;
  std::vector<double> table_;
  int table_source_ = -2;
  std::int64_t checked_ = 0;
  std::int64_t wrong_ = 0;
  std::string problem_;
};

// Writes inputs of `rank` from index `first` on.
void FillPattern(const CollectivePattern& pattern, int rank, std::int64_t first, std::int64_t count,
                 void* out);

}  // namespace param
