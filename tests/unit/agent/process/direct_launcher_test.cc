// Real children, real sockets: the direct launcher with scripts in the worker's place.

#include "agent/process/direct_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include "agent/process/line_splitter.h"
#include "agent/process/state_dir.h"
#include "proto/base/socket_folder.h"
#include "tests/unit/agent/process/process_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FakeEvents final : public WorkerEvents {
 public:
  absl::StatusOr<int> OnGreeting(const AttemptKey&, pid_t peer, absl::string_view line) override {
    peers.push_back(peer);
    greetings.emplace_back(line);
    if (line == "hello") return 0;
    return absl::PermissionDeniedError("no hello");
  }
  void OnConnected(const RankKey& rank) override { connected.push_back(rank.rank); }
  void OnLines(const RankKey&, const std::vector<std::string>& more) override {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  void OnBadStream(const RankKey&, const absl::Status& why) override { bad.push_back(why); }
  void OnOutput(const RankKey&, absl::string_view line) override { output.emplace_back(line); }
  void OnExit(const RankKey& rank, int status) override { exits[rank.rank] = status; }
  void OnSpawned(const RankKey&, pid_t) override {}
  void OnLost(const RankKey&, const absl::Status&) override {}
  void OnLauncherFailed(const AttemptKey&, const absl::Status&) override {}
  void OnDaemonWanted(const StartDaemon&) override {}
  void OnDaemonEnded(const DaemonEnded&) override {}

  std::vector<pid_t> peers;
  std::vector<std::string> greetings, lines, output;
  std::vector<absl::Status> bad;
  std::vector<int> connected;
  std::map<int, int> exits;
};

