#include "proto/base/text.h"

#include <cstdlib>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace param {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(FormatDouble, ReadsBackAsTheSameNumber) {
  for (const double value : {123456789.125, 0.1, 1e-300, 5e-324, -2.5, 1.0 / 3, 1e22}) {
    EXPECT_EQ(std::strtod(FormatDouble(value).c_str(), nullptr), value);
  }
}

TEST(FormatDouble, IsShort) {
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(1024), "1024");
}

TEST(FormatDouble, NamesWhatIsNotFinite) {
  EXPECT_EQ(FormatDouble(kInfinity), "inf");
  EXPECT_EQ(FormatDouble(-kInfinity), "-inf");
  EXPECT_EQ(FormatDouble(kNan), "nan");
  EXPECT_EQ(FormatDouble(-kNan), "nan");
}

TEST(FormatSi, GivesFourDigitsAndAPrefix) {
  EXPECT_EQ(FormatSi(1.2341e12, "FLOP/s"), "1.234 TFLOP/s");
  EXPECT_EQ(FormatSi(234.94e9, "B/s"), "234.9 GB/s");
  EXPECT_EQ(FormatSi(12.3e-6, "s"), "12.30 us");
  EXPECT_EQ(FormatSi(0.5, "s"), "500.0 ms");
}

TEST(FormatSi, RoundsUpIntoTheNextPrefix) {
  EXPECT_EQ(FormatSi(999.96e9, "FLOP/s"), "1.000 TFLOP/s");
  EXPECT_EQ(FormatSi(999.94e9, "FLOP/s"), "999.9 GFLOP/s");
}

TEST(FormatSi, ScalesTimeOnlyDown) { EXPECT_EQ(FormatSi(7200, "s"), "7200 s"); }

TEST(FormatSi, ShowsDashesForWhatIsNotFinite) {
  EXPECT_EQ(FormatSi(kNan, "s"), "--");
  EXPECT_EQ(FormatSi(kInfinity, "B/s"), "--");
}

TEST(FormatSi, LeavesRatiosWithoutUnitOrPrefix) { EXPECT_EQ(FormatSi(0.9811, "1"), "0.981"); }

TEST(FormatSi, ShowsZeroAndVerySmallNumbers) {
  EXPECT_EQ(FormatSi(0, "s"), "0 s");
  EXPECT_EQ(FormatSi(2e-12, "s"), "2e-12 s");
}

TEST(FormatBytes, UsesPowersOf1024) {
  EXPECT_EQ(FormatBytes(64), "64 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(std::int64_t{2} << 30), "2 GiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<std::int64_t>::max()), "8 EiB");
}

TEST(FormatBytes, RoundsUpIntoTheNextUnit) { EXPECT_EQ(FormatBytes((1 << 20) - 1), "1 MiB"); }

TEST(FormatBytes, KeepsZerosBeforeThePoint) { EXPECT_EQ(FormatBytes(100 << 10), "100 KiB"); }

TEST(ParseDuration, TakesUnitsAndBareSeconds) {
  EXPECT_EQ(*ParseDuration("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("1m30s"), absl::Seconds(90));
  EXPECT_EQ(*ParseDuration("1.5"), absl::Milliseconds(1500));
  EXPECT_EQ(*ParseDuration(" 2h "), absl::Hours(2));
}

TEST(ParseDuration, SaysWhatWasWrong) {
  EXPECT_THAT(ParseDuration("soon").status().message(), HasSubstr("\"soon\" is not a duration"));
  EXPECT_THAT(ParseDuration("-1s").status().message(), HasSubstr("negative"));
  EXPECT_FALSE(ParseDuration("").ok());
  EXPECT_FALSE(ParseDuration("nan").ok());
}

TEST(ParseDuration, RefusesWhatNeverEnds) {
  for (const char* text : {"1e300", "inf", "-inf", "99999999999999999999h", "1e999"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(NearestName, FindsATypo) { EXPECT_EQ(NearestName("dtyp", {"m", "dtype", "seed"}), "dtype"); }

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(NearestName("velocity", {"m", "dtype"}), "");
  EXPECT_EQ(NearestName("x", {"m", "n"}), "");
  EXPECT_EQ(NearestName("", {"m"}), "");
}

TEST(NearestName, DoesNotSearchForEndlessWords) {
  EXPECT_EQ(NearestName(std::string(1 << 20, 'a'), {"aa"}), "");
}

TEST(DidYouMean, IsAClauseOrNothing) {
  EXPECT_EQ(DidYouMean("fp32", {"f64", "f32"}), "; did you mean \"f32\"?");
  EXPECT_EQ(DidYouMean("velocity", {"f64"}), "");
}

TEST(ValidUtf8, KeepsCharactersAndReplacesTheRest) {
  const std::string good = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80z";
  EXPECT_EQ(ValidUtf8(good), good);
  EXPECT_EQ(ValidUtf8(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(ValidUtf8("a\xFFz"), "a?z");
  EXPECT_EQ(ValidUtf8("\xE2\x82z"), "??z");     // cut
  EXPECT_EQ(ValidUtf8("\xC0\xAF"), "??");       // longer than needed
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "???");  // a surrogate
  EXPECT_EQ(ValidUtf8("\xF4\x90\x80\x80"), "????");
  EXPECT_EQ(ValidUtf8("\x80"), "?");
  EXPECT_EQ(ValidUtf8(good, 2), "a");  // not inside a character
  EXPECT_EQ(ValidUtf8(good, 3), "a\xC3\xA4");
  EXPECT_EQ(ValidUtf8("abc", 0), "");
}

}  // namespace
}  // namespace param
