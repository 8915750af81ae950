// Commands against a coordinator in this process.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "proto/base/version.h"
#include "proto/convert/json.h"
#include "tests/unit/client/cmd/harness.h"
#include "tests/unit/client/fake_services.h"
#include "tests/unit/client/golden.h"
#include "tests/unit/client/samples.h"

namespace param {
namespace {

class JobCommand : public testing::Test {
 protected:
  JobCommand() {
    harness_.env = {{"PARAM_SERVER", fake_.address()}};
    script().submit_job = SampleJob(v1::QUEUED);
    script().submit_job.set_cases_done(0);
    Ends(v1::SUCCEEDED, v1::PASSED);
  }
  FakeScript& script() { return fake_.script; }

  // The job runs both cases and ends so.
  void Ends(v1::JobState state, v1::CaseStatus second) {
    script().get_response = SampleResponse(state, second);
    v1::Job running = SampleJob(v1::RUNNING);
    running.set_cases_done(0);
    script().streams = {
        {.events = {JobEventOf(1, running), CaseEventOf(2, SampleCase(0, 256, v1::PASSED)),
                    CaseEventOf(3, SampleCase(1, 512, second)), JobEventOf(4, SampleJob(state))}}};
  }
  Ran Submit(std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"submit", "gemm", "--m", "256,512", "--nodes", "2"};
    args.insert(args.end(), more.begin(), more.end());
    return harness_.Run(args);
  }

