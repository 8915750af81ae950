#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cmd/command.h"
#include "client/cmd/help.h"
#include "client/cmd/parse.h"
#include "tests/unit/client/cmd/harness.h"
#include "tests/unit/client/golden.h"

namespace param {
namespace {

TEST(Help, OfTheProgramIsTheGoldenOne) {
  const Ran ran = Harness().Run({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  ExpectGolden("tests/golden/cli/help.txt", ran.out);
}

TEST(Help, OfSubmitWithABenchmarkIsTheGoldenOne) {
  ExpectGolden("tests/golden/cli/help_submit_gemm.txt",
               Harness().Run({"submit", "gemm", "--help"}).out);
}

TEST(Help, ReferencePageIsUpToDate) { ExpectGolden("client/docs/cli.md", MarkdownReference()); }

TEST(Help, HasExamplesFirstAndExitCodesLast) {
  for (const Command& command : AllCommands()) {
    const std::string help = CommandHelp(command, nullptr);
    ASSERT_FALSE(command.examples.empty()) << CommandLine(command.path);
    EXPECT_LT(help.find("Examples:"), help.find("Usage:")) << CommandLine(command.path);
    EXPECT_GT(help.find("Exit codes:"), help.find("Flags of every command:"));
  }
}

TEST(Help, IsReachedInThreeWays) {
  const std::string help = Harness().Run({"job", "list", "--help"}).out;
  EXPECT_EQ(Harness().Run({"help", "job", "list"}).out, help);
  EXPECT_EQ(Harness().Run({"-h", "job", "list"}).out, help);
  EXPECT_TRUE(Contains(Harness().Run({"job", "--help"}).out, "job cancel JOB"));
}

TEST(Help, ExamplesParse) {
  for (const Command& command : AllCommands()) {
    for (const std::string& example : command.examples) {
      EXPECT_TRUE(Contains(example, CommandLine(command.path))) << example;
    }
  }
}

struct BadLine {
  std::vector<std::string> args;
  std::string error;
};

TEST(BadUsage, ExitsWithTwoAndSuggests) {
  const BadLine lines[] = {
      {{}, "a command is missing"},
      {{"job"}, "a verb is missing after \"paramctl job\""},
      {{"sumbit", "gemm"}, "unknown command \"sumbit\"; did you mean \"submit\"?"},
      {{"job", "lst"}, "unknown command \"lst\" of job; did you mean \"list\"?"},
      {{"submit"}, "an argument is missing: paramctl submit BENCH"},
      {{"submit", "gem"}, "did you mean \"gemm\"?"},
      {{"submit", "--nodes", "4", "gem"}, "did you mean \"gemm\"?"},
      {{"submit", "gemm", "--nods", "4"}, "unknown flag --nods; did you mean \"--nodes\"?"},
      {{"submit", "gemm", "--nods=4"}, "unknown flag --nods; did you mean \"--nodes\"?"},
      {{"submit", "gemm", "--zzzzzz"}, "unknown flag --zzzzzz; see paramctl submit --help"},
      {{"submit", "gemm", "--dtype", "fp32"}, "did you mean \"f32\"?"},
      {{"submit", "gemm", "--set", "smokee"}, "did you mean \"smoke\"?"},
      {{"submit", "gemm", "--m", "0"}, "--m"},
      {{"submit", "gemm", "--m", "1", "--m", "2"}, "--m is given twice"},
      {{"submit", "gemm", "--nodes", "0"}, "--nodes: 0 is outside 1..1000000"},
      {{"submit", "gemm", "--nodes", "four"}, "--nodes: \"four\" is not a whole number"},
      {{"submit", "gemm", "--selector", "rack"}, "--selector: \"rack\" is not KEY=VALUE"},
      {{"submit", "gemm", "--timeout", "soon"}, "--timeout: \"soon\" is not a duration"},
      {{"submit", "gemm", "--deadline", "spawn=x"}, "--deadline: spawn"},
      {{"submit", "gemm", "--deadline", "warmpu=5s"}, "did you mean \"warmup\"?"},
      {{"submit", "gemm", "--inject", "flip"}, "--inject"},
      {{"submit", "gemm", "--fake-script", "/does/not/exist"}, "cannot read /does/not/exist"},
      {{"submit", "gemm", "extra"}, "unexpected argument \"extra\""},
      {{"job", "list", "-o", "yaml"}, "--output: \"yaml\" is not one of text, wide, json"},
      {{"job", "list", "--state", "RUNING"}, "did you mean \"RUNNING\"?"},
      {{"bench", "show", "gem"}, "did you mean \"gemm\"?"},
      {{"completion", "csh"}, "is not one of bash, zsh, fish"},
      {{"node", "label", "n1", "rack"}, "neither KEY=VALUE nor KEY-"},
      {{"up", "--nodes", "0"}, "--nodes: 0 is outside"},
  };
  for (const BadLine& line : lines) {
    const Ran ran = Harness().Run(line.args);
    const std::string text = absl::StrJoin(line.args, " ");
    EXPECT_EQ(ran.code, 2) << text;
    EXPECT_EQ(ran.out, "") << text;
    EXPECT_TRUE(Contains(ran.err, line.error)) << text << ": " << ran.err;
    // The error is the last line.
    EXPECT_EQ(ran.err.rfind("error: "), ran.err.rfind('\n', ran.err.size() - 2) + 1) << ran.err;
  }
}

TEST(Arguments, MayStandInAnyOrderAndForm) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"bench", "list", "-o", "csv"},
                                             {"-o", "csv", "bench", "list"},
                                             {"--output=csv", "bench", "list"},
                                             {"-ocsv", "bench", "list"},
                                             {"bench", "-o", "csv", "list"}}) {
    const Ran ran = Harness().Run(args);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(Contains(ran.out, "id,version,summary,sets\n")) << absl::StrJoin(args, " ");
  }
}

