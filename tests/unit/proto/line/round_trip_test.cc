// Every message survives its line.

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/line/messages.h"

namespace param::line {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename Message>
Message Trip(const Message& message) {
  std::string line;
  if constexpr (std::is_constructible_v<FromWorker, Message>) {
    line = Encode(FromWorker(message));
    EXPECT_TRUE(absl::EndsWith(line, "\n"));
    const absl::StatusOr<FromWorker> decoded = DecodeFromWorker(line);
    EXPECT_TRUE(decoded.ok()) << decoded.status() << " " << line;
    return decoded.ok() ? std::get<Message>(*decoded) : Message();
  } else {
    line = Encode(FromAgent(message));
    const absl::StatusOr<FromAgent> decoded = DecodeFromAgent(line);
    EXPECT_TRUE(decoded.ok()) << decoded.status() << " " << line;
    return decoded.ok() ? std::get<Message>(*decoded) : Message();
  }
}

TEST(RoundTrip, Hello) {
  const Hello got = Trip(Hello{.token = "t0k", .pid = 4711, .protocol = 3, .version = "0.1.0"});
  EXPECT_EQ(got.token, "t0k");
  EXPECT_EQ(got.pid, 4711);
  EXPECT_EQ(got.protocol, 3);
  EXPECT_EQ(got.version, "0.1.0");
}

TEST(RoundTrip, PhasesWithAndWithoutACase) {
  const PhaseBegin begin = Trip(PhaseBegin{.phase = Phase::kCommInit, .case_index = -1});
  EXPECT_EQ(begin.phase, Phase::kCommInit);
  EXPECT_EQ(begin.case_index, -1);
  const PhaseEnd end = Trip(PhaseEnd{.phase = Phase::kTimed, .case_index = 12});
  EXPECT_EQ(end.phase, Phase::kTimed);
  EXPECT_EQ(end.case_index, 12);
}

TEST(RoundTrip, ExchangeOfAnyBytes) {
  std::string bytes(kMaxExchangeBytes, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 256);
  const std::uint64_t round = std::numeric_limits<std::uint64_t>::max();
  const Exchange got = Trip(Exchange{.round = round, .data = bytes});
  EXPECT_EQ(got.round, round);
  EXPECT_EQ(got.data, bytes);
  EXPECT_EQ(Trip(Exchange{}).data, "");
}

TEST(RoundTrip, CaseBegin) { EXPECT_EQ(Trip(CaseBegin{.case_index = 9999}).case_index, 9999); }

TEST(RoundTrip, SamplesBitForBit) {
  Samples sent = {.case_index = 1,
                  .metric = "time",
                  .unit = "s",
                  .labels = {{"phase", "warm-up"}, {"src", "0"}},
                  .values = {1.0 / 3, 5e-324, -0.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}};
  const Samples got = Trip(sent);
  EXPECT_EQ(got.metric, "time");
  EXPECT_EQ(got.unit, "s");
  EXPECT_EQ(got.labels, sent.labels);
  ASSERT_EQ(got.values.size(), 5U);
  EXPECT_EQ(got.values[0], 1.0 / 3);
  EXPECT_EQ(got.values[1], 5e-324);
  EXPECT_TRUE(std::signbit(got.values[2]));
  EXPECT_EQ(got.values[3], std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(got.values[4]));
}

TEST(RoundTrip, TheMostSamplesFitOneLine) {
  const Samples sent = {.metric = "time",
                        .unit = "FLOP/s",
                        .labels = {},
                        .values = std::vector<double>(kMaxSamplesPerLine, 0.125)};
  EXPECT_LE(Encode(FromWorker(sent)).size(), kMaxLineBytes);
  EXPECT_EQ(Trip(sent).values, sent.values);
}

TEST(RoundTrip, CaseEnd) {
  const CaseEnd got = Trip(CaseEnd{.case_index = 3,
                                   .status = CaseStatus::kWrong,
                                   .reason = "element 17: 3 is not 4",
                                   .scalars = {{"peak", 1.5e12},
                                               {"max_error", std::nan("")},
                                               {"worst", -std::numeric_limits<double>::infinity()}},
                                   .info = {{"library", "onednn 2.6.0"}}});
  EXPECT_EQ(got.status, CaseStatus::kWrong);
  EXPECT_EQ(got.reason, "element 17: 3 is not 4");
  EXPECT_EQ(got.scalars.at("peak"), 1.5e12);
  EXPECT_TRUE(std::isnan(got.scalars.at("max_error")));
  EXPECT_EQ(got.scalars.at("worst"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(got.info.at("library"), "onednn 2.6.0");
}

TEST(RoundTrip, CaseEndOfNothing) {
  const CaseEnd got =
      Trip(CaseEnd{.status = CaseStatus::kPassed, .reason = "", .scalars = {}, .info = {}});
  EXPECT_EQ(got.status, CaseStatus::kPassed);
  EXPECT_THAT(got.scalars, IsEmpty());
}

TEST(RoundTrip, Environment) {
  const Environment got = Trip(Environment{.facts = {{"cpu model", "X \"Y\" = 1, 2"}}});
  EXPECT_EQ(got.facts.at("cpu model"), "X \"Y\" = 1, 2");
}

TEST(RoundTrip, Failure) {
  const Failure got = Trip(Failure{.code = "UNAVAILABLE",
                                   .phase = Phase::kRendezvous,
                                   .cause = "connection refused",
                                   .address = "10.0.0.1:99",
                                   .error_number = 111,
                                   .case_index = -1});
  EXPECT_EQ(got.code, "UNAVAILABLE");
  EXPECT_EQ(got.phase, Phase::kRendezvous);
  EXPECT_EQ(got.cause, "connection refused");
  EXPECT_EQ(got.address, "10.0.0.1:99");
  EXPECT_EQ(got.error_number, 111);
}

TEST(RoundTrip, LogAndDone) {
  const LogLine got = Trip(LogLine{.level = "warn", .text = "a\nb\tc"});
  EXPECT_EQ(got.level, "warn");
  EXPECT_EQ(got.text, "a\nb\tc");
  Trip(Done{});
}

TEST(RoundTrip, AssignmentKeepsTheTypesOfParameters) {
  Assignment sent;
  sent.job_id = "j-1";
  sent.attempt = 2;
  sent.benchmark = "gemm";
  sent.benchmark_version = 1;
  sent.rank = 3;
  sent.ranks = 4;
  sent.local_rank = 1;
  sent.local_ranks = 2;
  sent.rank_nodes = {"n1", "n1", "n2", "n2"};
  sent.device_backend = "cpu";
  sent.device_backend_path = "/lib/cpu.so";
  sent.comm_backend_paths = {"/lib/mpi.so"};
  sent.device_index = 1;
  sent.cpus = {0, 3};
  sent.threads = 2;
  sent.attachments = {{"index", "/tmp/x"}};
  sent.fake_script = "/tmp/fake";
  sent.cases = {{.index = 7,
                 .id = "gemm:v1:m=8",
                 .params = {{"m", std::int64_t{8}},
                            {"alpha", 1.0},
                            {"check", true},
                            {"dtype", std::string("f32")}}}};
  const Assignment got = Trip(sent);
  EXPECT_EQ(got.job_id, "j-1");
  EXPECT_EQ(got.attempt, 2);
  EXPECT_EQ(got.benchmark, "gemm");
  EXPECT_EQ(got.benchmark_version, 1);
  EXPECT_EQ(got.rank, 3);
  EXPECT_EQ(got.ranks, 4);
  EXPECT_EQ(got.local_rank, 1);
  EXPECT_EQ(got.local_ranks, 2);
  EXPECT_EQ(got.rank_nodes, sent.rank_nodes);
  EXPECT_EQ(got.device_backend, "cpu");
  EXPECT_EQ(got.device_backend_path, "/lib/cpu.so");
  EXPECT_EQ(got.comm_backend_paths, sent.comm_backend_paths);
  EXPECT_EQ(got.device_index, 1);
  EXPECT_THAT(got.cpus, ElementsAre(0, 3));
  EXPECT_EQ(got.threads, 2);
  EXPECT_EQ(got.attachments, sent.attachments);
  EXPECT_EQ(got.fake_script, "/tmp/fake");
  ASSERT_EQ(got.cases.size(), 1U);
  EXPECT_EQ(got.cases[0].index, 7);
  EXPECT_EQ(got.cases[0].id, "gemm:v1:m=8");
  EXPECT_EQ(got.cases[0].params, sent.cases[0].params);
}

TEST(RoundTrip, EmptyListsStayLists) {
  const Assignment got = Trip(Assignment{});
  EXPECT_THAT(got.cpus, IsEmpty());
  EXPECT_THAT(got.rank_nodes, IsEmpty());
  EXPECT_THAT(got.cases, IsEmpty());
}

TEST(RoundTrip, ReplyCancelAbortAck) {
  const ExchangeReply reply =
      Trip(ExchangeReply{.round = 2, .data = {std::string("\0\xff", 2), ""}});
  EXPECT_EQ(reply.round, 2U);
  EXPECT_THAT(reply.data, ElementsAre(std::string("\0\xff", 2), ""));
  EXPECT_EQ(Trip(Cancel{.reason = "user"}).reason, "user");
  EXPECT_EQ(Trip(Abort{.reason = "rank 3"}).reason, "rank 3");
  EXPECT_EQ(Trip(Ack{.lines = 77}).lines, 77U);
}

TEST(Encode, KeepsTheLimitsWhateverALibrarySays) {
  const CaseEnd got = Trip(CaseEnd{.status = CaseStatus::kFailed,
                                   .reason = std::string(1 << 20, 'x') + "\xff\xfe",
                                   .scalars = {},
                                   .info = {}});
  EXPECT_EQ(got.reason.size(), 4096U);
}

TEST(Encode, ReplacesWhatIsNotUtf8) {
  const Failure got = Trip(Failure{.code = "INTERNAL", .cause = "bad \xff byte", .address = ""});
  EXPECT_EQ(got.cause, "bad \xEF\xBF\xBD byte");
}

TEST(Encode, CutsBetweenCharacters) {
  std::string text(4095, 'x');
  text += "\xE2\x82\xAC";  // a euro sign across the limit
  EXPECT_EQ(Trip(Cancel{.reason = text}).reason, std::string(4095, 'x'));
}

TEST(Names, AreTheSameBothWays) {
  for (const Phase phase : {Phase::kPlace, Phase::kSpawn, Phase::kRendezvous, Phase::kCommInit,
                            Phase::kVerify, Phase::kWarmup, Phase::kTimed, Phase::kTeardown}) {
    EXPECT_EQ(*PhaseFromName(PhaseName(phase)), phase);
  }
  for (const CaseStatus status :
       {CaseStatus::kPassed, CaseStatus::kWrong, CaseStatus::kSkipped, CaseStatus::kFailed}) {
    EXPECT_EQ(*CaseStatusFromName(CaseStatusName(status)), status);
  }
  EXPECT_EQ(PhaseName(Phase::kCommInit), "comm_init");
  EXPECT_EQ(CaseStatusName(CaseStatus::kPassed), "PASSED");
  EXPECT_FALSE(PhaseFromName("lunch").ok());
  EXPECT_FALSE(CaseStatusFromName("passed").ok());
}

}  // namespace
}  // namespace param::line