  FakeCoordinator fake_;
  Harness harness_;
};

TEST_F(JobCommand, SubmitStreamsRowsAndEndsWithTheTable) {
  const Ran ran = Submit();
  EXPECT_EQ(ran.code, 0) << ran.err;
  ExpectGolden("tests/golden/cli/submit.txt", ran.out);
  ExpectGolden("tests/golden/cli/submit_stderr.txt", ran.err);
}

TEST_F(JobCommand, SubmitSendsWhatWasTyped) {
  const std::string path = testing::TempDir() + "/client_fake_script";
  std::ofstream(path) << "hang";
  EXPECT_EQ(Submit({"--node",     "n1",         "--node",           "n2",
                    "--selector", "rack=a",     "--priority",       "-3",
                    "--timeout",  "90s",        "--retries",        "2",
                    "--name",     "x",          "--no-wait",        "--backend",
                    "fake",       "--deadline", "spawn=2s",         "--fake-script",
                    path,         "--no-check", "--ranks-per-node", "2"})
                .code,
            0);
  const v1::SubmitRequest& sent = script().submitted;
  EXPECT_EQ(sent.principal().name(), "local");
  EXPECT_EQ(sent.request_id().size(), 32u);
  const v1::JobSpec& spec = sent.spec();
  EXPECT_EQ(spec.benchmark(), "gemm");
  EXPECT_EQ(spec.params().at("m"), "256,512");
  EXPECT_EQ(spec.params().at("check"), "false");
  EXPECT_EQ(spec.params_size(), 2);
  EXPECT_EQ(spec.nodes(), 2);
  EXPECT_EQ(spec.ranks_per_node(), 2);
  EXPECT_EQ(spec.node_names_size(), 2);
  EXPECT_EQ(spec.selector().at("rack"), "a");
  EXPECT_EQ(spec.priority(), -3);
  EXPECT_EQ(spec.timeout_ns(), 90'000'000'000);
  EXPECT_EQ(spec.retries(), 2);
  EXPECT_TRUE(spec.no_wait());
  EXPECT_EQ(spec.phase_deadlines_ns().at("spawn"), 2'000'000'000);
  EXPECT_EQ(spec.fake_script(), "hang");
  EXPECT_EQ(spec.source(), "cli");
}

TEST_F(JobCommand, SubmitAsJsonIsOneDocument) {
  const Ran ran = Submit({"-o", "json"});
  EXPECT_EQ(ran.code, 0);
  ExpectGolden("tests/golden/json/submit.json", ran.out);
}

TEST_F(JobCommand, SubmitAsJsonLinesEndsWithTheJob) {
  const Ran ran = Submit({"-o", "jsonl"});
  const std::vector<std::string> lines = absl::StrSplit(ran.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(Json::parse(lines[0])["index"], 0);
  EXPECT_EQ(Json::parse(lines[1])["index"], 1);
  EXPECT_EQ(Json::parse(lines[2])["job"]["state"], "SUCCEEDED");
}

TEST_F(JobCommand, JsonLinesTellTheAttemptsOfARetriedJobApart) {
  v1::Job again = SampleJob(v1::RUNNING);
  again.set_attempt(2);
  script().get_response.mutable_job()->set_attempt(2);
  const v1::CaseResult first = SampleCase(0, 256, v1::PASSED);
  script().streams = {{.events = {JobEventOf(1, SampleJob(v1::RUNNING)), CaseEventOf(2, first),
                                  JobEventOf(3, again), CaseEventOf(4, first),
                                  CaseEventOf(5, SampleCase(1, 512, v1::PASSED)),
                                  JobEventOf(6, script().get_response.job())}}};
  const Ran ran = Submit({"-o", "jsonl"});
  const std::vector<std::string> lines = absl::StrSplit(ran.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u) << ran.out;
  EXPECT_EQ(Json::parse(lines[0])["attempt"], 1);
  EXPECT_EQ(Json::parse(lines[1])["attempt"], 2);
  EXPECT_EQ(Json::parse(lines[1])["index"], 0);
  EXPECT_EQ(Json::parse(lines[2])["attempt"], 2);
}

TEST_F(JobCommand, SubmitAsCsvHasOneHeaderAndARowPerCase) {
  const Ran ran = Submit({"-o", "csv"});
  const std::vector<std::string> lines = absl::StrSplit(ran.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].rfind("job_id,benchmark,", 0), 0u);
  EXPECT_TRUE(Contains(lines[0], ",time_p50 (s),"));
}

TEST_F(JobCommand, AWrongResultExitsWithOne) {
  Ends(v1::FAILED, v1::WRONG);
  const Ran ran = Submit();
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Contains(ran.out, "WRONG"));
  EXPECT_TRUE(Contains(ran.out, "element 17"));
}

TEST_F(JobCommand, AStoppedJobExitsWithFive) {
  Ends(v1::TIMED_OUT, v1::FAILED_CASE);
  EXPECT_EQ(Submit().code, 5);
  Ends(v1::CANCELLED, v1::FAILED_CASE);
  EXPECT_EQ(Submit().code, 5);
}

TEST_F(JobCommand, ARejectedJobExitsWithTwoAndShowsTheReason) {
  script().submit_status = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                                        "the job needs 1.5 TiB on a node, the largest has 16 GiB");
  const Ran ran = Submit();
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "error: the job needs 1.5 TiB on a node, the largest has 16 GiB\n");
}

