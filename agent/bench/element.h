#pragma once
// Elements of every type: conversion to and from the host's numbers, with the rounding that the
// hardware has: to nearest, ties to even. All functions are pure.

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/backend/param_backend.h"

namespace param {

// "f32" and so on; INVALID_ARGUMENT for other names.
absl::StatusOr<param_dtype> DtypeFromName(absl::string_view name);

// From bit patterns; exact.
float FloatFromBf16(std::uint16_t bits);
float FloatFromF16(std::uint16_t bits);
float FloatFromF8e4m3(std::uint8_t bits);  // no infinities; 0x7f and 0xff are NaN; largest 448
float FloatFromF8e5m2(std::uint8_t bits);  // as IEEE; largest 57344

// To bit patterns. Too large becomes infinity for the 16-bit types and the largest finite value for
// the 8-bit ones (infinity too). NaN stays NaN.
std::uint16_t Bf16FromFloat(float value);
std::uint16_t F16FromFloat(float value);
std::uint8_t F8e4m3FromFloat(float value);
std::uint8_t F8e5m2FromFloat(float value);
// To nearest, ties to even; saturates; NaN is 0.
std::int8_t I8FromFloat(float value);

// Element `index` of an array of `dtype` in host memory, of any alignment.
double LoadElement(param_dtype dtype, const void* array, std::size_t index);
void StoreElement(param_dtype dtype, void* array, std::size_t index, double value);

// What a type can hold: for tolerances and for corruption that is sure to be seen.
struct ElementTraits {
  bool integer;
  double unit_roundoff;  // half the distance from 1 to the next value; 0 for integers
  double largest;        // finite
  double smallest;       // positive normal; below it hardware may flush to zero
};
ElementTraits TraitsOf(param_dtype dtype);

}  // namespace param
