#include "client/rpc/connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/rpc/exit_code.h"
#include "proto/base/handle.h"
#include "tests/unit/client/fake_services.h"
#include "tests/unit/client/samples.h"

namespace param {
namespace {

ConnectionOptions Quick() {
  return {.call_deadline = absl::Seconds(20),
          .bulk_deadline = absl::Seconds(20),
          .reconnect_for = absl::Seconds(20)};
}

TEST(Address, ComesFromTheFlagThenTheVariableThenTheStateFolder) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "address_of_state";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "server.addr") << "127.0.0.1:4321\n";
  EnvironmentVariables env = {{"PARAM_STATE", folder.string()}, {"PARAM_SERVER", "head"}};
  EXPECT_EQ(ResolveAddress("[::1]:9", env).target, "[::1]:9");
  EXPECT_EQ(ResolveAddress("", env).target, "head:7700");
  EXPECT_EQ(ResolveAddress("", env).origin, "PARAM_SERVER");
  env.erase("PARAM_SERVER");
  EXPECT_EQ(ResolveAddress("", env).target, "127.0.0.1:4321");
  EXPECT_EQ(ResolveAddress("", {}).target, "127.0.0.1:7700");
  EXPECT_EQ(ResolveAddress("::ffff", {}).target, "::ffff");
  EXPECT_EQ(ResolveAddress("[::1]", {}).target, "[::1]:7700");
}

TEST(StateFolder, FollowsTheUsualVariables) {
  EXPECT_EQ(StateFolder({{"HOME", "/h"}}), "/h/.local/state/param");
  EXPECT_EQ(StateFolder({{"HOME", "/h"}, {"XDG_STATE_HOME", "/x"}}), "/x/param");
  EXPECT_EQ(StateFolder({{"PARAM_STATE", "/p"}, {"XDG_STATE_HOME", "/x"}}), "/p");
  EXPECT_EQ(StateFolder({}), "");
}

TEST(ExitCodes, AreTheDocumentedOnes) {
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), ExitCode::kUnavailable);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(v1::SUCCEEDED), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(v1::FAILED), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(v1::CANCELLED), ExitCode::kStopped);
  EXPECT_EQ(ExitCodeOf(v1::TIMED_OUT), ExitCode::kStopped);
}

TEST(Connection, ToAnOlderCoordinatorSaysSo) {
  FakeCoordinator fake;  // knows no Resume
  Connection connection({fake.address(), "flag"}, Quick());
  const absl::Status status = connection.Resume({}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_NE(status.message().find("is older than this paramctl"), std::string::npos) << status;
}

TEST(Connection, ToNobodySaysWhereAndWhatToDo) {
  Connection connection({"127.0.0.1:1", "PARAM_SERVER"}, Quick());
  const absl::Status status = connection.Info().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("127.0.0.1:1 (from PARAM_SERVER)"), absl::string_view::npos);
  EXPECT_NE(status.message().find("paramctl up"), absl::string_view::npos);
}

// Takes connections and says nothing, as a coordinator that is stopped or has no time.
class Silent {
 public:
  Silent() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), raw, size), 0);
    EXPECT_EQ(::listen(socket_.get(), 16), 0);
    EXPECT_EQ(::getsockname(socket_.get(), raw, &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& address() const { return address_; }

 private:
  const Fd socket_;
  std::string address_;
};

TEST(Connection, ToASlowCoordinatorWaitsAsLongAsTheCallMayTake) {
  const Silent silent;
  ConnectionOptions options = Quick();
  options.call_deadline = absl::Seconds(1);
  Connection connection({silent.address(), "flag"}, options);
  const absl::Status status = connection.Info().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnavailable);
}

struct Seen {
  std::vector<std::uint64_t> seqs;
  std::vector<std::string> notes;
  std::atomic<bool> stop{false};
  WatchCallbacks callbacks() {
    WatchCallbacks out;
    out.on_event = [this](const v1::JobEvent& event) { seqs.push_back(event.seq()); };
    out.on_note = [this](const std::string& note) { notes.push_back(note); };
    out.stop = [this] { return stop.load(); };
    return out;
  }
};

