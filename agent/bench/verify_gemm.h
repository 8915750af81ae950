#pragma once
// Is C really alpha * op(A) * op(B) + beta * C? Checked on the host against a reference in
// extended precision, on sampled elements.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/backend/param_backend.h"

namespace param {

// A product of row-major matrices, as in param_backend.h.
struct GemmShape {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 0;
  param_dtype input = PARAM_DTYPE_F32;
  param_dtype result = PARAM_DTYPE_F32;

  std::int64_t a_elements() const { return batch * m * k; }
  std::int64_t b_elements() const { return batch * k * n; }
  std::int64_t c_elements() const { return batch * m * n; }
};

// The arrays of one product in host memory. c_before is null when beta is 0.
struct GemmData {
  const void* a;
  const void* b;
  const void* c_before;
  const void* c_after;
};

struct GemmCheck {
  std::int64_t checked = 0;  // elements
  double max_error = 0;      // largest deviation divided by its tolerance: up to 1 is right
  std::string problem;       // "" when all were right, else the worst one: index, expected, got
};

// One element as it should be.
struct GemmExpectation {
  double value = 0;
  double tolerance = 0;  // absolute
};

// The tolerance, with P = alpha * sum(a b), Q = |alpha| * sqrt(sum(a^2 b^2)):
//     8 u_sum sqrt(k) (4 Q + |P|)   rounding of partial sums, which rarely exceed 4 Q + |P|
//   + u_in (4 Q + |P|)              rounding of the inputs, tf32 only: 2^-9
//   + 2 u_out (|P| + |beta c|)      rounding of the result
//   + the smallest normal number    subnormals may be flushed
// u_sum: f64 2^-53; f32 2^-24; tf32, f16, bf16 2^-22 (hardware truncates); f8 2^-15 (hardware keeps
// about 14 bits). i8: sums are exact, tolerance 0; with alpha or beta other than 0 and 1, one unit
// and f32 rounding. `index` counts over batch x m x n.
GemmExpectation ExpectGemm(const GemmShape& shape, const GemmData& data, std::int64_t index);

// Which elements are compared: all of a small result, else the corners of the first and the last
// matrix, random places in its last row and last column, and random ones all over; always
// `watched`. Without repeats, in order.
std::vector<std::int64_t> ElementsToCheck(const GemmShape& shape,
                                          std::optional<std::int64_t> watched, std::uint64_t seed);

// Compares those, and the first element that still holds the poison (beta 0 only). NaN is wrong, an
// infinity too unless the result overflows its type.
GemmCheck CheckGemm(const GemmShape& shape, const GemmData& data,
                    std::optional<std::int64_t> watched, std::uint64_t seed);

// Makes elements that nobody writes recognisable: NaN, for integers a rare number.
void Poison(param_dtype dtype, void* array, std::size_t count);

// Corrupts one element in place so that it is out of any tolerance: the largest number of the type
// with the opposite sign; for integers the second highest bit flips.
void CorruptElement(param_dtype dtype, void* element);

}  // namespace param
