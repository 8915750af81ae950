#include "proto/line/launch.h"

#include <gtest/gtest.h>

namespace param::line {
namespace {

std::string WithoutNewline(std::string line) {
  EXPECT_EQ(line.back(), '\n');
  line.pop_back();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return line;
}

TEST(LaunchTest, AHelloKeepsEveryByte) {
  const LaunchHello hello{.token = "secret",
                          .rank = 3,
                          .env = {"OMPI_X=a\nb\xff", "PMIX_RANK=3"},
                          .host = "",
                          .args = {" orted", "\"1;2\"", ""}};
  const auto read = DecodeLaunchHello(WithoutNewline(Encode(hello)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->token, hello.token);
  EXPECT_EQ(read->rank, 3);
  EXPECT_EQ(read->env, hello.env);
  EXPECT_EQ(read->args, hello.args);
}

TEST(LaunchTest, AnEndIsReadBack) {
  const auto read = DecodeLaunchEnd(WithoutNewline(Encode(LaunchEnd{7, 9, "why\nso"})));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->exit_code, 7);
  EXPECT_EQ(read->signal, 9);
  EXPECT_EQ(read->text, "why\nso");
}

TEST(LaunchTest, GarbageIsAnError) {
  EXPECT_TRUE(
      DecodeLaunchHello(R"({"token": "t", "rank": 0, "env": ["QT1C"], "host": "", "args": []})")
          .ok());  // A=B: what the rest differs from
  for (const char* const line :
       {"", "x", "[]", "{}", R"({"token": 1, "rank": 0, "env": [], "host": "", "args": []})",
        R"({"token": "t", "rank": -2, "env": [], "host": "", "args": []})",
        R"({"token": "t", "rank": 0, "env": [7], "host": "", "args": []})",
        R"({"token": "t", "rank": 0, "env": ["QQ=="], "host": "", "args": []})",      // A
        R"({"token": "t", "rank": 0, "env": ["PUE="], "host": "", "args": []})",      // =A
        R"({"token": "t", "rank": 0, "env": ["QT0AQg=="], "host": "", "args": []})",  // A=\0B
        R"({"token": "t", "rank": 0, "env": "x", "host": "", "args": []})"}) {
    EXPECT_FALSE(DecodeLaunchHello(line).ok()) << line;
  }
  for (const char* const line : {"{}", R"({"exit_code": 256, "signal": 0, "text": ""})",
                                 R"({"exit_code": 0, "signal": -1, "text": ""})"}) {
    EXPECT_FALSE(DecodeLaunchEnd(line).ok()) << line;
  }
}

}  // namespace
}  // namespace param::line