TEST_F(JobCommand, DetachPrintsTheIdAndHowToWatch) {
  const Ran ran = Submit({"--detach"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "j-4k7q2mzd6b\n");
  EXPECT_TRUE(Contains(ran.err, "paramctl job watch j-4k7q2mzd6b"));
  EXPECT_TRUE(script().watches.empty());
}

TEST_F(JobCommand, CtrlCDetachesAndSaysHowToGoOn) {
  script().streams = {{.events = {JobEventOf(1, SampleJob(v1::RUNNING))}, .hold = true}};
  script().on_hold = [this] { harness_.interrupts.raised = true; };
  const Ran ran = Submit();
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(harness_.interrupts.armed);
  EXPECT_TRUE(Contains(ran.err, "paramctl job watch j-4k7q2mzd6b"));
  EXPECT_TRUE(Contains(ran.err, "paramctl job cancel j-4k7q2mzd6b"));
}

TEST_F(JobCommand, ALostConnectionIsSaidAndSurvived) {
  const FakeScript::Stream whole = script().streams.front();
  script().streams.push_front({.events = {whole.events[0], whole.events[1]},
                               .end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "restart")});
  const Ran ran = Submit({"-o", "jsonl"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(Contains(ran.err, "lost (restart)"));
  const std::vector<std::string> lines = absl::StrSplit(ran.out, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 3u) << "a case that came twice is printed once";
}

TEST_F(JobCommand, CasesThatTheStreamLeftOutAreStillPrinted) {
  script().streams.front().events.erase(script().streams.front().events.begin() + 1);
  const Ran ran = Submit({"-o", "jsonl"});
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 3);
}

TEST_F(JobCommand, ProgressIsOnATerminalsStandardErrorOnly) {
  harness_.err_facts = {.is_tty = true, .no_color = "", .term = "xterm"};
  const Ran ran = Submit();
  EXPECT_TRUE(Contains(ran.err, "\r\x1b[Kjob j-4k7q2mzd6b"));
  EXPECT_FALSE(Contains(ran.out, "\x1b"));
}

TEST_F(JobCommand, QuietSaysNothingOnStandardError) { EXPECT_EQ(Submit({"-q"}).err, ""); }

TEST_F(JobCommand, WatchGivesTheJobsExitCode) {
  Ends(v1::FAILED, v1::WRONG);
  EXPECT_EQ(harness_.Run({"job", "watch", "j-4k7q2mzd6b"}).code, 1);
}

TEST_F(JobCommand, AnUnknownJobExitsWithTwo) {
  script().get_status = grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no job \"j-1\"");
  for (const char* verb : {"show", "watch", "results", "cancel"}) {
    const Ran ran = harness_.Run({"job", verb, "j-1"});
    EXPECT_EQ(ran.code, 2) << verb;
    EXPECT_EQ(ran.err, "error: there is no job \"j-1\"\n");
  }
}

