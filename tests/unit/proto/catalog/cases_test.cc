#include "proto/catalog/cases.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const BenchmarkSpec& Gemm() { return **FindBenchmark("gemm"); }

std::vector<std::string> Ids(const GivenParams& given) {
  std::vector<std::string> ids;
  const absl::StatusOr<std::vector<Case>> cases = ExpandCases(Gemm(), given);
  if (!cases.ok()) return {std::string(cases.status().message())};
  for (const Case& one : *cases) ids.push_back(one.id);
  return ids;
}

std::string ErrorOf(const GivenParams& given) {
  const absl::StatusOr<std::vector<Case>> cases = ExpandCases(Gemm(), given);
  EXPECT_EQ(cases.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(cases.status().message());
}

Params OneCase(const GivenParams& given) { return ExpandCases(Gemm(), given)->at(0).params; }

TEST(ExpandCases, MakesOneTotalCaseOfNothing) {
  const std::vector<Case> cases = *ExpandCases(Gemm(), {});
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases[0].id, "gemm:v1:");
  EXPECT_EQ(cases[0].set_row, "");
  EXPECT_EQ(cases[0].params.size(), AllParams(Gemm()).size());
}

TEST(ExpandCases, VariesTheFirstNamedParameterSlowest) {
  EXPECT_THAT(Ids({{"n", "3,4"}, {"m", "1,2"}}), ElementsAre("gemm:v1:m=1,n=3", "gemm:v1:m=1,n=4",
                                                             "gemm:v1:m=2,n=3", "gemm:v1:m=2,n=4"));
}

TEST(ExpandCases, LeavesDefaultsOutOfTheIdentity) {
  EXPECT_THAT(Ids({{"m", "1024,512"}, {"dtype", "f32"}}), ElementsAre("gemm:v1:", "gemm:v1:m=512"));
}

// These strings are keys of stored results: a change here orphans every history.
TEST(ExpandCases, KeepsIdentitiesStable) {
  EXPECT_THAT(Ids({{"m", "4096"},
                   {"k", "512"},
                   {"dtype", "bf16"},
                   {"trans_b", "true"},
                   {"alpha", "0.5"},
                   {"beta", "1"},
                   {"library", "onednn"},
                   {"batch", "2"}}),
              ElementsAre("gemm:v1:alpha=0.5,batch=2,beta=1,dtype=bf16,k=512,library=onednn,m=4096,"
                          "trans_b=true"));
  EXPECT_THAT(Ids({{"mode", "pipelined"}, {"fill", "exact"}, {"flush_cache", "true"}}),
              ElementsAre("gemm:v1:fill=exact,flush_cache=true,mode=pipelined"));
}

TEST(ExpandCases, LeavesHowLongAndHowCarefullyOutOfTheIdentity) {
  EXPECT_THAT(Ids({{"iters", "10"},
                   {"warmup", "1"},
                   {"min_time", "0.1"},
                   {"max_time", "1s"},
                   {"noise", "0.5"},
                   {"seed", "7"},
                   {"inject", "flip@1:3"}}),
              ElementsAre("gemm:v1:"));
  EXPECT_THAT(Ids({{"check", "false"}}), ElementsAre("gemm:v1:"));
}

TEST(ExpandCases, KeepsEqualCasesOnce) {
  EXPECT_THAT(Ids({{"m", "8,8,1:8:x2"}}),
              ElementsAre("gemm:v1:m=8", "gemm:v1:m=1", "gemm:v1:m=2", "gemm:v1:m=4"));
}

TEST(ExpandCases, RefusesTooManyAndSaysHowMany) {
  EXPECT_THAT(ErrorOf({{"m", "1:101:+1"}, {"n", "1:100:+1"}}), HasSubstr("10100 cases"));
  const std::string most = "1:10000:+1";
  EXPECT_THAT(ErrorOf({{"m", most}, {"n", most}, {"k", most}, {"batch", most}, {"alpha", most}}),
              HasSubstr("18446744073709551615 cases; at most 10000"));
}

