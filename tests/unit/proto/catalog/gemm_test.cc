#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/catalog/cases.h"
#include "proto/catalog/spec.h"

namespace param {
namespace {

using ::testing::HasSubstr;

const BenchmarkSpec& Gemm() { return **FindBenchmark("gemm"); }

std::vector<Case> CasesOf(const GivenParams& given) { return *ExpandCases(Gemm(), given); }

double Derived(absl::string_view metric, const GivenParams& given, const Scalars& scalars,
               double time_s) {
  for (const MetricSpec& spec : Gemm().metrics) {
    if (spec.name == metric) return spec.derive(CasesOf(given)[0].params, scalars, time_s);
  }
  ADD_FAILURE() << metric;
  return 0;
}

struct SetFacts {
  std::size_t count = 0;
  std::size_t below_1_gflop = 0;
  double flop = 0;
  double largest_flop = 0;
  std::int64_t largest_bytes = 0;
};

SetFacts FactsOf(const std::string& set) {
  SetFacts facts;
  for (const Case& one : CasesOf({{"set", set}})) {
    const double flop = Gemm().metrics[1].derive(one.params, {}, 1.0);
    ++facts.count;
    facts.flop += flop;
    facts.largest_flop = std::max(facts.largest_flop, flop);
    if (flop < 1e9) ++facts.below_1_gflop;
    facts.largest_bytes =
        std::max(facts.largest_bytes, Gemm().footprint(one.params, 1)->device_bytes);
  }
  return facts;
}

TEST(GemmSets, DeepBenchTrainingHasItsPublishedSize) {
  const SetFacts facts = FactsOf("deepbench-train");
  EXPECT_EQ(facts.count, 160U);
  EXPECT_EQ(facts.below_1_gflop, 52U);
  EXPECT_NEAR(facts.flop / 1e12, 26.7, 0.05);
  EXPECT_NEAR(facts.largest_flop / 1e12, 2.28, 0.005);
  EXPECT_NEAR(static_cast<double>(facts.largest_bytes) / 1e9, 2.26, 0.005);
}

TEST(GemmSets, DeepBenchServerHasItsPublishedSize) {
  const SetFacts facts = FactsOf("deepbench-server");
  EXPECT_EQ(facts.count, 75U);
  EXPECT_NEAR(facts.flop / 1e12, 1.80, 0.005);
}

TEST(GemmSets, DeepBenchDeviceHasItsPublishedSize) {
  EXPECT_EQ(FactsOf("deepbench-device").count, 13U);
}

TEST(GemmSets, ParamHasItsPublishedSizes) {
  EXPECT_EQ(FactsOf("param-a").count, 15U);
  EXPECT_EQ(FactsOf("param-b").count, 20U);
  EXPECT_EQ(FactsOf("param-c").count, 4U);
}

TEST(GemmSets, DeepBenchTrainingHasItsTranspositions) {
  std::size_t tn = 0;
  std::size_t nt = 0;
  for (const Case& one : CasesOf({{"set", "deepbench-train"}})) {
    if (std::get<bool>(one.params.at("trans_a"))) ++tn;
    if (std::get<bool>(one.params.at("trans_b"))) ++nt;
    EXPECT_FALSE(one.application.empty());
  }
  EXPECT_EQ(tn, 20U + 4 + 4 + 6 + 6 + 4 + 1 + 12 + 16);
  EXPECT_EQ(nt, 4U + 2 + 2 + 2);
}

TEST(GemmSets, SmokeIsTinyAndMixed) {
  const SetFacts facts = FactsOf("smoke");
  EXPECT_GE(facts.count, 5U);
  EXPECT_LT(facts.largest_flop, 1e8);
}

TEST(GemmMetrics, FlopsCountsAMultiplicationAndAnAddition) {
  EXPECT_EQ(Derived("flops", {{"m", "2"}, {"n", "3"}, {"k", "5"}, {"batch", "7"}}, {}, 0.5),
            2.0 * 2 * 3 * 5 * 7 / 0.5);
}

TEST(GemmMetrics, BandwidthCountsEachMatrixOnceAndCTwiceWithBeta) {
  const GivenParams shape = {{"m", "2"}, {"n", "3"}, {"k", "5"}, {"dtype", "f16"}};
  EXPECT_EQ(Derived("bandwidth", shape, {}, 1), 2.0 * (10 + 15 + 6));
  GivenParams with_beta = shape;
  with_beta["beta"] = "1";
  EXPECT_EQ(Derived("bandwidth", with_beta, {}, 1), 2.0 * (10 + 15 + 6 + 6));
}

TEST(GemmMetrics, BandwidthKnowsTheOutputTypes) {
  const GivenParams shape = {{"m", "2"}, {"n", "3"}, {"k", "5"}};
  const auto bytes = [&shape](const char* dtype) {
    GivenParams given = shape;
    given["dtype"] = dtype;
    return Derived("bandwidth", given, {}, 1);
  };
  EXPECT_EQ(bytes("i8"), 25 + 4 * 6);
  EXPECT_EQ(bytes("f8e4m3"), 25 + 2 * 6);
  EXPECT_EQ(bytes("f8e5m2"), 25 + 2 * 6);
  EXPECT_EQ(bytes("f64"), 8 * 31);
  EXPECT_EQ(bytes("tf32"), 4 * 31);
}

TEST(GemmMetrics, EfficiencyNeedsAPeak) {
  EXPECT_EQ(Derived("peak", {}, {{"peak", 1e12}}, 1), 1e12);
  EXPECT_NEAR(Derived("efficiency", {}, {{"peak", 1e12}}, 2.0 * 1024 * 1024 * 1024 / 1e12), 1,
              1e-9);
  EXPECT_TRUE(std::isnan(Derived("peak", {}, {}, 1)));
  EXPECT_TRUE(std::isnan(Derived("efficiency", {}, {}, 1)));
  EXPECT_TRUE(std::isnan(Derived("efficiency", {}, {{"peak", 0}}, 1)));
}

TEST(GemmFootprint, CountsTheMatricesAndACopyOfCWithBeta) {
  const GivenParams shape = {{"m", "2"}, {"n", "3"}, {"k", "5"}, {"batch", "2"}};
  EXPECT_EQ(Gemm().footprint(CasesOf(shape)[0].params, 1)->device_bytes, 4 * 2 * (10 + 15 + 6));
  GivenParams with_beta = shape;
  with_beta["beta"] = "0.5";
  const Footprint footprint = *Gemm().footprint(CasesOf(with_beta)[0].params, 1);
  EXPECT_EQ(footprint.device_bytes, 4 * 2 * (10 + 15 + 6 + 6));
  EXPECT_EQ(footprint.host_bytes, footprint.device_bytes);
}

TEST(GemmFootprint, NamesTheParametersThatOverflow) {
  const char* largest = "2147483647";
  const absl::Status status =
      Gemm()
          .footprint(CasesOf({{"m", largest}, {"k", largest}, {"batch", "4"}})[0].params, 1)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--m x --k x --batch"));
}

TEST(GemmFootprint, RefusesMatricesThatOverflowTogether) {
  const char* large = "1000000000";
  const GivenParams given = {{"m", large}, {"n", large}, {"k", large}, {"dtype", "f32"}};
  EXPECT_THAT(std::string(Gemm().footprint(CasesOf(given)[0].params, 1).status().message()),
              HasSubstr("together are more than 2^63 bytes"));
}

TEST(GemmParams, RefusesDimensionsBeyondAnInt) {
  EXPECT_FALSE(ExpandCases(Gemm(), {{"m", "2147483648"}}).ok());
  EXPECT_FALSE(ExpandCases(Gemm(), {{"n", "0"}}).ok());
}

}  // namespace
}  // namespace param
