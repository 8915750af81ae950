#pragma once
// Known "random" numbers: 1, 2, 3, ... spread over the bits, so ids differ and repeat per test.

#include <cstdint>

#include "proto/base/random.h"

namespace param {

class FakeRandom final : public Random {
 public:
  std::uint64_t Next() override { return ++count_ * 0x9e3779b97f4a7c15u; }

 private:
  std::uint64_t count_ = 0;
};

}  // namespace param
