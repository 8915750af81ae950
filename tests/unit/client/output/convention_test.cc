#include "client/output/convention.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/output/collective_table.h"
#include "tests/unit/client/collective_samples.h"
#include "tests/unit/client/golden.h"

namespace param {
namespace {

std::string Rendered(Convention convention, const v1::GetJobResponse& response, bool full = false) {
  const absl::StatusOr<ConventionText> text = RenderConvention(convention, response, full);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? text->text : "";
}

absl::Status Refused(Convention convention, const v1::GetJobResponse& response) {
  return RenderConvention(convention, response, false).status();
}

// Both placements of all_reduce, all_gather out of place alone, and a broadcast with a root.
v1::GetJobResponse MixedJob() {
  return CollectiveJob(
      {CollectiveCase(0, {{"size", "8"}}, 10e-6),
       CollectiveCase(1, {{"size", "8"}, {"in_place", "true"}}, 9e-6),
       CollectiveCase(2, {{"size", "16M"}}, 9.125e-3),
       CollectiveCase(3, {{"size", "16M"}, {"in_place", "true"}}, 0.25),
       CollectiveCase(4, {{"op", "all_gather"}, {"size", "1000"}, {"dtype", "bf16"}}, 20e-6),
       CollectiveCase(5, {{"op", "broadcast"}, {"size", "1M"}, {"root", "2"}}, 123.4e-6)});
}

TEST(NcclTests, IsTheGoldenOne) {
  ExpectGolden("tests/golden/conventions/nccl_tests.txt",
               Rendered(Convention::kNcclTests, MixedJob()));
}

TEST(NcclTests, IsReadByTheUsualExpression) {
  // What dashboards use: all rows that begin with a number, split at blanks.
  std::vector<std::vector<std::string>> rows;
  const std::string text = Rendered(Convention::kNcclTests, MixedJob());
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (std::regex_search(line, std::regex(R"(^\s*\d)"))) {
      rows.push_back(absl::StrSplit(line, ' ', absl::SkipEmpty()));
    }
  }
  ASSERT_EQ(rows.size(), 4u);
  for (const auto& row : rows) EXPECT_EQ(row.size(), 13u);
  // The mean of the ranks' means: 10 us * (1 + 1.5 / 16), 8 B.
  EXPECT_EQ(rows[0], (std::vector<std::string>{"8", "2", "float", "sum", "-1", "10.94", "0.00",
                                               "0.00", "0", "9.84", "0.00", "0.00", "0"}));
  EXPECT_EQ(rows[1][0], "16777216");
  EXPECT_EQ(rows[1][5], "9980.47");
  EXPECT_EQ(rows[1][6], "1.68");  // 16 MiB / 9980 us
  EXPECT_EQ(rows[1][7], "2.52");  // * 2 * 3 / 4
  EXPECT_EQ(rows[1][9], "273438");
  // all_gather: the size is rounded to whole shares, the count is one rank's.
  EXPECT_EQ((std::vector<std::string>{rows[2].begin(), rows[2].begin() + 5}),
            (std::vector<std::string>{"1000", "125", "bfloat16", "none", "-1"}));
  EXPECT_EQ(rows[2][9], "N/A");
  EXPECT_EQ(rows[3][4], "2");
}

TEST(NcclTests, FooterCountsWrongCases) {
  v1::GetJobResponse response = MixedJob();
  response.mutable_cases(0)->set_status(v1::WRONG);
  response.mutable_cases(4)->set_status(v1::WRONG);
  response.mutable_cases(4)->mutable_ranks(0)->set_reason(
      "rank 0: element 5 is 1, not 2; 3 of 500 elements are wrong");
  response.mutable_cases(4)->mutable_ranks(2)->set_reason("4 of 500 elements are wrong");
  const std::string text = Rendered(Convention::kNcclTests, response);
  EXPECT_NE(text.find("# Out of bounds values : 1 FAILED\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# Out of bounds values : 7 FAILED\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# Out of bounds values : 0 OK\n"), std::string::npos) << text;
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(R"(# Avg bus bandwidth\s+: ([0-9.e-]+))")));
}

TEST(NcclTests, ACaseWithoutTimesHasNoRowButANote) {
  v1::GetJobResponse response = MixedJob();
  v1::CaseResult* skipped = response.mutable_cases(4);
  skipped->set_status(v1::SKIPPED);
  skipped->set_reason("too small");
  skipped->clear_measurements();
  const auto text = RenderConvention(Convention::kNcclTests, response, false);
  ASSERT_TRUE(text.ok());
  ASSERT_EQ(text->notes.size(), 1u);
  EXPECT_EQ(text->notes[0], "no row for case 4 (all_gather, 1000 B): SKIPPED: too small");
}

TEST(Param, IsTheGoldenOne) {
  ExpectGolden(
      "tests/golden/conventions/param.txt",
      Rendered(Convention::kParam,
               CollectiveJob({CollectiveCase(0, {{"size", "8"}}, 10e-6),
                              CollectiveCase(1, {{"size", "16M"}}, 9e-3),
                              CollectiveCase(2, {{"op", "all_to_all"}, {"size", "1M"}}, 1e-3),
                              CollectiveCase(3, {{"op", "gather"}, {"size", "1M"}}, 1e-3),
                              CollectiveCase(4, {{"op", "multicast"}, {"size", "1M"}}, 1e-3)})));
}

