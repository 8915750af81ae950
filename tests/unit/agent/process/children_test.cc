#include "agent/process/children.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agent/process/run_file.h"
#include "agent/process/worker_env.h"
#include "proto/base/handle.h"
#include "proto/base/socket_folder.h"
#include "tests/unit/agent/process/process_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ChildrenTest : public ProcessTest {
 protected:
  pid_t Shell(const std::string& body, const std::string& tag = "TAG=none") {
    const absl::StatusOr<pid_t> pid =
        children_.Spawn({.path = "/bin/sh",
                         .args = {"-c", body},
                         .env = {"PATH=/usr/bin:/bin", "DIR=" + folder_, tag},
                         .tag = tag},
                        [this](int status) { statuses_.push_back(status); });
    EXPECT_TRUE(pid.ok()) << pid.status();
    return pid.ok() ? *pid : 0;
  }
  // The numbers that a script wrote into a file, once there are `count`.
  std::vector<pid_t> WaitForPids(const std::string& name, std::size_t count) {
    std::vector<pid_t> pids;
    EXPECT_TRUE(RunUntil([&] {
      pids.clear();
      for (const absl::string_view word :
           absl::StrSplit(ReadFile(Path(name)), '\n', absl::SkipEmpty())) {
        pid_t pid = 0;
        if (absl::SimpleAtoi(word, &pid)) pids.push_back(pid);
      }
      return pids.size() >= count;
    }));
    return pids;
  }
  bool WaitForExit(std::size_t count = 1) {
    return RunUntil([&] { return statuses_.size() >= count; });
  }

  std::vector<int> statuses_;
  Children children_{*reactor_, clock_, log_.log};
};

TEST_F(ChildrenTest, ReportsHowAChildEnded) {
  Shell("exit 7");
  ASSERT_TRUE(WaitForExit());
  EXPECT_EQ(WEXITSTATUS(statuses_[0]), 7);
  Shell("kill -SEGV $$");
  ASSERT_TRUE(WaitForExit(2));
  EXPECT_EQ(WTERMSIG(statuses_[1]), SIGSEGV);
  EXPECT_EQ(children_.size(), 0u);
}

TEST_F(ChildrenTest, AProgramThatIsNotThereIsAnError) {
  const absl::StatusOr<pid_t> pid = children_.Spawn({.path = "/no/such/program"}, [](int) {});
  EXPECT_THAT(std::string(pid.status().message()), ::testing::HasSubstr("/no/such/program"));
}

TEST_F(ChildrenTest, AChildInheritsNoDescriptorAndLeadsItsOwnGroup) {
  const Fd leaky(::open("/dev/null", O_RDONLY));  // as a careless library opens it
  ASSERT_GE(leaky.get(), 3);
  const pid_t pid = Shell("ls /proc/$$/fd > $DIR/fds; cut -d' ' -f5 /proc/$$/stat > $DIR/group");
  ASSERT_TRUE(WaitForExit());
  for (const absl::string_view fd : absl::StrSplit(ReadFile(Path("fds")), '\n')) {
    EXPECT_NE(fd, absl::StrCat(leaky.get()));
  }
  EXPECT_EQ(ReadFile(Path("group")), absl::StrCat(pid, "\n"));
}

TEST_F(ChildrenTest, AGroupThatIgnoresSigtermDiesOfSigkill) {
  const pid_t pid = Shell("trap '' TERM; echo $$ > $DIR/pids; while :; do sleep 1; done");
  WaitForPids("pids", 1);
  children_.Signal(pid, SIGTERM);
  EXPECT_FALSE(RunUntil([&] { return !statuses_.empty(); }, absl::Milliseconds(300)));
  children_.Signal(pid, SIGKILL);
  ASSERT_TRUE(WaitForExit());
  EXPECT_EQ(WTERMSIG(statuses_[0]), SIGKILL);
}

TEST_F(ChildrenTest, GrandchildrenDieWithTheirLeader) {
  Shell("sleep 1000 & echo $! > $DIR/pids; exit 0");
  const std::vector<pid_t> pids = WaitForPids("pids", 1);
  ASSERT_TRUE(WaitForExit());
  EXPECT_TRUE(IsGone(pids[0]));
}

TEST_F(ChildrenTest, WhatLeftTheGroupDiesToo) {
  Shell(
      "setsid sh -c 'echo $$ > $DIR/pids; exec sleep 1000' & "
      "while [ ! -s $DIR/pids ]; do sleep 0.02; done; exit 0");
  const std::vector<pid_t> pids = WaitForPids("pids", 1);
  ASSERT_TRUE(WaitForExit());
  EXPECT_TRUE(IsGone(pids[0]));
}

