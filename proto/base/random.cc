#include "proto/base/random.h"

#include <sys/random.h>

#include <cstdlib>

namespace param {

std::uint64_t SystemRandom::Next() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits))) std::abort();
  return bits;
}

std::string MakeId(Random& random, const char* prefix) {
  static constexpr char kAlphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string id(prefix);
  std::uint64_t bits = random.Next();
  for (int i = 0; i < 10; ++i, bits >>= 5) id.push_back(kAlphabet[bits & 31]);
  return id;
}

std::string MakeToken(Random& random) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string token;
  for (int word = 0; word < 2; ++word) {
    std::uint64_t bits = random.Next();
    for (int i = 0; i < 16; ++i, bits >>= 4) token.push_back(kHex[bits & 15]);
  }
  return token;
}

}  // namespace param
