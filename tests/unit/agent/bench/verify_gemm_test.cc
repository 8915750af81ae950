#include "agent/bench/verify_gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "agent/backend/kit_gemm.h"
#include "agent/bench/element.h"
#include "agent/bench/fill.h"

namespace param {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr param_dtype kTypes[] = {PARAM_DTYPE_F64,    PARAM_DTYPE_F32,  PARAM_DTYPE_TF32,
                                  PARAM_DTYPE_F16,    PARAM_DTYPE_BF16, PARAM_DTYPE_F8E4M3,
                                  PARAM_DTYPE_F8E5M2, PARAM_DTYPE_I8};

// A product computed as a sound backend would: sums in f32 (f64, integers), then rounded.
class Product {
 public:
  Product(const GemmShape& shape, Fill fill, std::uint64_t seed) : shape_(shape) {
    const std::size_t in = kit::DtypeSize(shape.input);
    const std::size_t out = kit::DtypeSize(shape.result);
    a_.resize(static_cast<std::size_t>(shape.a_elements()) * in);
    b_.resize(static_cast<std::size_t>(shape.b_elements()) * in);
    c_before_.resize(static_cast<std::size_t>(shape.c_elements()) * out);
    c_after_ = c_before_;
    FillElements(fill, shape.input, DeriveSeed(seed, 0), a_.data(), a_.size() / in);
    FillElements(fill, shape.input, DeriveSeed(seed, 1), b_.data(), b_.size() / in);
    FillElements(fill, shape.result, DeriveSeed(seed, 2), c_before_.data(), c_before_.size() / out);
    Poison(shape.result, c_after_.data(), c_after_.size() / out);
    for (std::int64_t i = 0; i < shape.c_elements(); ++i) Compute(i);
  }

  GemmCheck Check(std::optional<std::int64_t> watched = {}) const {
    return CheckGemm(shape_, data(), watched, 1);
  }
  GemmData data() const {
    return {a_.data(), b_.data(), shape_.beta == 0 ? nullptr : c_before_.data(), c_after_.data()};
  }
  char* element(std::int64_t index) {
    return c_after_.data() + static_cast<std::size_t>(index) * kit::DtypeSize(shape_.result);
  }

 private:
  double In(const std::vector<char>& array, std::int64_t index) const {
    double value = LoadElement(shape_.input, array.data(), static_cast<std::size_t>(index));
    if (shape_.input == PARAM_DTYPE_TF32) {  // truncated to ten bits
      float narrow = static_cast<float>(value);
      std::uint32_t bits;
      std::memcpy(&bits, &narrow, sizeof(bits));
      bits &= ~0x1fffu;
      std::memcpy(&narrow, &bits, sizeof(bits));
      value = static_cast<double>(narrow);
    }
    return value;
  }

  void Compute(std::int64_t index) {
    const GemmShape& s = shape_;
    const std::int64_t batch = index / (s.m * s.n), row = index / s.n % s.m, col = index % s.n;
    double wide = 0;
    float narrow = 0;
    for (std::int64_t k = 0; k < s.k; ++k) {
      const double a = In(a_, batch * s.m * s.k + (s.trans_a ? k * s.m + row : row * s.k + k));
      const double b = In(b_, batch * s.k * s.n + (s.trans_b ? col * s.k + k : k * s.n + col));
      wide += a * b;
      narrow += static_cast<float>(a) * static_cast<float>(b);
    }
    const bool keep = s.input == PARAM_DTYPE_F64 || s.input == PARAM_DTYPE_I8;
    double c = s.alpha * (keep ? wide : static_cast<double>(narrow));
    const std::size_t at = static_cast<std::size_t>(index);
    if (s.beta != 0) c += s.beta * LoadElement(s.result, c_before_.data(), at);
    StoreElement(s.result, c_after_.data(), at, c);
  }