TEST_F(ChildrenTest, WhatLeftTheGroupIsToldFromAnotherChilds) {
  const std::string body =
      "setsid sh -c 'echo $$ > $DIR/NAME; exec sleep 1000' & "
      "while [ ! -s $DIR/NAME ]; do sleep 0.02; done; ";
  const auto named = [&body](const std::string& name) {
    std::string text = body;
    for (std::size_t at; (at = text.find("NAME")) != std::string::npos;) text.replace(at, 4, name);
    return text;
  };
  // The first one's stray is orphaned at once, and must outlive the second's end.
  const pid_t first = Shell("(" + named("a") + ") ; sleep 1000", "TAG=first");
  const std::vector<pid_t> a = WaitForPids("a", 1);
  Shell(named("b"), "TAG=second");
  const std::vector<pid_t> b = WaitForPids("b", 1);
  ASSERT_TRUE(WaitForExit());
  EXPECT_TRUE(IsGone(b[0]));
  EXPECT_FALSE(IsGone(a[0]));
  children_.Signal(first, SIGKILL);
  ASSERT_TRUE(WaitForExit(2));
  EXPECT_TRUE(IsGone(a[0]));
}

TEST_F(ChildrenTest, NoZombieIsLeft) {
  for (int i = 0; i < 5; ++i) Shell("sleep 1000 & exit 0");
  ASSERT_TRUE(WaitForExit(5));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(ChildrenTest, DestructionKillsWhatStillRuns) {
  std::vector<pid_t> pids;
  {
    Children inner(*reactor_, clock_, log_.log);
    const absl::StatusOr<pid_t> pid = inner.Spawn(
        {.path = "/bin/sh", .args = {"-c", "sleep 1000"}, .env = {"PATH=/bin"}}, [](int) {});
    ASSERT_TRUE(pid.ok());
    pids.push_back(*pid);
  }
  EXPECT_TRUE(IsGone(pids[0]));
}

TEST_F(ChildrenTest, ARunFileLetsTheNextAgentClearUp) {
  const pid_t pid = Shell("sleep 1000 & echo $! > $DIR/pids; wait");
  const std::vector<pid_t> pids = WaitForPids("pids", 1);
  // As an agent leaves it that was killed: the lock is free.
  const std::string folder = MakeSocketFolder(folder_)->path;
  std::ofstream(folder + "/s") << "";
  RunFile(Path("run.json"), "boot-1").Add({pid}, folder);

  EXPECT_EQ(RunFile(Path("run.json"), "boot-1").ClearLeftovers(log_.log), 2);
  ASSERT_TRUE(WaitForExit());
  EXPECT_TRUE(IsGone(pids[0]));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ChildrenTest, ARunFileRemovesNoFolderThatIsInUseOrWasNeverOurs) {
  const SocketFolder used = *MakeSocketFolder(folder_);
  const std::string foreign = Path("param-foreign"), open = Path("param-abcdef");
  for (const std::string& each : {foreign, open}) {
    std::filesystem::create_directory(each);
    std::ofstream(each + "/agent.lock") << "";
  }
  std::filesystem::permissions(open, std::filesystem::perms::all);
  RunFile before(Path("run.json"), "boot-1");
  for (const std::string& each : {used.path, foreign, open}) before.Add({}, each);
  RunFile(Path("run.json"), "boot-1").ClearLeftovers(log_.log);
  for (const std::string& each : {used.path, foreign, open}) {
    EXPECT_TRUE(std::filesystem::exists(each + "/agent.lock")) << each;
  }
}

TEST_F(ChildrenTest, ARunFileOfAnotherBootOrProcessKillsNobody) {
  const pid_t pid = Shell("sleep 1000");
  RunFile(Path("run.json"), "boot-1").Add({pid}, "");
  EXPECT_EQ(RunFile(Path("run.json"), "boot-2").ClearLeftovers(log_.log), 0);
  std::ofstream(Path("run.json")) << R"({"boot_id": "boot-1", "processes": [{"pid": )" << pid
                                  << R"(, "start": 1}], "folders": []})";
  EXPECT_EQ(RunFile(Path("run.json"), "boot-1").ClearLeftovers(log_.log), 0);
  std::ofstream(Path("run.json")) << "rubbish";
  EXPECT_EQ(RunFile(Path("run.json"), "boot-1").ClearLeftovers(log_.log), 0);
  EXPECT_FALSE(IsGone(pid));
}

TEST(WorkerEnvironmentTest, AnEntryThatIsNoVariableChangesNothing) {
  std::vector<std::string> env = {"A=1", "AB=2"};
  EXPECT_TRUE(SetVariable(&env, "A=3"));
  EXPECT_THAT(env, ElementsAre("AB=2", "A=3"));
  for (const std::string& entry :
       {std::string(), std::string("A"), std::string("=x"), std::string("A=\0x", 4)}) {
    EXPECT_FALSE(SetVariable(&env, entry)) << entry;
    EXPECT_THAT(env, ElementsAre("AB=2", "A=3"));
  }
}

TEST(WorkerEnvironmentTest, PassesWhatLibrariesNeedAndNoSecret) {
  EXPECT_THAT(WorkerEnvironment({"AWS_SECRET_ACCESS_KEY=x", "PATH=/bin", "NCCL_DEBUG=INFO",
                                 "OPENBLAS_CORETYPE=Haswell", "PARAM_TOKEN=t", "nonsense",
                                 "CUDA_LAUNCH_BLOCKING=1", "PATHOLOGY=1", "GITHUB_TOKEN=y"}),
              ElementsAre("NCCL_DEBUG=INFO", "OPENBLAS_CORETYPE=Haswell", "PATH=/bin"));
}

}  // namespace
}  // namespace param::agent