TEST(Arguments, TakeNegativeNumbersAndNegatedSwitches) {
  const Command& submit = AllCommands().front();
  std::vector<Flag> flags = BenchmarkFlags(**FindBenchmark("gemm"));
  const absl::StatusOr<Arguments> args = ParseArguments(
      submit, flags,
      {"gemm", "--alpha", "-1.5", "--no-check", "--trans-a", "--trans-b=true,false"});
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->Text("alpha"), "-1.5");
  EXPECT_EQ(args->Text("check"), "false");
  EXPECT_EQ(args->Text("trans-a"), "true");
  EXPECT_EQ(args->Text("trans-b"), "true,false");
  EXPECT_EQ(args->words(), std::vector<std::string>{"gemm"});
}

TEST(Unreachable, ExitsWithThreeAndSaysWhatToDo) {
  Harness harness;
  harness.env = {{"PARAM_SERVER", "127.0.0.1:1"}};
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"submit", "gemm"},
                                             {"job", "list"},
                                             {"job", "watch", "j-1"},
                                             {"node", "show", "n1"},
                                             {"result", "list"},
                                             {"job", "cancel", "j-1"}}) {
    const Ran ran = harness.Run(args);
    EXPECT_EQ(ran.code, 3) << absl::StrJoin(args, " ");
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(Contains(ran.err, "no coordinator answers at 127.0.0.1:1 (from PARAM_SERVER)"));
    EXPECT_TRUE(Contains(ran.err, "paramctl up"));
  }
}

TEST(Version, NeedsNoCoordinator) {
  const Ran ran = Harness().Run({"version", "--server", "127.0.0.1:1"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(Contains(ran.out, "not reachable at 127.0.0.1:1"));
}

TEST(Bench, ListsTheCatalogueAsJson) {
  const Ran ran = Harness().Run({"bench", "list", "-o", "json"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.rfind("{\n  \"benchmarks\": [\n    {\n      \"id\": \"gemm\"", 0), 0u)
      << ran.out.substr(0, 100);
}

TEST(Completion, ForBashIsValidAndCompletes) {
  const std::string script = Harness().Run({"completion", "bash"}).out;
  const std::string path = testing::TempDir() + "/paramctl_completion.bash";
  std::ofstream(path) << script
                      << "\nCOMP_WORDS=(paramctl job \"\"); COMP_CWORD=2; _paramctl\n"
                         "echo \"${COMPREPLY[*]}\"\n"
                         "COMP_WORDS=(paramctl submit gemm --dtype b); COMP_CWORD=4; _paramctl\n"
                         "echo \"${COMPREPLY[*]}\"\n"
                         "COMP_WORDS=(paramctl submit gemm --min); COMP_CWORD=3; _paramctl\n"
                         "echo \"${COMPREPLY[*]}\"\n";
  FILE* pipe = popen(absl::StrCat("bash ", path, " 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output(1000, '\0');
  output.resize(fread(output.data(), 1, output.size(), pipe));
  EXPECT_EQ(pclose(pipe), 0) << output;
  EXPECT_TRUE(Contains(output, "list show watch cancel logs results")) << output;
  EXPECT_TRUE(Contains(output, "\nbf16\n")) << output;
  EXPECT_TRUE(Contains(output, "\n--min-time\n")) << output;
}

TEST(Completion, ForFishAndZshNamesCommandsAndFlags) {
  const std::string fish = Harness().Run({"completion", "fish"}).out;
  EXPECT_TRUE(Contains(fish, "-a cancel"));
  EXPECT_TRUE(Contains(fish, "-l min-time"));
  EXPECT_TRUE(Contains(Harness().Run({"completion", "zsh"}).out, "bashcompinit"));
}

// Flags of one command line; `bench` null for all commands but submit.
std::vector<std::string> FlagNames(const Command& command, const BenchmarkSpec* bench) {
  std::vector<std::string> names;
  for (const Flag& flag : command.flags) names.push_back(flag.name);
  for (const Flag& flag : GlobalFlags()) names.push_back(flag.name);
  if (bench != nullptr) {
    for (const Flag& flag : BenchmarkFlags(*bench)) names.push_back(flag.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Commands, HaveUniquePathsAndFlags) {
  std::vector<std::string> paths;
  for (const Command& command : AllCommands()) {
    paths.push_back(CommandLine(command.path));
    std::vector<const BenchmarkSpec*> benchmarks = {nullptr};
    if (command.path.front() == "submit") benchmarks = AllBenchmarks();
    for (const BenchmarkSpec* bench : benchmarks) {
      const std::vector<std::string> names = FlagNames(command, bench);
      EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end())
          << paths.back() << (bench == nullptr ? "" : bench->id);
    }
  }
  std::sort(paths.begin(), paths.end());
  EXPECT_EQ(std::adjacent_find(paths.begin(), paths.end()), paths.end());
}

}  // namespace
}  // namespace param
