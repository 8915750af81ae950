#include "proto/daemon/log_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(LogSinkTest, NamesAreParsedAndBadOnesSayWhatIsAllowed) {
  EXPECT_EQ(*ParseLevel("warn"), Level::kWarn);
  EXPECT_EQ(*ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_THAT(std::string(ParseLevel("loud").status().message()),
              HasSubstr("debug, info, warn, error"));
  EXPECT_THAT(std::string(ParseLogFormat("xml").status().message()), HasSubstr("text or json"));
}

TEST(LogSinkTest, TextLinesHaveTimeLevelAndMessage) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, "param-agent", "T", Level::kInfo, "hello a=\"1\""),
            "T info  hello a=\"1\"");
}

TEST(LogSinkTest, JsonLinesEscapeWhatJsonForbids) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, "p", "T", Level::kError, "a\"b\\c\n\x01"),
            "{\"time\": \"T\", \"level\": \"error\", \"program\": \"p\", \"message\": "
            "\"a\\\"b\\\\c\\u000a\\u0001\"}");
}

TEST(LogSinkTest, TheLogWritesToStandardErrorFromItsLevelOn) {
  ::testing::internal::CaptureStderr();
  const Log log = StderrLog("p", Level::kInfo, LogFormat::kText);
  log.Debug("hidden");
  log.Warn("shown", {F("n", 3)});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9:]+\\.[0-9]+Z warn  shown n=\"3\"\n"));
}

}  // namespace
}  // namespace param