  const GemmShape shape_;
  std::vector<char> a_, b_, c_before_, c_after_;
};

GemmShape ShapeOf(param_dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.input = dtype;
  shape.result = kit::GemmResultType(dtype);
  return shape;
}

TEST(VerifyGemm, CorrectResultsPassInEveryTypeFillShapeAndTransposition) {
  std::uint64_t seed = 0;
  for (const param_dtype dtype : kTypes) {
    for (const Fill fill :
         {Fill::kNormal, Fill::kUniform, Fill::kExact, Fill::kOnes, Fill::kZeros}) {
      for (int trial = 0; trial < 8; ++trial) {
        ++seed;
        GemmShape shape = ShapeOf(dtype, 1 + static_cast<std::int64_t>(seed % 17),
                                  1 + static_cast<std::int64_t>(seed % 13),
                                  1 + static_cast<std::int64_t>(seed * 37 % 700));
        shape.batch = 1 + trial % 2;
        shape.trans_a = trial % 4 >= 2;
        shape.trans_b = trial >= 4;
        if (trial % 3 == 1) shape.alpha = 0.5;
        if (trial % 3 == 2) shape.beta = -1.5;
        const GemmCheck check = Product(shape, fill, seed).Check();
        ASSERT_EQ(check.problem, "") << kit::DtypeName(dtype) << " k " << shape.k;
        ASSERT_LE(check.max_error, 1);
        ASSERT_GT(check.checked, 0);
      }
    }
  }
}

TEST(VerifyGemm, LongSumsPassToo) {
  for (const param_dtype dtype : kTypes) {
    const GemmCheck check = Product(ShapeOf(dtype, 3, 5, 50'000), Fill::kUniform, 5).Check();
    EXPECT_EQ(check.problem, "") << kit::DtypeName(dtype);
    EXPECT_LT(check.max_error, 0.9) << kit::DtypeName(dtype);
  }
}

TEST(VerifyGemm, ACorruptedElementIsSeenInEveryTypeWhateverTheFill) {
  for (const param_dtype dtype : kTypes) {
    for (const Fill fill : {Fill::kNormal, Fill::kZeros}) {
      Product product(ShapeOf(dtype, 33, 47, 700), fill, 9);  // too large to check all of it
      const std::int64_t index = 20 * 47 + 11;
      CorruptElement(kit::GemmResultType(dtype), product.element(index));
      const GemmCheck check = product.Check(index);
      EXPECT_THAT(check.problem, AllOf(HasSubstr("element 951 (0, 20, 11)"), HasSubstr("expected"),
                                       HasSubstr("got"), HasSubstr("tolerance")))
          << kit::DtypeName(dtype);
      EXPECT_GT(check.max_error, 1);
    }
  }
}

TEST(VerifyGemm, CorruptionIsSeenWhateverTheElementHeld) {
  for (const param_dtype dtype :
       {PARAM_DTYPE_F64, PARAM_DTYPE_F32, PARAM_DTYPE_F16, PARAM_DTYPE_BF16, PARAM_DTYPE_I32}) {
    const double largest = TraitsOf(dtype).largest;
    for (const double before : {0.0, -0.0, 1.0, -3.0, 200.0, largest, -largest}) {
      char element[8] = {};
      StoreElement(dtype, element, 0, before);
      CorruptElement(dtype, element);
      const double after = LoadElement(dtype, element, 0);
      // Half the range is far beyond any tolerance.
      EXPECT_GE(std::fabs(after / 2 - before / 2), largest / 4.1) << dtype << " " << before;
    }
  }
}

TEST(VerifyGemm, AnElementThatNobodyWroteIsFoundThoughNotSampled) {
  for (const param_dtype dtype : kTypes) {
    Product product(ShapeOf(dtype, 33, 47, 700), Fill::kNormal, 9);
    const std::vector<std::int64_t> sampled = ElementsToCheck(ShapeOf(dtype, 33, 47, 700), {}, 1);
    std::int64_t hole = 100;
    while (std::binary_search(sampled.begin(), sampled.end(), hole)) ++hole;
    Poison(kit::GemmResultType(dtype), product.element(hole), 1);
    EXPECT_THAT(product.Check().problem, HasSubstr("never written")) << kit::DtypeName(dtype);
  }
}

TEST(VerifyGemm, NanAndInfinityAreWrong) {
  Product product(ShapeOf(PARAM_DTYPE_F32, 4, 4, 4), Fill::kNormal, 1);
  StoreElement(PARAM_DTYPE_F32, product.element(3), 0, std::nan(""));
  EXPECT_THAT(product.Check().problem, HasSubstr("got nan"));
  StoreElement(PARAM_DTYPE_F32, product.element(3), 0, INFINITY);
  EXPECT_THAT(product.Check().problem, HasSubstr("got inf"));
}

TEST(VerifyGemm, InfinityIsRightWhereTheResultOverflowsItsType) {
  GemmShape shape = ShapeOf(PARAM_DTYPE_F16, 4, 4, 8);
  shape.alpha = 1e6;
  const GemmCheck check = Product(shape, Fill::kOnes, 1).Check();
  EXPECT_EQ(check.problem, "");
}

TEST(VerifyGemm, AnErrorOfAFewUnitsOfF32IsNotedButAThousandIsWrong) {
  Product product(ShapeOf(PARAM_DTYPE_F32, 8, 8, 256), Fill::kUniform, 3);
  const double right = LoadElement(PARAM_DTYPE_F32, product.element(0), 0);
  StoreElement(PARAM_DTYPE_F32, product.element(0), 0, right + 20 * 0x1p-23);
  EXPECT_EQ(product.Check().problem, "");
  StoreElement(PARAM_DTYPE_F32, product.element(0), 0, right + 0.01);
  EXPECT_NE(product.Check().problem, "");
}

TEST(VerifyGemm, IntegerResultsMustBeExact) {
  Product product(ShapeOf(PARAM_DTYPE_I8, 8, 8, 256), Fill::kUniform, 3);
  EXPECT_EQ(product.Check().max_error, 0);
  const double right = LoadElement(PARAM_DTYPE_I32, product.element(5), 0);
  StoreElement(PARAM_DTYPE_I32, product.element(5), 0, right + 1);
  EXPECT_THAT(product.Check().problem, HasSubstr("element 5"));
}

TEST(VerifyGemm, SamplesHoldCornersOfTheFirstAndLastMatrixAndTheWatchedElement) {
  GemmShape shape = ShapeOf(PARAM_DTYPE_F32, 1000, 700, 512);
  shape.batch = 3;
  const auto picked = ElementsToCheck(shape, 123456, 1);
  for (const std::int64_t base : {0, 2 * 700'000}) {
    EXPECT_THAT(picked, Contains(base));
    EXPECT_THAT(picked, Contains(base + 699));
    EXPECT_THAT(picked, Contains(base + 999 * 700));
    EXPECT_THAT(picked, Contains(base + 699'999));
  }
  EXPECT_THAT(picked, Contains(123456));
  EXPECT_GE(picked.size(), 64u);
  EXPECT_LE(picked.size(), 256u);
  EXPECT_TRUE(std::is_sorted(picked.begin(), picked.end()));
  EXPECT_GT(std::count_if(picked.begin(), picked.end(),
                          [](std::int64_t i) { return i >= 3 * 700'000 - 700; }),
            8);  // the last row
  EXPECT_GT(std::count_if(picked.begin(), picked.end(),
                          [](std::int64_t i) { return i >= 1'400'000 && i % 700 == 699; }),
            8);  // the last column
}

TEST(VerifyGemm, SmallResultsAreCheckedWhole) {
  EXPECT_EQ(ElementsToCheck(ShapeOf(PARAM_DTYPE_F32, 32, 32, 64), {}, 1).size(), 1024u);
}

}  // namespace
}  // namespace param
