#include "proto/catalog/problem_sets.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseProblemSet, SeparatesSourceHeaderAndRows) {
  const ProblemTable table =
      *ParseProblemSet({"x", "# From a paper.\n# MIT.\napplication,m\nlayer,8\n\nother,9\n"});
  EXPECT_EQ(table.source, "From a paper. MIT.");
  EXPECT_THAT(table.names, ElementsAre("m"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1].application, "other");
  EXPECT_EQ(table.rows[1].params.at("m"), "9");
}

TEST(ParseProblemSet, UnderstandsQuotes) {
  const ProblemTable table = *ParseProblemSet({"x", "application,m\n\"a \"\"b\"\", c\",8\n"});
  EXPECT_EQ(table.rows[0].application, "a \"b\", c");
}

TEST(ParseProblemSet, NamesTheLineThatDoesNotFit) {
  EXPECT_THAT(std::string(ParseProblemSet({"x", "m,n\n1\n"}).status().message()),
              HasSubstr("problem set x line 2"));
  EXPECT_FALSE(ParseProblemSet({"x", "m,n\n\"1,2\n"}).ok());
}

TEST(ProblemSetsOf, IsEmptyForAnUnknownBenchmark) { EXPECT_TRUE(ProblemSetsOf("none").empty()); }

}  // namespace
}  // namespace param