TEST(ExpandCases, SuggestsAParameterForATypo) {
  EXPECT_EQ(ErrorOf({{"min_tme", "1"}}),
            "gemm has no parameter \"--min-tme\"; did you mean \"--min-time\"?");
  EXPECT_EQ(ErrorOf({{"velocity", "1"}}), "gemm has no parameter \"--velocity\"");
}

TEST(ExpandCases, RefusesAMinimumTimeAboveTheMaximum) {
  EXPECT_THAT(ErrorOf({{"min_time", "3"}, {"max_time", "2"}}),
              HasSubstr("--min-time: 3 s is above --max-time, 2 s"));
}

TEST(ExpandCases, LowersTheDefaultMinimumTimeToAGivenMaximum) {
  const Case one = ExpandCases(Gemm(), {{"max_time", "0.3"}})->front();
  EXPECT_EQ(MeasureOptionsOf(one.params).min_time_s, 0.3);
  EXPECT_EQ(MeasureOptionsOf(one.params).max_time_s, 0.3);
  EXPECT_EQ(one.id, "gemm:v1:");
}

TEST(ExpandCases, RaisesTheDefaultMaximumTimeToAGivenMinimum) {
  const Case one = ExpandCases(Gemm(), {{"min_time", "3"}})->front();
  EXPECT_EQ(MeasureOptionsOf(one.params).min_time_s, 3);
  EXPECT_EQ(MeasureOptionsOf(one.params).max_time_s, 3);
  EXPECT_EQ(one.id, "gemm:v1:");
}

TEST(ExpandCases, LeavesTheOtherTimeLimitAloneWhereBothFit) {
  const MeasureOptions options =
      MeasureOptionsOf(ExpandCases(Gemm(), {{"max_time", "1"}})->front().params);
  EXPECT_EQ(options.min_time_s, 0.5);
  EXPECT_EQ(options.max_time_s, 1);
}

TEST(ExpandCases, RefusesABadInjection) {
  EXPECT_THAT(ErrorOf({{"inject", "flip@x"}}), HasSubstr("is not flip@RANK:INDEX"));
  EXPECT_THAT(ErrorOf({{"inject", "flip@0:1"}, {"check", "false"}}), HasSubstr("--no-check"));
}

TEST(ExpandCases, MultipliesAProblemSetWithTheRest) {
  const std::vector<Case> cases =
      *ExpandCases(Gemm(), {{"set", "deepbench-device"}, {"dtype", "f32,f16"}});
  ASSERT_EQ(cases.size(), 26U);
  EXPECT_EQ(cases[0].id, "gemm:v1:k=2048,m=5124,n=700");
  EXPECT_EQ(cases[0].set_row, "deepbench-device/001");
  EXPECT_EQ(cases[0].application, "DeepSpeech output layer");
  EXPECT_EQ(cases[1].id, "gemm:v1:dtype=f16,k=2048,m=5124,n=700");
  EXPECT_EQ(cases[1].set_row, "deepbench-device/001");
  EXPECT_EQ(cases[25].set_row, "deepbench-device/013");
}

TEST(ExpandCases, RefusesAParameterThatTheSetNames) {
  EXPECT_THAT(ErrorOf({{"set", "param-a"}, {"m", "8"}}), HasSubstr("--m: the problem set param-a"));
}

TEST(ExpandCases, LetsASetLeaveParametersOpen) {
  EXPECT_EQ(ExpandCases(Gemm(), {{"set", "param-a"}, {"trans_a", "true"}})->size(), 15U);
}

TEST(ExpandCases, SuggestsASetForATypo) {
  EXPECT_THAT(ErrorOf({{"set", "deepbench-trian"}}),
              HasSubstr("did you mean \"deepbench-train\"?"));
}

TEST(CaseId, TreatsMissingParametersAsDefaults) {
  EXPECT_EQ(CaseId(Gemm(), {{"m", std::int64_t{8}}}), "gemm:v1:m=8");
}

