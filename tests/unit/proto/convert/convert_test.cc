#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/convert/json.h"
#include "proto/convert/names.h"
#include "proto/convert/status.h"
#include "proto/convert/values.h"
#include "tests/unit/client/golden.h"
#include "tests/unit/client/samples.h"

namespace param {
namespace {

TEST(Status, KeepsCodeAndMessageBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what was wrong");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
  EXPECT_TRUE(FromGrpc(ToGrpc(absl::OkStatus())).ok());
}

TEST(Status, CutsAMessageThatATrailerCannotCarry) {
  const grpc::Status status = ToGrpc(absl::InternalError(std::string(100'000, 'x')));
  EXPECT_LT(status.error_message().size(), 5000u);
  EXPECT_NE(status.error_message().find("(cut)"), std::string::npos);
}

TEST(Values, SurviveTheWire) {
  const Params params = {
      {"big", std::int64_t{1} << 62}, {"half", 0.1}, {"off", false}, {"dtype", std::string("f32")}};
  ProtoParams wire;
  ParamsToProto(params, &wire);
  const absl::StatusOr<Params> back = ParamsFromProto(wire);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, params);
}

TEST(Values, OfAnUnknownKindAreAnErrorThatNamesTheParameter) {
  ProtoParams wire;
  wire["odd"];
  const absl::StatusOr<Params> back = ParamsFromProto(wire);
  EXPECT_TRUE(absl::IsInvalidArgument(back.status()));
  EXPECT_NE(back.status().message().find("odd"), absl::string_view::npos);
}

TEST(Names, OfAFailedCaseAreBare) {
  EXPECT_EQ(WireCaseStatusName(v1::FAILED_CASE), "FAILED");
  EXPECT_EQ(*WireCaseStatusFromName("FAILED"), v1::FAILED_CASE);
  EXPECT_EQ(WireCaseStatusName(v1::CASE_STATUS_UNSPECIFIED), "");
  EXPECT_FALSE(WireCaseStatusFromName("FAILED_CASE").ok());
}

TEST(Names, OfJobStatesGoBothWaysAndSuggest) {
  for (const std::string& name : WireJobStateNames()) {
    EXPECT_EQ(WireJobStateName(*WireJobStateFromName(name)), name);
  }
  EXPECT_EQ(WireJobStateNames().size(), 7u);
  EXPECT_EQ(*WireJobStateFromName("running"), v1::RUNNING);
  EXPECT_EQ(WireJobStateName(static_cast<v1::JobState>(99)), "UNKNOWN");
  EXPECT_NE(WireJobStateFromName("RUNING").status().message().find("did you mean \"RUNNING\"?"),
            absl::string_view::npos);
}

TEST(JsonView, OfAJobIsTheDocumentedOne) {
  ExpectGolden("tests/golden/json/job.json",
               JsonText(JobDocument(SampleResponse(v1::FAILED, v1::WRONG))));
}

TEST(JsonView, OfAFailureHasAllItsParts) {
  v1::Job job = SampleJob(v1::FAILED);
  v1::Failure* failure = job.mutable_failure();
  failure->set_code("UNAVAILABLE");
  failure->set_phase("comm_init");
  failure->set_node("n2");
  failure->set_rank(1);
  failure->set_cause("connection refused");
  failure->set_address("10.0.0.3:4711");
  failure->set_error_number(111);
  EXPECT_EQ(JobJson(job)["failure"].dump(),
            R"({"code":"UNAVAILABLE","phase":"comm_init","node":"n2","rank":1,)"
            R"("cause":"connection refused","address":"10.0.0.3:4711","errno":111})");
  EXPECT_TRUE(JobJson(SampleJob(v1::SUCCEEDED))["failure"].is_null());
}

TEST(JsonView, OfNodesServersResultsAndLogsIsTheDocumentedOne) {
  v1::InfoResponse info;
  info.set_version("0.1.0");
  info.set_listen("127.0.0.1:7700");
  info.add_warnings("open beyond loopback");
  v1::ResultRow row;
  row.set_job_id("j-4k7q2mzd6b");
  row.set_benchmark("gemm");
  row.add_nodes("n1");
  *row.mutable_result() = SampleCase(0, 256, v1::PASSED);
  v1::LogRow line;
  line.set_text("hello");
  v1::SampleBlob blob;
  blob.set_metric("time");
  blob.add_values(0.125);
  blob.add_values(std::numeric_limits<double>::infinity());
  Json all = Json::object();
  all["node"] = NodeJson(SampleNode("n1", "ready"));
  all["server"] = ServerJson(info);
  all["result"] = ResultJson(row);
  all["log"] = LogRowJson(line);
  all["samples"] = SamplesJson(blob);
  ExpectGolden("tests/golden/json/others.json", JsonText(all));
}

TEST(JsonView, OfTheCatalogueIsTheDocumentedOne) {
  ExpectGolden("tests/golden/json/benchmark.json",
               JsonText(BenchmarkJson(**FindBenchmark("gemm"))));
}

TEST(JsonView, HasNullForNumbersThatAreNone) {
  v1::CaseResult result;
  AddMeasurement(&result, -1, "time", "s", std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(CaseJson(result)["metrics"]["time"]["p50"].is_null());
  EXPECT_TRUE(CaseJson(result)["metrics"]["time"]["ci95"][0].is_null());
}

TEST(JsonView, KeepsEveryDigit) {
  v1::CaseResult result;
  AddMeasurement(&result, -1, "time", "s", 0.1 + 0.2);
  const Json back = Json::parse(JsonLine(CaseJson(result)));
  EXPECT_EQ(back["metrics"]["time"]["p50"].get<double>(), 0.1 + 0.2);
}

TEST(JsonView, OfForeignBytesIsStillJson) {
  v1::LogRow line;
  line.set_text("bad \xff byte \x1b[31m");
  EXPECT_FALSE(Json::parse(JsonLine(LogRowJson(line)), nullptr, false).is_discarded());
}

}  // namespace
}  // namespace param