TEST(Param, RowsAreReadByAnExpression) {
  const std::string text = Rendered(Convention::kParam, SweepJob());
  const std::regex row(
      R"(COMMS-RES-(\w+)-(\w+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+))");
  std::vector<std::smatch> rows;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) {
    rows.push_back(*it);
  }
  ASSERT_EQ(rows.size(), 3u) << text;
  EXPECT_EQ(rows[2][1], "all_reduce");
  EXPECT_EQ(rows[2][2], "float32");
  EXPECT_EQ(rows[2][3], "16777216");
  EXPECT_EQ(rows[2][4], "4194304");
  EXPECT_EQ(rows[2][5], "9843.7");  // p50 over 9, 9.5625, 10.125, 10.6875 ms
  EXPECT_EQ(rows[2][8], "9000.0");
  EXPECT_EQ(rows[2][9], "10687.5");
  EXPECT_EQ(rows[2][10], "1.704");
  EXPECT_EQ(rows[2][11], "2.557");
}

TEST(Osu, IsTheGoldenOne) {
  const v1::GetJobResponse response =
      CollectiveJob({CollectiveCase(0, {{"op", "all_to_all"}, {"size", "64"}}, 10e-6),
                     CollectiveCase(1, {{"op", "all_to_all"}, {"size", "1M"}}, 1e-3),
                     CollectiveCase(2, {{"op", "barrier"}}, 3e-6)});
  ExpectGolden("tests/golden/conventions/osu.txt", Rendered(Convention::kOsu, response) + "----\n" +
                                                       Rendered(Convention::kOsu, response, true));
}

TEST(Osu, SizeIsBytesPerRankAndColumnsAreAtTheirPlaces) {
  const std::string text = Rendered(
      Convention::kOsu,
      CollectiveJob({CollectiveCase(0, {{"op", "all_gather"}, {"size", "64"}}, 10e-6)}), true);
  EXPECT_NE(
      text.find("\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
                "16                     10.94             10.00             11.88          20\n"),
      std::string::npos)
      << text;
}

TEST(Osu, TheSizeOfReduceScatterIsTheWholeInput) {
  const std::string text = Rendered(
      Convention::kOsu,
      CollectiveJob({CollectiveCase(0, {{"op", "reduce_scatter"}, {"size", "64"}}, 10e-6)}));
  EXPECT_NE(text.find("\n64                     10.94\n"), std::string::npos) << text;
}

TEST(Conventions, NamesAreKnown) {
  EXPECT_EQ(ConventionNames(), (std::vector<std::string>{"param", "nccl-tests", "osu"}));
  EXPECT_EQ(*ConventionFromName("osu"), Convention::kOsu);
  EXPECT_NE(std::string(ConventionFromName("nccl-test").status().message())
                .find("did you mean \"nccl-tests\""),
            std::string::npos);
}

TEST(Conventions, RefuseAnotherBenchmark) {
  const absl::Status status = Refused(Convention::kOsu, SampleResponse(v1::SUCCEEDED, v1::PASSED));
  EXPECT_EQ(status.message(), "--convention osu is for benchmark \"collective\", not for \"gemm\"");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Conventions, RefuseWhatTheToolHasNoWordFor) {
  const auto job = [](const GivenParams& given) {
    return CollectiveJob({CollectiveCase(0, given, 1e-3)});
  };
  EXPECT_NE(std::string(Refused(Convention::kNcclTests, job({{"op", "barrier"}})).message())
                .find("it has no operation \"barrier\"; it has all_reduce, all_gather"),
            std::string::npos);
  EXPECT_FALSE(Refused(Convention::kParam, job({{"redop", "max"}})).ok());
  EXPECT_FALSE(Refused(Convention::kOsu, job({{"dtype", "bf16"}})).ok());
  EXPECT_FALSE(Refused(Convention::kOsu, job({{"redop", "avg"}})).ok());
  EXPECT_TRUE(Refused(Convention::kNcclTests, job({{"redop", "avg"}})).ok());
}

TEST(Conventions, RefuseCasesThatDifferWithoutAColumn) {
  const v1::GetJobResponse response =
      CollectiveJob({CollectiveCase(0, {{"size", "1K"}}, 1e-3),
                     CollectiveCase(1, {{"size", "1K"}, {"buffers", "4"}}, 1e-3)});
  for (const Convention convention :
       {Convention::kParam, Convention::kNcclTests, Convention::kOsu}) {
    const absl::Status status = Refused(convention, response);
    EXPECT_NE(std::string(status.message()).find("the cases differ in \"buffers\""),
              std::string::npos)
        << status;
  }
}

TEST(CollectiveTables, AreGroupedByOperationAndType) {
  const auto tables = CollectiveTables(MixedJob());
  ASSERT_TRUE(tables.ok()) << tables.status();
  std::vector<std::string> titles;
  for (const CollectiveTable& one : *tables) titles.push_back(one.title);
  EXPECT_EQ(titles,
            (std::vector<std::string>{
                "all_reduce f32 root=0 out of place", "all_reduce f32 root=0 in place",
                "all_gather bf16 root=0 out of place", "broadcast f32 root=2 out of place"}));
}

TEST(CollectiveTables, OfAnotherBenchmarkAreAnError) {
  EXPECT_FALSE(CollectiveTables(SampleResponse(v1::SUCCEEDED, v1::PASSED)).ok());
}

}  // namespace
}  // namespace param