TEST(Watch, DeliversEventsInOrderAndEndsWithTheJob) {
  FakeCoordinator fake;
  fake.script.streams = {{.events = {JobEventOf(1, SampleJob(v1::RUNNING)),
                                     CaseEventOf(2, SampleCase(0, 256, v1::PASSED)),
                                     JobEventOf(3, SampleJob(v1::SUCCEEDED))}}};
  Connection connection({fake.address(), "test"}, Quick());
  Seen seen;
  const absl::StatusOr<WatchEnd> end = connection.Watch("j-1", seen.callbacks());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, WatchEnd::kEnded);
  EXPECT_EQ(seen.seqs, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(seen.notes.empty());
}

TEST(Watch, ResumesAfterTheLastEventWhenTheCoordinatorGoesAway) {
  FakeCoordinator fake;
  fake.script.streams = {{.events = {JobEventOf(7, SampleJob(v1::RUNNING))},
                          .end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "going down")},
                         {.events = {JobEventOf(8, SampleJob(v1::SUCCEEDED))}}};
  Connection connection({fake.address(), "test"}, Quick());
  Seen seen;
  ASSERT_TRUE(connection.Watch("j-1", seen.callbacks()).ok());
  EXPECT_EQ(seen.seqs, (std::vector<std::uint64_t>{7, 8}));
  ASSERT_EQ(fake.script.watches.size(), 2u);
  EXPECT_EQ(fake.script.watches[1].after_seq(), 7u);
  ASSERT_EQ(seen.notes.size(), 2u);
  EXPECT_NE(seen.notes[0].find("going down"), std::string::npos);
  EXPECT_NE(seen.notes[1].find("again"), std::string::npos);
}

TEST(Watch, StartsOverWhenAStreamIsClosedBeforeTheJobEnded) {
  FakeCoordinator fake;
  fake.script.streams = {{.events = {JobEventOf(7, SampleJob(v1::RUNNING))}},
                         {.events = {JobEventOf(1, SampleJob(v1::FAILED))}}};
  Connection connection({fake.address(), "test"}, Quick());
  Seen seen;
  ASSERT_TRUE(connection.Watch("j-1", seen.callbacks()).ok());
  EXPECT_EQ(fake.script.watches[1].after_seq(), 0u);
}

TEST(Watch, ResumesAReaderThatWasTooSlow) {
  FakeCoordinator fake;
  fake.script.streams = {{.events = {JobEventOf(7, SampleJob(v1::RUNNING))},
                          .end = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "slow")},
                         {.events = {JobEventOf(8, SampleJob(v1::SUCCEEDED))}}};
  Connection connection({fake.address(), "test"}, Quick());
  Seen seen;
  ASSERT_TRUE(connection.Watch("j-1", seen.callbacks()).ok());
  EXPECT_NE(seen.notes.at(0).find("too slow"), std::string::npos);
}

TEST(Watch, GivesUpWhenNobodyComesBack) {
  FakeCoordinator fake;  // without streams: UNAVAILABLE
  ConnectionOptions options = Quick();
  options.reconnect_for = absl::Milliseconds(300);
  Connection connection({fake.address(), "test"}, options);
  Seen seen;
  EXPECT_TRUE(absl::IsUnavailable(connection.Watch("j-1", seen.callbacks()).status()));
  EXPECT_GE(fake.script.watches.size(), 2u);
}

TEST(Watch, EndsAtOnceOnAnErrorOfTheRequest) {
  FakeCoordinator fake;
  fake.script.streams = {
      {.events = {}, .end = grpc::Status(grpc::StatusCode::NOT_FOUND, "no job")}};
  Connection connection({fake.address(), "test"}, Quick());
  Seen seen;
  EXPECT_TRUE(absl::IsNotFound(connection.Watch("j-1", seen.callbacks()).status()));
}

TEST(Watch, StopsAnOpenStreamOnAnInterrupt) {
  FakeCoordinator fake;
  Seen seen;
  fake.script.streams = {{.events = {JobEventOf(1, SampleJob(v1::RUNNING))}, .hold = true}};
  fake.script.on_hold = [&seen] { seen.stop = true; };
  Connection connection({fake.address(), "test"}, Quick());
  const absl::StatusOr<WatchEnd> end = connection.Watch("j-1", seen.callbacks());
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, WatchEnd::kInterrupted);
}

}  // namespace
}  // namespace param