class DirectLauncherTest : public ProcessTest {
 protected:
  Launched Start(const std::string& script, int ranks = 1, const std::string& fake_script = "") {
    launcher_.emplace(DirectLauncherOptions{.worker_path = Script("worker", script),
                                            .worker_args = {},
                                            .env = {"PATH=/usr/bin:/bin", "DIR=" + folder_},
                                            .socket_root = folder_},
                      DirectLauncher::Parts{.reactor = reactor_.get(),
                                            .children = &children_,
                                            .run_file = &run_file_,
                                            .log = &log_.log});
    launcher_->SetEvents(&events_);
    LaunchRequest request{.key = key_, .ranks = {}, .fake_script = fake_script};
    request.plan.interface = interface_;
    for (int r = 0; r < ranks; ++r) request.ranks.push_back({r, absl::StrCat("token", r)});
    absl::StatusOr<Launched> launched = launcher_->Start(request);
    EXPECT_TRUE(launched.ok()) << launched.status();
    return *std::move(launched);
  }
  // Where the attempt's socket is, as a worker is told.
  std::string SocketPath() {
    EXPECT_TRUE(RunUntil([&] { return !events_.output.empty(); }));
    return events_.output.at(0);
  }
  static Fd Connect(const std::string& path) {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  static void Write(const Fd& fd, const std::string& text) {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t wrote =
          ::send(fd.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (wrote <= 0) return;
      done += static_cast<std::size_t>(wrote);
    }
  }
  static std::string Read(const Fd& fd) {
    std::string text(1 << 16, '\0');
    const ssize_t got = ::recv(fd.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }
  static constexpr char kPrintSocketAndStay[] = "echo $PARAM_WORKER_SOCKET; exec sleep 1000";

  const AttemptKey key_{"j-x", 1};
  std::string interface_;
  FakeEvents events_;
  RunFile run_file_{Path("run.json"), "boot"};
  Children children_{*reactor_, clock_, log_.log};
  std::optional<DirectLauncher> launcher_;
};

TEST_F(DirectLauncherTest, AWorkerGetsSocketAndTokenAndItsOutputComesBeforeItsExit) {
  Start("echo $PARAM_WORKER_TOKEN; echo oops >&2; printf unfinished; exit 4", 2);
  ASSERT_TRUE(RunUntil([&] { return events_.exits.size() == 2; }));
  EXPECT_EQ(WEXITSTATUS(events_.exits[0]), 4);
  EXPECT_THAT(events_.output, ::testing::IsSupersetOf({"token0", "token1", "oops", "unfinished"}));
}

TEST_F(DirectLauncherTest, AWorkerHearsOfTheInterfaceThatTheJobAsksFor) {
  interface_ = "eth7";
  Start("echo [$PARAM_INTERFACE]");
  ASSERT_TRUE(RunUntil([&] { return !events_.exits.empty(); }));
  EXPECT_THAT(events_.output, ElementsAre("[eth7]"));
}

TEST_F(DirectLauncherTest, TheFakeScriptIsAFileInAFolderOfItsOwn) {
  const Launched launched = Start("cat $DIR/param-*/script", 1, "latency 1us\n");
  struct stat info {};
  ASSERT_EQ(::stat(std::filesystem::path(launched.fake_script_path).parent_path().c_str(), &info),
            0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_TRUE(RunUntil([&] { return !events_.exits.empty(); }));
  EXPECT_THAT(events_.output, ElementsAre("latency 1us"));
  launcher_->Release(key_);
  EXPECT_FALSE(std::filesystem::exists(launched.fake_script_path));
}

TEST_F(DirectLauncherTest, TheFolderIsNotTakenForADeadOnesWhileTheAttemptRuns) {
  Start(kPrintSocketAndStay);
  const std::string path = SocketPath();
  EXPECT_EQ(RemoveDeadSocketFolders(folder_), 0);
  EXPECT_TRUE(std::filesystem::exists(path));
  launcher_->Release(key_);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST_F(DirectLauncherTest, LinesGoBothWaysAfterTheGreeting) {
  Start(kPrintSocketAndStay);
  const Fd worker = Connect(SocketPath());
  Write(worker, "hello\nfirst\nsec");
  ASSERT_TRUE(RunUntil([&] { return events_.lines.size() == 1; }));
  EXPECT_THAT(events_.peers, ElementsAre(::getpid()));
  EXPECT_THAT(events_.connected, ElementsAre(0));
  Write(worker, "ond\n");
  ASSERT_TRUE(RunUntil([&] { return events_.lines.size() == 2; }));
  EXPECT_THAT(events_.lines, ElementsAre("first", "second"));
  launcher_->Send({key_, 0}, "answer\n");
  EXPECT_EQ(Read(worker), "answer\n");
}

TEST_F(DirectLauncherTest, ARefusedConnectionIsClosedAndAnotherMayCome) {
  Start(kPrintSocketAndStay);
  const std::string path = SocketPath();
  const Fd stranger = Connect(path);
  Write(stranger, "let me in\nand more\n");
  ASSERT_TRUE(RunUntil([&] { return events_.greetings.size() == 1; }));
  EXPECT_EQ(Read(stranger), "");
  EXPECT_THAT(events_.lines, IsEmpty());
  const Fd worker = Connect(path);
  Write(worker, "hello\n");
  ASSERT_TRUE(RunUntil([&] { return events_.connected.size() == 1; }));
}

TEST_F(DirectLauncherTest, ALineWithoutEndIsABadStreamAndCutOff) {
  Start(kPrintSocketAndStay);
  const Fd worker = Connect(SocketPath());
  Write(worker, "hello\n");
  ASSERT_TRUE(RunUntil([&] {
    Write(worker, std::string(64 << 10, 'x'));
    return !events_.bad.empty();
  }));
  EXPECT_THAT(events_.bad, SizeIs(1));
  EXPECT_THAT(events_.lines, IsEmpty());
}

TEST_F(DirectLauncherTest, ARankThatDoesNotReadIsCutOff) {
  Start(kPrintSocketAndStay);
  const Fd worker = Connect(SocketPath());
  Write(worker, "hello\n");
  ASSERT_TRUE(RunUntil([&] { return !events_.connected.empty(); }));
  const std::string line(1 << 20, 'y');
  for (int i = 0; i < 20; ++i) launcher_->Send({key_, 0}, line);
  EXPECT_TRUE(log_.Has("does not read"));
}

TEST_F(DirectLauncherTest, WhatAWorkerSaidLastIsReadBeforeItsExit) {
  const Launched launched = Start(kPrintSocketAndStay);
  const Fd worker = Connect(SocketPath());
  Write(worker, "hello\n");
  ASSERT_TRUE(RunUntil([&] { return !events_.connected.empty(); }));
  Write(worker, "last words\n");
  launcher_->Signal({key_, 0}, SIGKILL);
  ASSERT_TRUE(RunUntil([&] {
    if (!events_.exits.empty()) {
      EXPECT_THAT(events_.lines, ElementsAre("last words"));
    }
    return !events_.exits.empty();
  }));
  EXPECT_TRUE(IsGone(launched.pids.at(0)));
}

TEST_F(DirectLauncherTest, ASocketPathThatIsTooLongIsSaid) {
  const std::string deep = Path(std::string(100, 'd'));
  std::filesystem::create_directory(deep);
  const auto socket = WorkerSocket::Listen(*reactor_, log_.log, deep + "/s", {});
  EXPECT_EQ(socket.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DirectLauncherTest, AWorkerThatCannotBeStartedIsAFailureOfItsRank) {
  launcher_.emplace(DirectLauncherOptions{.worker_path = Path("missing"), .socket_root = folder_},
                    DirectLauncher::Parts{.reactor = reactor_.get(),
                                          .children = &children_,
                                          .run_file = &run_file_,
                                          .log = &log_.log});
  launcher_->SetEvents(&events_);
  const absl::StatusOr<Launched> launched =
      launcher_->Start({.key = key_, .ranks = {{0, "t"}}, .fake_script = ""});
  ASSERT_TRUE(launched.ok());
  EXPECT_EQ(launched->failed.count(0), 1u);
}

TEST(LineSplitterTest, CutsAtNewlinesAndAtTheLimit) {
  std::vector<std::string> lines;
  const auto take = [&lines](absl::string_view line) { lines.emplace_back(line); };
  LineSplitter splitter(4);
  splitter.Feed("ab\ncdefgh\n\nx", take);
  splitter.Finish(take);
  EXPECT_THAT(lines, ElementsAre("ab", "cdef", "gh", "", "x"));
}

TEST_F(ProcessTest, AStateFolderIsUsedByOneAgentOnly) {
  {
    const absl::StatusOr<StateDir> first = StateDir::Open(Path("state"));
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::StatusOr<StateDir> second = StateDir::Open(Path("state"));
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()),
                ::testing::HasSubstr(absl::StrCat("process ", ::getpid())));
  }
  EXPECT_TRUE(StateDir::Open(Path("state")).ok());
}

}  // namespace
}  // namespace param::agent