TEST_F(JobCommand, ListShowsJobsInEachFormat) {
  script().jobs = {SampleJob(v1::RUNNING), SampleJob(v1::FAILED)};
  EXPECT_TRUE(Contains(harness_.Run({"job", "list"}).out, "STATE"));
  const Json json = Json::parse(harness_.Run({"job", "list", "-o", "json"}).out);
  EXPECT_EQ(json["jobs"].size(), 2u);
  EXPECT_EQ(json["jobs"][1]["state"], "FAILED");
  const std::string csv = harness_.Run({"job", "list", "-o", "csv"}).out;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

TEST_F(JobCommand, ResultsAndShowHaveTheSameJson) {
  const std::string results = harness_.Run({"job", "results", "j-1", "-o", "json"}).out;
  EXPECT_EQ(results, harness_.Run({"job", "show", "j-1", "-o", "json"}).out);
  EXPECT_EQ(Json::parse(results)["cases"].size(), 2u);
}

TEST_F(JobCommand, CancelSendsTheIdAndPrintsTheState) {
  script().get_response = SampleResponse(v1::CANCELLED, v1::FAILED_CASE);
  const Ran ran = harness_.Run({"job", "cancel", "j-9"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(script().cancelled.job_id(), "j-9");
  EXPECT_FALSE(script().cancelled.request_id().empty());
  EXPECT_TRUE(Contains(ran.out, "CANCELLED"));
}

TEST_F(JobCommand, LogsAreDisarmed) {
  v1::LogRow row;
  row.set_node("n1");
  row.set_level("error");
  row.set_text("\x1b[2Jgone");
  script().logs = {row};
  EXPECT_TRUE(Contains(harness_.Run({"job", "logs", "j-1"}).out, "\\x1b[2Jgone"));
}

TEST_F(JobCommand, NodeCommandsSendAndShow) {
  script().nodes = {SampleNode("n1", "ready")};
  EXPECT_TRUE(Contains(harness_.Run({"node", "list"}).out, "rack=a"));
  EXPECT_TRUE(Contains(harness_.Run({"node", "show", "n1"}).out, "no CUDA-capable device"));
  EXPECT_EQ(Json::parse(harness_.Run({"node", "show", "n1", "-o", "json"}).out)["node"]["name"],
            "n1");
  EXPECT_EQ(harness_.Run({"node", "show", "n11"}).err,
            "error: there is no node \"n11\"; did you mean \"n1\"?\n");
  EXPECT_EQ(harness_.Run({"node", "label", "n1", "a=b=c", "old-"}).code, 0);
  EXPECT_EQ(script().labelled.set().at("a"), "b=c");
  EXPECT_EQ(script().labelled.remove(0), "old");
  EXPECT_EQ(harness_.Run({"node", "drain", "n1", "--reason", "fan"}).code, 0);
  EXPECT_EQ(script().drained.reason(), "fan");
}

TEST_F(JobCommand, ExportWritesCasesOrSamples) {
  v1::SampleBlob blob;
  blob.set_case_index(1);
  blob.set_metric("time");
  blob.add_values(0.125);
  blob.add_values(0.25);
  script().samples = {blob};
  EXPECT_TRUE(Contains(harness_.Run({"result", "export", "j-1"}).out, "case_index,case,"));
  const std::string csv = harness_.Run({"result", "export", "j-1", "--samples"}).out;
  EXPECT_TRUE(Contains(csv, ",0,time,,1,0.25\n")) << csv;
  const std::string path = testing::TempDir() + "/client_export.json";
  const Ran ran =
      harness_.Run({"result", "export", "j-1", "--samples", "-o", "json", "--file", path});
  EXPECT_EQ(ran.out, "");
  std::ifstream file(path);
  EXPECT_EQ(Json::parse(file)["samples"][0]["values"][1], 0.25);
}

TEST_F(JobCommand, SamplesAreWrittenOneByOneAsIfTheyWereOneDocument) {
  for (const int count : {0, 1, 3}) {
    script().samples.clear();
    for (int i = 0; i < count; ++i) {
      v1::SampleBlob& blob = script().samples.emplace_back();
      blob.set_case_index(i);
      blob.set_metric("time");
      (*blob.mutable_labels())["phase"] = "]";
      blob.add_values(0.5 + i);
      blob.add_values(0.25);
    }
    const std::string json =
        harness_.Run({"result", "export", "j-1", "--samples", "-o", "json"}).out;
    const Json document = Json::parse(json, nullptr, false);
    ASSERT_TRUE(document.is_object()) << json;
    EXPECT_EQ(document["samples"].size(), static_cast<std::size_t>(count));
    EXPECT_EQ(json, JsonText(document));
    const std::string csv = harness_.Run({"result", "export", "j-1", "--samples"}).out;
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * count)
        << csv;  // the header comes once
    const std::string jsonl =
        harness_.Run({"result", "export", "j-1", "--samples", "-o", "jsonl"}).out;
    EXPECT_EQ(std::count(jsonl.begin(), jsonl.end(), '\n'), count);
  }
}

TEST_F(JobCommand, ResultListHasTheCaseBesideItsJob) {
  v1::ResultRow row;
  row.set_job_id("j-7");
  row.set_benchmark("gemm");
  *row.mutable_result() = SampleCase(0, 256, v1::PASSED);
  script().results = {row};
  const Json json = Json::parse(harness_.Run({"result", "list", "-o", "json"}).out);
  EXPECT_EQ(json["results"][0]["job"]["id"], "j-7");
  EXPECT_EQ(json["results"][0]["status"], "PASSED");
  const std::string text = harness_.Run({"result", "list"}).out;
  EXPECT_TRUE(Contains(text, "75.0 %")) << text;
  EXPECT_TRUE(Contains(text, "FLOPS")) << text;
  EXPECT_TRUE(Contains(text, "FLOP/s")) << text;
}

TEST_F(JobCommand, DoctorFindsWhatIsBroken) {
  script().info.set_version(std::string(Version()));
  script().info.set_revision(std::string(Revision()));
  script().info.set_protocol(kProtocolVersion);
  script().nodes = {SampleNode("n1", "ready")};
  Ran ran = harness_.Run({"doctor", "--state", "/"});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_TRUE(Contains(ran.out, "cpu usable on n1"));
  EXPECT_TRUE(Contains(ran.out, "n1=powersave"));
  script().nodes.push_back(SampleNode("n2", "lost"));
  script().info.set_insecure(true);
  ran = harness_.Run({"doctor", "--state", "/"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Contains(ran.out, "lost: n2"));
  EXPECT_TRUE(Contains(ran.out, "without TLS"));
}

}  // namespace
}  // namespace param
