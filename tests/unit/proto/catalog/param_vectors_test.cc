// Conformance vectors of PARAM (facebookresearch/param) on sizes, sweeps and rates.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/catalog/cases.h"

namespace param {
namespace {

using ::testing::ElementsAre;

std::vector<std::int64_t> Sizes(const std::string& text) {
  const BenchmarkSpec& bench = **FindBenchmark("collective");
  std::vector<std::int64_t> sizes;
  for (const ParamSpec& spec : bench.params) {
    if (spec.name != "size") continue;
    const auto values = ParseValues(spec, text);
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) return {};
    for (const Value& value : *values) sizes.push_back(std::get<std::int64_t>(value));
  }
  return sizes;
}

TEST(ParamVectors, Sizes) {
  EXPECT_THAT(Sizes("2GB"), ElementsAre(2147483648));
  EXPECT_THAT(Sizes("3MB"), ElementsAre(3145728));
  EXPECT_THAT(Sizes("5KB"), ElementsAre(5120));
  EXPECT_THAT(Sizes("1024"), ElementsAre(1024));
}

TEST(ParamVectors, Sweeps) {
  EXPECT_THAT(Sizes("32:1024:x2"), ElementsAre(32, 64, 128, 256, 512, 1024));
  EXPECT_THAT(Sizes("32:256:+32"), ElementsAre(32, 64, 96, 128, 160, 192, 224, 256));
}

// 90000 B in 10000 ns are 9 GB/s.
TEST(ParamVectors, AlgorithmBandwidth) {
  const BenchmarkSpec& bench = **FindBenchmark("collective");
  for (const MetricSpec& metric : bench.metrics) {
    if (metric.name != "algbw") continue;
    EXPECT_DOUBLE_EQ(metric.derive({}, {{"bytes_total", 90000}}, 10000e-9), 9e9);
  }
}

}  // namespace
}  // namespace param
