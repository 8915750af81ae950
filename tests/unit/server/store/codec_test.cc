#include "server/store/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/database.h"

namespace param {
namespace {

TEST(CodecTest, LabelsAreCanonicalAndReadBack) {
  EXPECT_EQ(LabelsText({}), "");
  EXPECT_EQ(LabelsText({{"src", "1"}, {"dst", "2"}}), "dst=2,src=1");
  const line::Labels odd = {{"a=b", "1,2"}, {"100%", ""}, {"", "x"}};
  EXPECT_EQ(*ParseLabels(LabelsText(odd)), odd);
  EXPECT_EQ(*ParseLabels(""), line::Labels());
}

TEST(CodecTest, DamagedTextIsDataLoss) {
  EXPECT_EQ(ParseLabels("abc").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseLabels("a=%4").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseLabels("a=%zz").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseSpec("{").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseSpec("{\"benchmark\": 1}").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseFailure("[1]").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseRanks("[1]").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseNames("{}").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseMap("[]").status().code(), absl::StatusCode::kDataLoss);
}

TEST(CodecTest, TextThatIsNotUtf8DoesNotFail) {
  EXPECT_EQ(ParseNames(NamesJson({"a\xff"}))->size(), 1U);
}

TEST(CodecTest, NoFailureIsAnEmptyObject) {
  EXPECT_EQ(FailureJson({}), "{}");
  EXPECT_EQ(*ParseFailure("{}"), Failure());
}

TEST(CodecTest, DamagedSamplesAreDataLoss) {
  const std::string packed = *PackDoubles({1, 2, 3});
  EXPECT_EQ(*UnpackDoubles(packed, 3), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(UnpackDoubles(packed, 2).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(UnpackDoubles(packed, -1).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(UnpackDoubles(packed.substr(0, 10), 3).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(UnpackDoubles("", 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST(DatabaseTest, StatementsAreFoundByName) {
  const EmbeddedFile file = {
      "sql/queries/x.sql", "x.sql",
      "-- A comment.\n-- name: one\nSELECT 1;\n\n-- name: two\nSELECT\n2;\n"};
  const auto statements = NamedStatements({&file, 1});
  ASSERT_EQ(statements.status(), absl::OkStatus());
  EXPECT_EQ(statements->size(), 2U);
  EXPECT_EQ(statements->at("one"), "SELECT 1;\n\n");
  const EmbeddedFile twice = {"x.sql", "x.sql", "-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;\n"};
  EXPECT_EQ(NamedStatements({&twice, 1}).status().code(), absl::StatusCode::kInternal);
}

TEST(DatabaseTest, AnUnknownStatementIsAnError) {
  const auto db = Connection::Open(":memory:");
  ASSERT_EQ(db.status(), absl::OkStatus());
  EXPECT_EQ(Call(**db, "nothing").Run(), absl::InternalError("no statement nothing"));
}

}  // namespace
}  // namespace param
