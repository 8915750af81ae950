#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/line/messages.h"

namespace param::line {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Lines(LineReader& reader) {
  std::vector<std::string> lines;
  std::string line;
  while (reader.Next(&line)) lines.push_back(line);
  return lines;
}

TEST(LineReader, GivesCompleteLinesOnly) {
  LineReader reader;
  EXPECT_TRUE(reader.Feed("one\ntwo\nthr").ok());
  EXPECT_THAT(Lines(reader), ElementsAre("one", "two"));
  EXPECT_TRUE(reader.Feed("ee\n").ok());
  EXPECT_THAT(Lines(reader), ElementsAre("three"));
  EXPECT_THAT(Lines(reader), IsEmpty());
}

TEST(LineReader, TakesPiecesOfOneByte) {
  LineReader reader;
  std::vector<std::string> all;
  for (const char c : std::string("ab\n\ncd\n")) {
    EXPECT_TRUE(reader.Feed(absl::string_view(&c, 1)).ok());
    for (const std::string& line : Lines(reader)) all.push_back(line);
  }
  EXPECT_THAT(all, ElementsAre("ab", "", "cd"));
}

TEST(LineReader, TakesALineOfTheLimit) {
  LineReader reader;
  const std::string longest(kMaxLineBytes, 'x');
  EXPECT_TRUE(reader.Feed(longest).ok());
  EXPECT_TRUE(reader.Feed("\nnext\n").ok());
  EXPECT_THAT(Lines(reader), ElementsAre(longest, "next"));
}

TEST(LineReader, DiesOfALineBeyondTheLimitAfterGivingTheOthers) {
  LineReader reader(4);
  EXPECT_TRUE(reader.Feed("1234\n12").ok());
  const absl::Status status = reader.Feed("345\nok\n");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Lines(reader), ElementsAre("1234"));
  EXPECT_FALSE(reader.Feed("ok\n").ok());
  EXPECT_THAT(Lines(reader), IsEmpty());
}

TEST(LineReader, DiesOfALongLineInOnePiece) {
  LineReader reader(4);
  EXPECT_FALSE(reader.Feed("ok\n12345\nok\n").ok());
  EXPECT_THAT(Lines(reader), ElementsAre("ok"));
}

TEST(LineReader, KeepsItsPlaceOverManyRounds) {
  LineReader reader;
  int seen = 0;
  for (int round = 0; round < 1000; ++round) {
    EXPECT_TRUE(reader.Feed("first line\nsecond").ok());
    seen += static_cast<int>(Lines(reader).size());
    EXPECT_TRUE(reader.Feed(" half\n").ok());
    const std::vector<std::string> rest = Lines(reader);
    ASSERT_THAT(rest, ElementsAre("second half"));
    seen += 1;
  }
  EXPECT_EQ(seen, 2000);
}

}  // namespace
}  // namespace param::line
