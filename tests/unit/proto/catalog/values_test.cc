// The grammar of one parameter's text.

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/catalog/cases.h"

namespace param {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kColours[] = {"red", "green", "blue"};
constexpr double kInt64Max = 9223372036854775807.0;

constexpr ParamSpec kInt = {"count", ParamType::kInt, ParamRole::kCase, "1", -100, 1e6, {}, "x"};
constexpr ParamSpec kWide = {
    "wide", ParamType::kInt, ParamRole::kCase, "1", -kInt64Max, kInt64Max, {}, "x"};
constexpr ParamSpec kSize = {"size", ParamType::kBytes, ParamRole::kCase, "1", 0, kInt64Max, {},
                             "x"};
constexpr ParamSpec kFloat = {"scale", ParamType::kFloat, ParamRole::kCase, "1", -10, 10, {}, "x"};
constexpr ParamSpec kBool = {"fast", ParamType::kBool, ParamRole::kCase, "false", 0, 0, {}, "x"};
constexpr ParamSpec kChoice = {"hue", ParamType::kChoice, ParamRole::kCase, "red", 0, 0, kColours,
                               "x"};
constexpr ParamSpec kString = {"file", ParamType::kString, ParamRole::kCase, "", 0, 0, {}, "x"};
constexpr ParamSpec kOnce = {"iters", ParamType::kInt, ParamRole::kMeasure, "1", 0, 100, {}, "x"};
constexpr ParamSpec kTime = {"min_time", ParamType::kDuration, ParamRole::kMeasure, "1", 0, 60, {},
                             "x"};
constexpr ParamSpec kNote = {"note", ParamType::kString, ParamRole::kMeasure, "", 0, 0, {}, "x"};

// The values as text joined by blanks, or the error's message.
std::string Parsed(const ParamSpec& spec, absl::string_view text) {
  const absl::StatusOr<std::vector<Value>> values = ParseValues(spec, text);
  if (!values.ok()) return std::string(values.status().message());
  return absl::StrJoin(*values, " ", [](std::string* out, const Value& value) {
    absl::StrAppend(out, ValueText(value));
  });
}

TEST(ParseValues, KeepsTheOrderOfAList) { EXPECT_EQ(Parsed(kInt, "3, 1,2"), "3 1 2"); }

TEST(ParseValues, MultipliesThroughARange) {
  EXPECT_EQ(Parsed(kInt, "1:8:x2"), "1 2 4 8");
  EXPECT_EQ(Parsed(kInt, "1:9:x2"), "1 2 4 8");
  EXPECT_EQ(Parsed(kInt, "5:5:x3"), "5");
}

TEST(ParseValues, StepsThroughARange) {
  EXPECT_EQ(Parsed(kInt, "1:9:+4"), "1 5 9");
  EXPECT_EQ(Parsed(kInt, "-2:1:+2"), "-2 0");
  EXPECT_EQ(Parsed(kInt, "7,1:2:+1,9"), "7 1 2 9");
}

TEST(ParseValues, StepsExactlyThroughDecimalFractions) {
  EXPECT_EQ(Parsed(kFloat, "0:0.3:+0.1"), "0 0.1 0.2 0.3");
  EXPECT_EQ(Parsed(kFloat, "0.5:2:x2"), "0.5 1 2");
}

TEST(ParseValues, StepsOverTheWholeOfInt64WithoutOverflow) {
  EXPECT_EQ(Parsed(kWide, "-9223372036854775807:9223372036854775807:+9223372036854775807"),
            "-9223372036854775807 0 9223372036854775807");
  EXPECT_EQ(Parsed(kWide, "4611686018427387904:9223372036854775807:x2"), "4611686018427387904");
}

TEST(ParseValues, RefusesRangesThatNeverEnd) {
  EXPECT_THAT(Parsed(kInt, "1:10:+0"), HasSubstr("step of a range must be above 0"));
  EXPECT_THAT(Parsed(kInt, "1:10:+-1"), HasSubstr("step of a range must be above 0"));
  EXPECT_THAT(Parsed(kInt, "1:10:x1"), HasSubstr("factor of a range must be above 1"));
  EXPECT_THAT(Parsed(kInt, "0:10:x2"), HasSubstr("must start above 0"));
  EXPECT_THAT(Parsed(kInt, "9:1:+1"), HasSubstr("starts above its end"));
}

TEST(ParseValues, RefusesRangesOfTooManyValues) {
  EXPECT_THAT(Parsed(kInt, "1:10001:+1"), HasSubstr("more than 10000 values"));
  EXPECT_EQ(ParseValues(kInt, "1:10000:+1")->size(), 10000U);
  EXPECT_THAT(Parsed(kInt, "1:6000:+1,1:6000:+1"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(Parsed(kWide, "1:9000000000000000000:+1"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(Parsed(kFloat, "1e-9:10:x1.0000001"), HasSubstr("more than 10000 values"));
  EXPECT_THAT(Parsed(kFloat, "0:10:+1e-300"), HasSubstr("more than 10000 values"));
}

TEST(ParseValues, RefusesListsOfTooManyValues) {
  std::string list = "1";
  for (int i = 0; i < 10000; ++i) list += ",1";
  EXPECT_THAT(Parsed(kInt, list), HasSubstr("more than 10000 values"));
}

TEST(ParseValues, SaysHowARangeIsWritten) {
  for (const char* text : {"1:2", "1:2:3", "1:2:x2:3", "1:2:", "1:2:x", ":::"}) {
    EXPECT_THAT(Parsed(kInt, text), HasSubstr("write FIRST:LAST:xFACTOR or FIRST:LAST:+STEP"))
        << text;
  }
}

TEST(ParseValues, NamesTheValueAndTheRangeThatItLeaves) {
  EXPECT_EQ(Parsed(kInt, "1000001"), "--count: 1000001 is outside -100..1000000");
  EXPECT_EQ(Parsed(kFloat, "10.5"), "--scale: 10.5 is outside -10..10");
}

TEST(ParseValues, RefusesWhatIsNoWholeNumber) {
  for (const char* text : {"abc", "1.5", "0x10", "+1", "1 2", "99999999999999999999"}) {
    EXPECT_THAT(Parsed(kInt, text), HasSubstr("is not a whole number")) << text;
  }
}

TEST(ParseValues, RefusesMissingValues) {
  for (const char* text : {"", ",", "1,", "1,,2", " "}) {
    EXPECT_EQ(Parsed(kInt, text), "--count: a value is missing") << text;
  }
}

TEST(ParseValues, TakesSizesInPowersOf1024InAnyCase) {
  EXPECT_EQ(Parsed(kSize, "1K,1kb,1KiB,1kIb"), "1024 1024 1024 1024");
  EXPECT_EQ(Parsed(kSize, "7,7B"), "7 7");
  EXPECT_EQ(Parsed(kSize, "2M,3GiB,1T,1p,1E"),
            "2097152 3221225472 1099511627776 1125899906842624 1152921504606846976");
  EXPECT_EQ(Parsed(kSize, "8:32K:x64"), "8 512 32768");
  EXPECT_EQ(Parsed(kSize, "1K:3K:+1K"), "1024 2048 3072");
}

TEST(ParseValues, RefusesSizesThatOverflow) {
  EXPECT_THAT(Parsed(kSize, "9999999999999MiB"), HasSubstr("is too large a size"));
  EXPECT_THAT(Parsed(kSize, "8E"), HasSubstr("is too large a size"));
  EXPECT_THAT(Parsed(kSize, "99999999999999999999"), HasSubstr("is too large a size"));
}

TEST(ParseValues, RefusesUnknownSuffixes) {
  for (const char* text : {"1X", "1Ki", "1KiBs", "K", "1.5M", "1BB"}) {
    EXPECT_THAT(Parsed(kSize, text), HasSubstr("is not a size")) << text;
  }
}

TEST(ParseValues, RefusesNumbersThatAreNotFinite) {
  for (const char* text : {"nan", "inf", "-inf", "1e999", "1e"}) {
    EXPECT_THAT(Parsed(kFloat, text), HasSubstr("is not a finite number")) << text;
  }
}

TEST(ParseValues, MakesNoDifferenceBetweenTheZeros) { EXPECT_EQ(Parsed(kFloat, "-0,0"), "0 0"); }

TEST(ParseValues, TakesSwitchesInWords) {
  EXPECT_EQ(Parsed(kBool, "true,FALSE,on,0"), "true false true false");
  EXPECT_THAT(Parsed(kBool, "maybe"), HasSubstr("neither true nor false"));
}

TEST(ParseValues, SuggestsANearChoice) {
  EXPECT_EQ(Parsed(kChoice, "blue,red"), "blue red");
  EXPECT_EQ(Parsed(kChoice, "gren"),
            "--hue: \"gren\" is not one of red, green, blue; did you mean \"green\"?");
}

TEST(ParseValues, SplitsStringsOnlyWhereListsAreAllowed) {
  EXPECT_EQ(ParseValues(kString, "a,b")->size(), 2U);
  EXPECT_EQ(Parsed(kNote, "a,b"), "a,b");
  EXPECT_EQ(Parsed(kNote, ""), "");
}

TEST(ParseValues, AllowsOneMeasuringValueOnly) {
  EXPECT_EQ(Parsed(kOnce, "7"), "7");
  EXPECT_EQ(Parsed(kOnce, "1,2"), "--iters: takes one value, not 2");
  EXPECT_EQ(Parsed(kOnce, "1:2:+1"), "--iters: takes one value, not 2");
}

TEST(ParseValues, TakesDurationsInSeconds) {
  EXPECT_EQ(Parsed(kTime, "250ms"), "0.25");
  EXPECT_EQ(Parsed(kTime, "1.5"), "1.5");
  EXPECT_EQ(Parsed(kTime, "2m"), "--min-time: 120 is outside 0..60");
  EXPECT_THAT(Parsed(kTime, "soon"), HasSubstr("--min-time: \"soon\" is not a duration"));
}

TEST(ParseValues, CutsHostileTextInErrors) {
  const std::string message = Parsed(kInt, std::string(100000, '\x01'));
  EXPECT_LT(message.size(), 500U);
  EXPECT_THAT(message, HasSubstr("..."));
}

TEST(ValueText, ParsesBackToTheSameValue) {
  EXPECT_EQ(ValueText(std::int64_t{-5}), "-5");
  EXPECT_EQ(ValueText(0.1), "0.1");
  EXPECT_EQ(ValueText(true), "true");
  EXPECT_EQ(ValueText(std::string("f32")), "f32");
  EXPECT_EQ(ParseValues(kFloat, ValueText(1.0 / 3))->front(), Value(1.0 / 3));
}

}  // namespace
}  // namespace param
