// What holds for every benchmark of the catalogue.

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/catalog/cases.h"
#include "proto/catalog/derived.h"
#include "proto/catalog/problem_sets.h"
#include "proto/catalog/spec.h"

namespace param {
namespace {

using ::testing::HasSubstr;

bool IsIdentifier(absl::string_view name) {
  if (name.empty() || !absl::ascii_islower(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    if (!absl::ascii_islower(static_cast<unsigned char>(c)) &&
        !absl::ascii_isdigit(static_cast<unsigned char>(c)) && c != '_') {
      return false;
    }
  }
  return true;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Compares with the checked-in file; with PARAM_UPDATE_GOLDEN=1 it writes the file.
void ExpectGolden(const std::string& path, const std::string& text) {
  const std::string full = absl::StrCat(PARAM_SOURCE_DIR, "/", path);
  if (const char* update = std::getenv("PARAM_UPDATE_GOLDEN");
      update != nullptr && *update == '1') {
    std::ofstream(full, std::ios::binary) << text;
  }
  EXPECT_EQ(ReadFile(full), text) << path << ": run this test with PARAM_UPDATE_GOLDEN=1";
}

TEST(FindBenchmark, SuggestsForATypo) {
  const absl::Status status = FindBenchmark("gem").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no benchmark \"gem\"; did you mean \"gemm\"?");
}

TEST(Catalogue, IdsAreUniqueIdentifiers) {
  std::set<std::string> ids;
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    EXPECT_TRUE(IsIdentifier(bench->id)) << bench->id;
    EXPECT_TRUE(ids.insert(std::string(bench->id)).second) << bench->id;
    EXPECT_GE(bench->version, 1);
    EXPECT_EQ(*FindBenchmark(bench->id), bench);
  }
}

TEST(Catalogue, ColumnsOfTheViewHaveDifferentNames) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    std::set<std::string> names = {"job_id",  "case_index", "case_id",     "status",
                                   "reason",  "finished",   "nodes",       "ranks",
                                   "backend", "set_row",    "application", "set"};
    for (const ParamSpec* spec : AllParams(*bench)) {
      EXPECT_TRUE(IsIdentifier(spec->name)) << spec->name;
      EXPECT_TRUE(names.insert(std::string(spec->name)).second) << bench->id << " " << spec->name;
    }
    for (const MetricSpec& metric : bench->metrics) {
      EXPECT_TRUE(IsIdentifier(metric.name)) << metric.name;
      EXPECT_TRUE(names.insert(std::string(metric.name)).second) << bench->id << " " << metric.name;
    }
  }
}

TEST(Catalogue, DefaultsAreSingleValidValues) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    for (const ParamSpec* spec : AllParams(*bench)) {
      const absl::StatusOr<std::vector<Value>> values = ParseValues(*spec, spec->fallback);
      ASSERT_TRUE(values.ok()) << spec->name << ": " << values.status();
      EXPECT_EQ(values->size(), 1U) << spec->name;
      EXPECT_LE(spec->min, spec->max) << spec->name;
      EXPECT_EQ(spec->type == ParamType::kChoice, !spec->choices.empty()) << spec->name;
    }
  }
}

TEST(Catalogue, HelpIsOneClauseWithoutAFullStop) {
  const auto check = [](absl::string_view name, absl::string_view help) {
    EXPECT_FALSE(help.empty()) << name;
    EXPECT_FALSE(absl::EndsWith(help, ".")) << name;
    EXPECT_FALSE(absl::StrContains(help, "\n")) << name;
  };
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    check(bench->id, bench->summary);
    for (const ParamSpec* spec : AllParams(*bench)) check(spec->name, spec->help);
    for (const MetricSpec& metric : bench->metrics) check(metric.name, metric.help);
  }
}

TEST(Catalogue, EveryBenchmarkSamplesTimeInSeconds) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    ASSERT_FALSE(bench->metrics.empty());
    EXPECT_EQ(bench->metrics[0].name, "time");
    EXPECT_EQ(bench->metrics[0].unit, "s");
    EXPECT_EQ(bench->metrics[0].derive, nullptr);
  }
}

TEST(Catalogue, EveryProblemSetExpandsWithAKnownSource) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    for (const ProblemSet& set : bench->sets) {
      const absl::StatusOr<ProblemTable> table = ParseProblemSet(set);
      ASSERT_TRUE(table.ok()) << table.status();
      EXPECT_FALSE(table->source.empty()) << set.name;
      const auto cases = ExpandCases(*bench, {{"set", std::string(set.name)}});
      ASSERT_TRUE(cases.ok()) << cases.status();
      EXPECT_EQ(cases->size(), table->rows.size()) << set.name;
      for (const Case& one : *cases) {
        EXPECT_TRUE(bench->footprint(one.params, 1).ok()) << one.set_row;
      }
    }
  }
}

TEST(Catalogue, HelpNamesEveryParameterAndStartsWithExamples) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    const std::string help = HelpText(*bench);
    EXPECT_LT(help.find("Examples:"), help.find("Parameters"));
    EXPECT_FALSE(bench->examples.empty());
    for (const ParamSpec* spec : AllParams(*bench)) {
      EXPECT_THAT(help, HasSubstr(absl::StrCat("  ", FlagName(spec->name))));
    }
    for (const ProblemSet& set : bench->sets) {
      EXPECT_THAT(help, HasSubstr(std::string(set.name)));
    }
  }
}

TEST(Catalogue, DocumentationPagesAreUpToDate) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    ExpectGolden(absl::StrCat("client/docs/benchmarks/", bench->id, ".md"), MarkdownPage(*bench));
  }
}

TEST(Catalogue, HelpTextsAreUpToDate) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    ExpectGolden(absl::StrCat("tests/golden/catalog/", bench->id, ".help.txt"), HelpText(*bench));
  }
}

TEST(Catalogue, ViewsAreUpToDate) {
  for (const BenchmarkSpec* bench : AllBenchmarks()) {
    ExpectGolden(absl::StrCat("tests/golden/catalog/result_", bench->id, ".sql"),
                 absl::StrCat(ResultViewSql(*bench), ";\n"));
  }
}

TEST(FlagName, UsesHyphens) { EXPECT_EQ(FlagName("min_time"), "--min-time"); }

}  // namespace
}  // namespace param
