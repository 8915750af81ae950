#include "agent/bench/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "agent/backend/kit.h"
#include "agent/bench/element.h"
#include "proto/base/status.h"

namespace param {
namespace {

// SplitMix64: small, good enough for data, the same everywhere (std's distributions are not).
class Bits {
 public:
  explicit Bits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // [0, 1), 53 bits.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

constexpr double kIntegerStdev = 16;
constexpr double kIntegerEnd = 63;

std::vector<double> Normals(Bits& bits, std::size_t count, double stdev) {
  std::vector<double> values(count + 1);
  for (std::size_t i = 0; i < count; i += 2) {  // Box and Muller: two at a time
    const double radius = stdev * std::sqrt(-2 * std::log(1 - bits.Unit()));
    const double angle = 2 * std::numbers::pi * bits.Unit();
    values[i] = radius * std::cos(angle);
    values[i + 1] = radius * std::sin(angle);
  }
  values.resize(count);
  return values;
}

std::vector<double> RandomBlock(Fill fill, bool integer, Bits& bits, std::size_t count) {
  if (fill == Fill::kNormal) {
    std::vector<double> normals = Normals(bits, count, integer ? kIntegerStdev : 1);
    if (integer) {
      for (double& value : normals) value = std::clamp(value, -kIntegerEnd, kIntegerEnd);
    }
    return normals;
  }
  std::vector<double> values(count);
  for (double& value : values) {
    if (fill == Fill::kExact) {
      value = std::floor(bits.Unit() * 3) - 1;
    } else if (integer) {
      value = std::floor(bits.Unit() * (2 * kIntegerEnd + 1)) - kIntegerEnd;
    } else {
      value = bits.Unit() * 2 - 1;
    }
  }
  return values;
}

void Convert(param_dtype dtype, const std::vector<double>& values, double factor, char* out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    StoreElement(dtype, out, i, factor * values[i]);
  }
}

void FillConstant(param_dtype dtype, double value, char* out, std::size_t count) {
  if (count == 0) return;
  const std::size_t size = kit::DtypeSize(dtype);
  StoreElement(dtype, out, 0, value);
  for (std::size_t done = 1; done < count; done *= 2) {
    std::memcpy(out + done * size, out, std::min(done, count - done) * size);
  }
}

}  // namespace

absl::StatusOr<Fill> FillFromName(absl::string_view name) {
  if (name == "normal") return Fill::kNormal;
  if (name == "uniform") return Fill::kUniform;
  if (name == "ones") return Fill::kOnes;
  if (name == "zeros") return Fill::kZeros;
  if (name == "exact") return Fill::kExact;
  return absl::InvalidArgumentError(absl::StrCat("fill: \"", name, "\" is not known"));
}

std::uint64_t DeriveSeed(std::uint64_t seed, std::uint64_t which) {
  return Bits(Bits(seed).Next() ^ (which * 0xd1342543de82ef95u)).Next();
}

void FillElements(Fill fill, param_dtype dtype, std::uint64_t seed, void* out, std::size_t count) {
  char* const bytes = static_cast<char*>(out);
  if (fill == Fill::kOnes || fill == Fill::kZeros) {
    return FillConstant(dtype, fill == Fill::kOnes ? 1 : 0, bytes, count);
  }
  Bits bits(seed);
  const std::size_t size = kit::DtypeSize(dtype);
  const std::size_t block = std::min(count, kFillBlock);
  const std::vector<double> values = RandomBlock(fill, TraitsOf(dtype).integer, bits, block);
  Convert(dtype, values, 1, bytes);
  if (count <= block) return;
  std::vector<char> negated(block * size);
  Convert(dtype, values, -1, negated.data());
  // Repeats: from a random place of the block to its end, or of its negative.
  for (std::size_t done = block; done < count;) {
    const std::uint64_t random = bits.Next();
    const std::size_t from = (random >> 1) % (block / 2);
    const std::size_t length = std::min(block - from, count - done);
    const char* const source = (random & 1) != 0 ? negated.data() : bytes;
    std::memcpy(bytes + done * size, source + from * size, length * size);
    done += length;
  }
}

}  // namespace param
