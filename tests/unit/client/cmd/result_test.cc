// --convention, --plot, report, result compare and import against a coordinator in this process.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "proto/convert/json.h"
#include "tests/unit/client/cmd/harness.h"
#include "tests/unit/client/collective_samples.h"
#include "tests/unit/client/fake_services.h"
#include "tests/unit/client/golden.h"

namespace param {
namespace {

namespace fs = std::filesystem;

class ResultCommand : public testing::Test {
 protected:
  ResultCommand() {
    harness_.env = {{"PARAM_SERVER", fake_.address()}};
    script().get_response = SweepJob();
    folder_ =
        fs::path(testing::TempDir()) /
        ("result_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ResultCommand() override { fs::remove_all(folder_); }

  FakeScript& script() { return fake_.script; }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return Path(name);
  }
  std::string ReadBack(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // The collective job runs its cases and ends.
  void Streams() {
    const v1::GetJobResponse& response = script().get_response;
    script().submit_job = response.job();
    script().submit_job.set_state(v1::QUEUED);
    FakeScript::Stream stream;
    std::uint64_t seq = 0;
    for (const v1::CaseResult& result : response.cases()) {
      stream.events.push_back(CaseEventOf(++seq, result));
    }
    stream.events.push_back(JobEventOf(++seq, response.job()));
    script().streams = {stream};
  }

  FakeCoordinator fake_;
  Harness harness_;
  fs::path folder_;
};

TEST_F(ResultCommand, SubmitOfACollectiveReadsWell) {
  Streams();
  const Ran ran = harness_.Run({"submit", "collective", "--size", "8,64K,16M", "--nodes", "2"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ExpectGolden("tests/golden/cli/submit_collective.txt", ran.out);
}

TEST_F(ResultCommand, ConventionIsAllThatSubmitPrints) {
  Streams();
  const Ran ran = harness_.Run({"submit", "collective", "--size", "8,64K,16M", "--nodes", "2",
                                "--convention", "nccl-tests"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind("# columns of nccl-tests", 0), 0u) << ran.out;
  EXPECT_EQ(ran.out, harness_.Run({"job", "results", "j-1", "--convention", "nccl-tests"}).out);
}

TEST_F(ResultCommand, ConventionLeavesTheFailureToStandardError) {
  script().get_response.mutable_job()->set_state(v1::FAILED);
  v1::Failure* failure = script().get_response.mutable_job()->mutable_failure();
  failure->set_code("UNAVAILABLE");
  failure->set_phase("timed");
  failure->set_node("n2");
  failure->set_rank(3);
  failure->set_cause("gone");
  const Ran ran = harness_.Run({"job", "results", "j-1", "--convention", "osu"});
  EXPECT_EQ(ran.err, "failure: timed on n2 (rank 3): UNAVAILABLE: gone\n");
  EXPECT_FALSE(Contains(ran.out, "gone"));
}

TEST_F(ResultCommand, WhatAConventionCannotSayIsRefusedBeforeTheJobRuns) {
  const Ran ran = harness_.Run(
      {"submit", "collective", "--op", "barrier", "--nodes", "2", "--convention", "nccl-tests"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(Contains(ran.err, "it has no operation \"barrier\"")) << ran.err;
  EXPECT_TRUE(script().submitted.request_id().empty());
  EXPECT_EQ(harness_.Run({"submit", "gemm", "--convention", "osu"}).code, 2);
  EXPECT_EQ(harness_.Run({"submit", "gemm", "--plot"}).code, 2);
  EXPECT_EQ(harness_.Run({"submit", "collective", "--nodes", "2", "--convention", "oss"}).code, 2);
  EXPECT_TRUE(script().submitted.request_id().empty());
}

TEST_F(ResultCommand, ConventionsAndPlotsAreText) {
  for (const char* format : {"json", "jsonl", "csv"}) {
    const Ran convention =
        harness_.Run({"job", "results", "j-1", "--convention", "osu", "-o", format});
    EXPECT_EQ(convention.code, 2);
    EXPECT_EQ(convention.out, "");
    EXPECT_EQ(harness_.Run({"job", "results", "j-1", "--plot", "-o", format}).code, 2);
  }
  EXPECT_EQ(harness_.Run({"job", "results", "j-1", "--plot", "--convention", "osu"}).code, 2);
  EXPECT_TRUE(
      Contains(harness_.Run({"job", "results", "j-1", "--convention", "osu", "-o", "wide"}).out,
               "Iterations"));
  script().get_response = SampleResponse(v1::SUCCEEDED, v1::PASSED);
  EXPECT_EQ(harness_.Run({"job", "results", "j-1", "--convention", "osu"}).code, 2);
  EXPECT_EQ(harness_.Run({"job", "results", "j-1", "--plot"}).code, 2);
}

TEST_F(ResultCommand, PlotComesBelowTheReport) {
  const std::string plain = harness_.Run({"job", "results", "j-1"}).out;
  const Ran ran = harness_.Run({"job", "results", "j-1", "--plot"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind(plain, 0), 0u);
  EXPECT_TRUE(Contains(ran.out, "time p50 over size"));
  EXPECT_TRUE(Contains(ran.out, "bus bandwidth over size"));
}

TEST_F(ResultCommand, PlotFitsTheTerminal) {
  harness_.out_facts = {
      .is_tty = true, .no_color = "1", .term = "xterm", .columns = 100, .utf8 = true};
  const std::string wide = harness_.Run({"job", "results", "j-1", "--plot"}).out;
  EXPECT_TRUE(Contains(wide, "●")) << wide;
  std::size_t rules = 0;
  std::istringstream lines(wide);
  for (std::string line; std::getline(lines, line);) {
    if (Contains(line, "└")) {
      ++rules;
      EXPECT_EQ(DisplayWidth(line), 100u);
    }
  }
  EXPECT_EQ(rules, 2u);
}

TEST_F(ResultCommand, ReportWritesTheFileAtOnceAndReplacesIt) {
  Write("r.html", "old");
  chmod(Path("r.html").c_str(), 0600);
  const Ran ran = harness_.Run({"report", "j-4k7q2mzd6b", "--html", Path("r.html")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "wrote " + Path("r.html") + "\n");
  EXPECT_EQ(ReadBack("r.html").rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_EQ(fs::status(Path("r.html")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(harness_.Run({"report", "j-4k7q2mzd6b", "--html", "-"}).out, ReadBack("r.html"));
}

TEST_F(ResultCommand, ReportSaysWhyItCannotWrite) {
  const std::string missing = Path("no/such/folder/r.html");
  Ran ran = harness_.Run({"report", "j-1", "--html", missing});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "error: cannot write " + missing + ": No such file or directory\n");
  ran = harness_.Run({"report", "j-1", "--html", folder_.string()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Contains(ran.err, "cannot replace " + folder_.string())) << ran.err;
  EXPECT_TRUE(fs::is_empty(folder_));
  if (fs::exists("/dev/full")) {
    ran = harness_.Run({"report", "j-1", "--html", "/dev/full"});
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(ran.err, "error: cannot write /dev/full: No space left on device\n");
  }
  EXPECT_EQ(harness_.Run({"report", "j-1", "-o", "json"}).code, 2);
}

TEST_F(ResultCommand, CompareOfAFileAndAJob) {
  Write("a.json", JsonText(JobDocument(SweepJob())));
  script().get_response = SweepJob(1.5);
  const Ran ran = harness_.Run({"result", "compare", Path("a.json"), "j-7", "--plot"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ExpectGolden("tests/golden/cli/compare.txt", ran.out);
  const Ran json = harness_.Run({"result", "compare", Path("a.json"), "j-7", "-o", "json"});
  EXPECT_NEAR(Json::parse(json.out)["cases"][0]["ratio"].get<double>(), 1.5, 1e-9);
  EXPECT_EQ(Json::parse(json.out)["cases"][0]["verdict"], "slower");
}

TEST_F(ResultCommand, CompareReadsWhatExportWrites) {
  for (const char* format : {"csv", "json"}) {
    const std::string path = Path(std::string("export.") + format);
    ASSERT_EQ(harness_.Run({"result", "export", "j-1", "-o", format, "--file", path}).code, 0);
    const Ran ran = harness_.Run({"result", "compare", path, "j-1", "-o", "json"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Json cases = Json::parse(ran.out)["cases"];
    ASSERT_EQ(cases.size(), 3u);
    for (const Json& one : cases) {
      EXPECT_EQ(one["ratio"], 1);
      EXPECT_EQ(one["verdict"], "same");
    }
  }
}

TEST_F(ResultCommand, CompareFailsOnlyWhenAskedTo) {
  Write("a.json", JsonText(JobDocument(SweepJob())));
  script().get_response = SweepJob(1.5);
  const auto compare = [&](const std::string& percent) {
    return harness_.Run({"result", "compare", Path("a.json"), "j-7", "--fail-on", percent});
  };
  EXPECT_EQ(compare("10").code, 4);
  EXPECT_TRUE(Contains(compare("10%").err, "in 3 of 3 cases"));
  EXPECT_EQ(compare("60").code, 0);
  EXPECT_EQ(compare("ten").code, 2);
  EXPECT_EQ(compare("-1").code, 2);
  EXPECT_EQ(harness_.Run({"result", "compare", "j-7", Path("a.json"), "--fail-on", "10"}).code, 0);
}

TEST_F(ResultCommand, CompareSaysWhatItCannotRead) {
  Ran ran = harness_.Run({"result", "compare", "nowhere.json", "j-7"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(Contains(ran.err, "neither a job's id (j-...) nor a file that can be read"))
      << ran.err;
  Write("csv", "a,b\n");
  ran = harness_.Run({"result", "compare", Path("csv"), "j-7"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(Contains(ran.err,
                       "its header has no \"job_id\": these are no cases of a job; a file "
                       "is what \"paramctl result export JOB\" writes, as csv or json"))
      << ran.err;
}

TEST_F(ResultCommand, ImportSendsTheCasesAndShowsTheJob) {
  script().import_response.set_job_id("j-7h2wq5xk3a");
  const std::string path = Write("osu.txt",
                                 "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_FLOAT.\n"
                                 "# Size       Avg Latency(us)\n4 1.50\n8 1.75\n8 1.80\n");
  const Ran ran = harness_.Run(
      {"result", "import", path, "--ranks", "4", "--name", "rack 7", "--format", "osu"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err,
            "line 6: left out: the same case came before\n"
            "imported 2 cases of osu as job j-7h2wq5xk3a\n");
  const v1::ImportRequest& sent = script().imported;
  EXPECT_EQ(sent.principal().name(), "local");
  EXPECT_EQ(sent.request_id().size(), 32u);
  EXPECT_EQ(sent.name(), "rack 7");
  EXPECT_EQ(sent.format(), "osu");
  EXPECT_EQ(sent.cases_size(), 2);
  EXPECT_TRUE(Contains(ran.out, "all_reduce f32"));
}

TEST_F(ResultCommand, ImportNamesFileAndLine) {
  const std::string path = Write("x.txt", "# OSU MPI Allreduce Latency Test v7.4\nx\n4 fast\n");
  const Ran ran = harness_.Run({"result", "import", path, "--ranks", "4"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "error: " + path + ": line 3: a row is a size in bytes and a time in us\n");
  EXPECT_EQ(harness_.Run({"result", "import", Path("none")}).code, 2);
  EXPECT_EQ(harness_.Run({"result", "import", path, "--format", "xml"}).code, 2);
  EXPECT_TRUE(script().imported.request_id().empty());
}

TEST_F(ResultCommand, AnImportedJobSaysWhatItIs) {
  script().get_response.mutable_job()->mutable_spec()->set_source("import:osu");
  script().get_response.mutable_job()->clear_nodes();
  (*script().get_response.mutable_cases(0)->mutable_info())["statistic"] = "mean of 5 iterations";
  const std::string results = harness_.Run({"job", "results", "j-1"}).out;
  EXPECT_FALSE(Contains(results, "repeat")) << results;
  EXPECT_TRUE(Contains(results, ": 3 passed; 4 ranks, backend fake; imported from osu\n"))
      << results;
  EXPECT_TRUE(Contains(results, "numbers: mean of 5 iterations, no samples\n")) << results;
  EXPECT_FALSE(Contains(harness_.Run({"job", "show", "j-1"}).out, "not placed"));
}

TEST(Utf8Locale, FollowsTheFirstThatIsSet) {
  EXPECT_TRUE(IsUtf8Locale("", "", "C.UTF-8"));
  EXPECT_TRUE(IsUtf8Locale("de_DE.utf8", "C", "C"));
  EXPECT_FALSE(IsUtf8Locale("C", "", "C.UTF-8"));
  EXPECT_FALSE(IsUtf8Locale("", "", ""));
}

}  // namespace
}  // namespace param