TEST(CaseId, IsTheIdOfTheExpandedCase) {
  const std::vector<Case> cases = *ExpandCases(Gemm(), {{"set", "smoke"}});
  for (const Case& one : cases) EXPECT_EQ(CaseId(Gemm(), one.params), one.id);
}

TEST(ReproLine, NamesTheCaseInFull) {
  const Params params =
      OneCase({{"m", "8"}, {"trans_a", "true"}, {"check", "false"}, {"iters", "5"}});
  EXPECT_EQ(
      ReproLine(Gemm(), params, 4, 1, "cpu"),
      "paramctl submit gemm --m 8 --n 1024 --k 1024 --batch 1 --dtype f32 --trans-a --alpha 1 "
      "--beta 0 --library auto --iters 5 --no-check --nodes 4 --ranks-per-node 1 "
      "--backend cpu");
}

TEST(ReproLine, QuotesForTheShell) {
  Params params = OneCase({});
  params["inject"] = std::string("it's; rm");
  EXPECT_THAT(ReproLine(Gemm(), params, 1, 1, ""), HasSubstr("--inject 'it'\\''s; rm' --nodes 1"));
}

TEST(MeasureOptionsOf, ReadsEveryOption) {
  const MeasureOptions options = MeasureOptionsOf(OneCase({{"iters", "11"},
                                                           {"warmup", "2"},
                                                           {"min_time", "100ms"},
                                                           {"max_time", "3s"},
                                                           {"noise", "0.25"},
                                                           {"flush_cache", "true"},
                                                           {"fill", "ones"},
                                                           {"seed", "42"},
                                                           {"inject", "flip@0:1"},
                                                           {"mode", "pipelined"}}));
  EXPECT_EQ(options.iters, 11);
  EXPECT_EQ(options.warmup, 2);
  EXPECT_EQ(options.min_time_s, 0.1);
  EXPECT_EQ(options.max_time_s, 3);
  EXPECT_EQ(options.noise, 0.25);
  EXPECT_TRUE(options.flush_cache);
  EXPECT_EQ(options.fill, "ones");
  EXPECT_EQ(options.seed, 42U);
  EXPECT_TRUE(options.check);
  EXPECT_EQ(options.inject, "flip@0:1");
  EXPECT_EQ(options.mode, "pipelined");
}

TEST(MeasureOptionsOf, MeansTheSameByNothingAndByTheDefaults) {
  const MeasureOptions typed = MeasureOptionsOf(OneCase({}));
  const MeasureOptions empty = MeasureOptionsOf({{"iters", std::string("not a number")}});
  EXPECT_EQ(typed.iters, empty.iters);
  EXPECT_EQ(typed.warmup, empty.warmup);
  EXPECT_EQ(typed.min_time_s, empty.min_time_s);
  EXPECT_EQ(typed.max_time_s, empty.max_time_s);
  EXPECT_EQ(typed.noise, empty.noise);
  EXPECT_EQ(typed.flush_cache, empty.flush_cache);
  EXPECT_EQ(typed.fill, empty.fill);
  EXPECT_EQ(typed.seed, empty.seed);
  EXPECT_EQ(typed.check, empty.check);
  EXPECT_EQ(typed.inject, empty.inject);
  EXPECT_EQ(typed.mode, empty.mode);
}

TEST(ParseInjection, ReadsRankAndIndex) {
  const Injection injection = *ParseInjection("flip@3:9000000000");
  EXPECT_TRUE(injection.armed);
  EXPECT_EQ(injection.rank, 3);
  EXPECT_EQ(injection.index, 9000000000);
}

TEST(ParseInjection, IsNotArmedByNothing) { EXPECT_FALSE(ParseInjection("")->armed); }

TEST(ParseInjection, RefusesAllElse) {
  for (const char* text :
       {"flip", "flip@", "flip@1", "flip@1:", "flip@:1", "flip@-1:0", "flip@0:-1", "flip@0:1x",
        "flip@99999999999:0", "drop@0:1", " flip@0:1"}) {
    EXPECT_FALSE(ParseInjection(text).ok()) << text;
  }
}

}  // namespace
}  // namespace param
