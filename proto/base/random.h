#pragma once
// Identifiers and tokens. Data fills have their own seeded generators and never come from here.

#include <cstdint>
#include <string>

namespace param {

// Source of unpredictable bits; injected so that tests get known ids. Thread safe.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t Next() = 0;
};

// The kernel's generator (getrandom).
class SystemRandom final : public Random {
 public:
  std::uint64_t Next() override;
};

// `prefix` followed by ten characters of a-z2-7 (50 bits): "j-4k7q2mzd6b". Safe in file names.
std::string MakeId(Random& random, const char* prefix);

// 32 hexadecimal characters (128 bits), for one-time tokens and request ids.
std::string MakeToken(Random& random);

}  // namespace param
