#include "agent/backend/kit_gemm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "agent/backend/op_desc.h"

namespace param {
namespace {

using ::testing::HasSubstr;

TEST(KitFail, CutsAMessageThatIsTooLong) {
  param_error error;
  const std::string text(3000, 'x');
  EXPECT_EQ(kit::Fail(&error, kit::kInternal, "%s", text.c_str()), 13);
  EXPECT_EQ(std::strlen(error.message), sizeof(error.message) - 1);
}

TEST(KitFail, WorksWithoutAPlaceForTheMessage) {
  EXPECT_EQ(kit::Fail(nullptr, kit::kNotFound, "nothing"), 5);
}

TEST(KitGuard, TurnsExceptionsIntoCodes) {
  param_error error = {};
  EXPECT_EQ(kit::Guard(&error, []() -> std::int32_t { throw std::bad_alloc(); }),
            kit::kResourceExhausted);
  EXPECT_EQ(kit::Guard(&error, []() -> std::int32_t { throw std::runtime_error("boom"); }),
            kit::kInternal);
  EXPECT_STREQ(error.message, "boom");
  EXPECT_EQ(kit::Guard(&error, []() -> std::int32_t { throw 7; }), kit::kInternal);
}

TEST(KitJson, EscapesWhatMustBe) {
  EXPECT_EQ(kit::JsonObject().Text("a\"b", "c\\\n").Integer("i", -1).Number("n", 0.5).Done(),
            "{\"a\\\"b\": \"c\\\\\\u000a\", \"i\": -1, \"n\": 0.5}");
  EXPECT_EQ(kit::JsonObject().Done(), "{}");
}

TEST(KitJson, RefusesToWriteHalfAText) {
  char out[4];
  param_error error = {};
  EXPECT_EQ(kit::PutText("abc", out, sizeof(out), &error), kit::kOk);
  EXPECT_STREQ(out, "abc");
  EXPECT_EQ(kit::PutText("abcd", out, sizeof(out), &error), kit::kResourceExhausted);
}

TEST(KitRange, DoesNotOverflow) {
  EXPECT_EQ(kit::CheckRange("x", 4, 4, 8, nullptr), kit::kOk);
  EXPECT_EQ(kit::CheckRange("x", 4, 5, 8, nullptr), kit::kOutOfRange);
  EXPECT_EQ(kit::CheckRange("x", ~std::size_t{0}, 2, 8, nullptr), kit::kOutOfRange);
  EXPECT_EQ(kit::CheckRange("x", 2, ~std::size_t{0}, 8, nullptr), kit::kOutOfRange);
}

TEST(ParseGemm, ReadsShapesAndAttributes) {
  OpDesc desc("gemm");
  desc.Bool("trans_a", true).Bool("trans_b", true).Float("alpha", 2).Int("beta", 3);
  desc.String("library", "one").Tensor("a", PARAM_DTYPE_I8, {5, 4, 2});
  desc.Tensor("b", PARAM_DTYPE_I8, {5, 3, 4}).Tensor("c", PARAM_DTYPE_I32, {5, 2, 3});
  kit::Gemm gemm;
  param_error error = {};
  ASSERT_EQ(kit::ParseGemm(desc.desc(), &gemm, &error), 0) << error.message;
  EXPECT_EQ(gemm.batch, 5);
  EXPECT_EQ(gemm.m, 2);
  EXPECT_EQ(gemm.n, 3);
  EXPECT_EQ(gemm.k, 4);
  EXPECT_EQ(gemm.alpha, 2);
  EXPECT_EQ(gemm.beta, 3);
  EXPECT_EQ(gemm.library, "one");
  EXPECT_EQ(gemm.a.ld, 2);
  EXPECT_EQ(gemm.b.batch_stride, 12);
  EXPECT_EQ(gemm.c.bytes, 5u * 2 * 3 * 4);
  EXPECT_EQ(gemm.flops(), 2.0 * 5 * 2 * 3 * 4);
}

TEST(ParseGemm, DefaultsAreThePlainProduct) {
  OpDesc desc("gemm");
  for (const char* name : {"a", "b", "c"}) desc.Tensor(name, PARAM_DTYPE_F32, {1, 2, 2});
  kit::Gemm gemm;
  ASSERT_EQ(kit::ParseGemm(desc.desc(), &gemm, nullptr), 0);
  EXPECT_FALSE(gemm.trans_a || gemm.trans_b);
  EXPECT_EQ(gemm.alpha, 1);
  EXPECT_EQ(gemm.beta, 0);
  EXPECT_EQ(gemm.library, "auto");
}

// The message for a gemm with these dimensions.
std::string ProblemWith(std::vector<std::int64_t> a, std::vector<std::int64_t> b,
                        std::vector<std::int64_t> c) {
  OpDesc desc("gemm");
  desc.Tensor("a", PARAM_DTYPE_F32, a).Tensor("b", PARAM_DTYPE_F32, b);
  desc.Tensor("c", PARAM_DTYPE_F32, c);
  kit::Gemm gemm;
  param_error error = {};
  return kit::ParseGemm(desc.desc(), &gemm, &error) == 0 ? "" : error.message;
}

TEST(ParseGemm, SaysWhichShapesDoNotFit) {
  EXPECT_EQ(ProblemWith({1, 2, 3}, {1, 3, 4}, {1, 2, 4}), "");
  EXPECT_THAT(ProblemWith({1, 2, 3}, {1, 2, 4}, {1, 2, 4}), HasSubstr("shapes do not fit"));
  EXPECT_THAT(ProblemWith({2, 2, 3}, {1, 3, 4}, {2, 2, 4}), HasSubstr("shapes do not fit"));
  EXPECT_THAT(ProblemWith({2, 3}, {1, 3, 4}, {1, 2, 4}), HasSubstr("2 dimensions"));
  EXPECT_THAT(ProblemWith({1, 0, 3}, {1, 3, 4}, {1, 0, 4}), HasSubstr("dimension 1 of \"a\" is 0"));
}

TEST(ParseCopy, GivesTheBytes) {
  OpDesc desc("copy");
  desc.Tensor("src", PARAM_DTYPE_F16, {3, 5}).Tensor("dst", PARAM_DTYPE_F16, {3, 5});
  std::size_t bytes = 0;
  ASSERT_EQ(kit::ParseCopy(desc.desc(), &bytes, nullptr), 0);
  EXPECT_EQ(bytes, 30u);
}

}  // namespace
}  // namespace param
