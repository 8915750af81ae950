// Real processes: the launcher "mpirun" with scripts in the place of mpirun, orted and the rank,
// and the real helpers between them. The test plays the coordinator.

#include "agent/process/mpirun_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "proto/base/random.h"
#include "tests/unit/agent/process/process_fixture.h"

namespace param::agent {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FakeEvents final : public WorkerEvents {
 public:
  absl::StatusOr<int> OnGreeting(const AttemptKey&, pid_t, absl::string_view) override {
    return absl::PermissionDeniedError("no hello");
  }
  void OnConnected(const RankKey&) override {}
  void OnLines(const RankKey&, const std::vector<std::string>&) override {}
  void OnBadStream(const RankKey&, const absl::Status&) override {}
  void OnOutput(const RankKey&, absl::string_view line) override { output.emplace_back(line); }
  void OnExit(const RankKey& rank, int status) override { exits[rank.rank] = status; }
  void OnSpawned(const RankKey& rank, pid_t pid) override { pids[rank.rank] = pid; }
  void OnLost(const RankKey& rank, const absl::Status& why) override { lost[rank.rank] = why; }
  void OnLauncherFailed(const AttemptKey& key, const absl::Status& why) override {
    failures.push_back(why);
    launcher->Abort(key);  // as the supervisor does
  }
  // The coordinator of one node: what it asks for comes back to it.
  void OnDaemonWanted(const StartDaemon& wanted) override {
    StartDaemon relayed = wanted;
    if (edit) edit(&relayed);
    launcher->Start(relayed);
  }
  void OnDaemonEnded(const DaemonEnded& ended) override {
    daemons.push_back(ended);
    launcher->Ended(ended);
  }

  MpirunLauncher* launcher = nullptr;
  std::function<void(StartDaemon*)> edit;
  std::vector<std::string> output;
  std::map<int, int> exits;
  std::map<int, pid_t> pids;
  std::map<int, absl::Status> lost;
  std::vector<absl::Status> failures;
  std::vector<DaemonEnded> daemons;
};

class MpirunLauncherTest : public ProcessTest {
 protected:
  // mpirun: has its shim start orted on the host, with what the real one says, and ends like it.
  static constexpr char kMpirun[] =
      "for a in \"$@\"; do [ \"$before\" = plm_rsh_agent ] && shim=\"$a\"; before=\"$a\"; done\n"
      "$shim pnode0 ' orted' -mca ess '\"env\"' -mca ess_base_jobid '\"77\"' -mca ess_base_vpid 1 "
      "-mca ess_base_num_procs '\"2\"' -mca orte_node_regex '\"vm,pnode[1:0]@0(2)\"' "
      "-mca orte_hnp_uri '\"77.0;tcp://127.0.0.1:5\"' -mca plm_rsh_no_tree_spawn '\"1\"' "
      "-mca orte_leave_session_attached 1 -mca plm rsh -mca pml ob1 -mca btl self,vader,tcp "
      "-mca btl_tcp_if_include lo -mca mpi_yield_when_idle 0 -mca if_base_do_not_resolve 1 "
      "-mca hwloc_base_binding_policy none -mca rmaps_base_mapping_policy slot "
      "-mca pmix '\"^s1,s2,cray,isolated\"' "
      "-mca oob_tcp_if_include '\"lo\"' -mca plm_rsh_agent \"\\\"$shim\\\"\"";
  // orted: starts rank 0 by the name that mpirun was told.
  static constexpr char kOrted[] =
      "OMPI_COMM_WORLD_RANK=0 PMIX_ID=seen SECRET=y OMPI_MCA_mca_base_component_path=/evil "
      "PMIX_MCA_x=y worker --launch-rank OMPI_COMM_WORLD_RANK";

  absl::StatusOr<Launched> Start(const std::string& rank, const std::string& mpirun = kMpirun,
                                 const std::string& orted = kOrted, int ranks = 1) {
    const std::string helper = std::string(PARAM_BINARY_DIR) + "/bin/param-worker";
    const std::string worker =
        Script("worker",
               absl::StrCat("case \"$1\" in\n--follow) p=\"$2\"; shift 3; exec \"$p\" \"$@\";;\n",
                            "--launch-*) exec ", helper, " \"$@\";;\nesac\n", rank));
    std::filesystem::create_directory(Path("mpi"));
    if (!mpirun.empty()) Script("mpi/mpirun", mpirun);
    if (!orted.empty()) Script("mpi/orted", orted);
    launcher_.emplace(
        MpirunLauncherOptions{.node = "n1",
                              .ranks = {.worker_path = worker,
                                        .worker_args = {},
                                        .env = {"PATH=/usr/bin:/bin", "OMPI_MCA_btl=old"},
                                        .socket_root = folder_},
                              .mpi_folder = Path("mpi"),
                              .memory_root = folder_},
        MpirunLauncher::Parts{.reactor = reactor_.get(),
                              .children = &children_,
                              .run_file = &run_file_,
                              .random = &random_,
                              .log = &log_.log});
    launcher_->SetEvents(&events_);
    events_.launcher = &*launcher_;
    LaunchRequest request{.key = key_, .ranks = {}, .fake_script = ""};
    for (int r = 0; r < ranks; ++r) request.ranks.push_back({r, absl::StrCat("token", r)});
    request.plan.hosts = {{"pnode0", "n1", ranks}};
    request.plan.head_addresses = {"127.0.0.1"};
    request.plan.interface = "lo";
    return launcher_->Start(request);
  }
  bool Gone() const { return launcher_->IsGone(key_); }
  std::vector<std::string> Folders() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (absl::StartsWith(name, "param-")) found.push_back(name);
    }
    return found;
  }

  Children children_{*reactor_, clock_, log_.log};
  RunFile run_file_{Path("run.json"), "boot"};
  SystemRandom random_;
  const AttemptKey key_{"j-test", 1};
  FakeEvents events_;
  std::optional<MpirunLauncher> launcher_;
};

TEST_F(MpirunLauncherTest, ARankIsTheAgentsOwnChildWithTheLaunchersVariables) {
  const absl::StatusOr<Launched> launched = Start(
      "echo $PMIX_ID $OMPI_COMM_WORLD_RANK $PARAM_WORKER_TOKEN $OMPI_MCA_btl [$SECRET]"
      "[$PARAM_LAUNCH_TOKEN][$OMPI_MCA_mca_base_component_path][$PMIX_MCA_x] $PPID");
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_EQ(launched->pids.at(0), 0);  // it comes later
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  EXPECT_THAT(events_.output, Contains(absl::StrCat("seen 0 token0 old [][][][] ", ::getpid())));
  EXPECT_EQ(events_.exits.at(0), 0);
  EXPECT_GT(events_.pids.at(0), 0);
  EXPECT_THAT(events_.failures, IsEmpty());
  ASSERT_THAT(events_.daemons, SizeIs(1));
  EXPECT_EQ(events_.daemons[0].exit_code, 0);
  launcher_->Release(key_);
  EXPECT_THAT(Folders(), IsEmpty());
}

TEST_F(MpirunLauncherTest, TheLauncherLearnsHowARankDied) {
  ASSERT_TRUE(
      Start("kill -9 $$", kMpirun, absl::StrCat(kOrted, "; echo rank ended with $?; exit 3")).ok());
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  EXPECT_EQ(events_.exits.at(0), SIGKILL);
  EXPECT_THAT(events_.lost, IsEmpty());
  ASSERT_THAT(events_.daemons, SizeIs(1));
  EXPECT_EQ(events_.daemons[0].exit_code, 3);
  EXPECT_THAT(events_.daemons[0].cause, HasSubstr("orted exited with 3"));
  EXPECT_THAT(events_.daemons[0].cause, HasSubstr("rank ended with 137"));
}

TEST_F(MpirunLauncherTest, RanksOfOneNodeShareAFolderInMemory) {
  ASSERT_TRUE(Start("echo $OMPI_MCA_btl_vader_backing_directory; exit 1", kMpirun, kOrted, 2).ok());
  ASSERT_TRUE(RunUntil([this] { return events_.exits.contains(0); }));
  EXPECT_THAT(events_.output, Contains(HasSubstr(folder_ + "/param-")));
  launcher_->Abort(key_);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  EXPECT_EQ(events_.lost.at(1).code(), absl::StatusCode::kCancelled);
  launcher_->Release(key_);
  EXPECT_THAT(Folders(), IsEmpty());
}

TEST_F(MpirunLauncherTest, WithoutMpirunNothingStarts) {
  const absl::StatusOr<Launched> launched = Start("exit 0", "");
  EXPECT_EQ(launched.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(launched.status().message()), HasSubstr("mpirun is not in"));
  EXPECT_THAT(std::string(launched.status().message()), HasSubstr("node n1"));
  EXPECT_THAT(Folders(), IsEmpty());
  EXPECT_TRUE(Gone());
}

TEST_F(MpirunLauncherTest, WithoutOrtedTheNodeSaysSo) {
  ASSERT_TRUE(Start("exit 0", kMpirun, "").ok());
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  ASSERT_THAT(events_.failures, SizeIs(1));
  EXPECT_EQ(events_.failures[0].code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(events_.failures[0].message()), HasSubstr("orted is not in"));
  EXPECT_TRUE(events_.lost.contains(0));
  ASSERT_THAT(events_.daemons, SizeIs(1));  // mpirun hears of it, too
  EXPECT_EQ(events_.daemons[0].exit_code, 1);
}

TEST_F(MpirunLauncherTest, ACommandLineThatIsNotLetThroughStartsNothing) {
  events_.edit = [this](StartDaemon* wanted) {
    wanted->args = {"/bin/sh", "-c", "touch " + Path("hacked")};
  };
  ASSERT_TRUE(Start("exit 0").ok());
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  ASSERT_THAT(events_.failures, SizeIs(1));
  EXPECT_EQ(events_.failures[0].code(), absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(std::filesystem::exists(Path("hacked")));
  EXPECT_TRUE(log_.Has("orted not started"));
}

TEST_F(MpirunLauncherTest, AHostMayHaveOneDaemonOnly) {
  ASSERT_TRUE(Start("sleep 600", absl::StrCat(kMpirun, " & wait")).ok());
  ASSERT_TRUE(RunUntil([this] { return events_.pids.contains(0); }));
  launcher_->Start(StartDaemon{key_, "pnode0", {"orted"}});
  ASSERT_THAT(events_.failures, SizeIs(1));
  EXPECT_THAT(std::string(events_.failures[0].message()), HasSubstr("a second time"));
  launcher_->Signal({key_, 0}, SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

TEST_F(MpirunLauncherTest, ADaemonThatIsAskedForAgainIsTheSameOne) {
  StartDaemon wanted;
  events_.edit = [&wanted](StartDaemon* each) { wanted = *each; };
  ASSERT_TRUE(Start("sleep 600", absl::StrCat(kMpirun, " & wait")).ok());
  ASSERT_TRUE(RunUntil([this] { return events_.pids.contains(0); }));
  const std::size_t running = children_.size();
  launcher_->Start(wanted);
  EXPECT_EQ(children_.size(), running);
  EXPECT_THAT(events_.failures, IsEmpty());
  EXPECT_THAT(events_.daemons, IsEmpty());
  launcher_->Signal({key_, 0}, SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return !events_.daemons.empty(); }));
  const int code = events_.daemons[0].exit_code;
  launcher_->Start(wanted);  // the head has not heard of the end, it seems
  ASSERT_THAT(events_.daemons, SizeIs(2));
  EXPECT_EQ(events_.daemons[1].exit_code, code);
  launcher_->Abort(key_);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

TEST_F(MpirunLauncherTest, ASecondHelperForAHostIsSentAway) {
  // Both ask for the same host; the launcher answers the second by itself.
  const std::string twice =
      absl::StrReplaceAll(kMpirun, {{"$shim pnode0", "ask() { $shim pnode0"}});
  int asked = 0;
  events_.edit = [&asked](StartDaemon*) { ++asked; };
  ASSERT_TRUE(
      Start("sleep 600", absl::StrCat(twice, "; }\nask & sleep 0.3; ask; echo second $?; wait"))
          .ok());
  ASSERT_TRUE(RunUntil([this] {
    return std::any_of(events_.output.begin(), events_.output.end(),
                       [](const std::string& line) { return absl::StrContains(line, "second "); });
  }));
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(log_.Has("a second daemon for host pnode0"));
  launcher_->Abort(key_);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

TEST_F(MpirunLauncherTest, AMouthThatNeverStopsDoesNotKeepTheOthersWaiting) {
  ASSERT_TRUE(Start("exit 0", "exec yes babble").ok());
  int rounds = 0;
  EXPECT_TRUE(RunUntil([&rounds] { return ++rounds > 20; }));
  launcher_->Abort(key_);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

TEST_F(MpirunLauncherTest, TheFolderInMemoryIsNotTakenForADeadOnesWhileItIsUsed) {
  ASSERT_TRUE(Start("sleep 600", kMpirun, kOrted, 2).ok());
  EXPECT_THAT(Folders(), SizeIs(2));  // the socket's and the memory's
  EXPECT_EQ(RemoveDeadSocketFolders(folder_), 0);
  EXPECT_THAT(Folders(), SizeIs(2));
  launcher_->Abort(key_);
  ASSERT_TRUE(RunUntil([this] { return events_.pids.contains(0) || Gone(); }));
  launcher_->Signal({key_, 0}, SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

TEST_F(MpirunLauncherTest, AHelperWithAWrongTokenIsNotHeard) {
  ASSERT_TRUE(Start("exit 0", absl::StrCat("export PARAM_LAUNCH_TOKEN=guessed\n", kMpirun)).ok());
  ASSERT_TRUE(RunUntil([this] { return !events_.failures.empty(); }));
  EXPECT_TRUE(log_.Has("a wrong token"));
  EXPECT_THAT(std::string(events_.failures[0].message()), HasSubstr("mpirun exited with 3"));
  EXPECT_THAT(events_.daemons, IsEmpty());
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

TEST_F(MpirunLauncherTest, AKilledMpirunIsTheFailure) {
  ASSERT_TRUE(
      Start("sleep 600", absl::StrCat("echo $$ > ", Path("pid"), "\n", kMpirun, " & wait")).ok());
  ASSERT_TRUE(RunUntil([this] { return events_.pids.contains(0); }));
  ASSERT_EQ(::kill(std::stoi(ReadFile(Path("pid"))), SIGKILL), 0);
  ASSERT_TRUE(RunUntil([this] { return !events_.failures.empty(); }));
  EXPECT_EQ(events_.failures[0].message(), "mpirun killed by SIGKILL");
  launcher_->Signal({key_, 0}, SIGKILL);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  EXPECT_TRUE(IsGone(events_.pids.at(0)));
}

TEST_F(MpirunLauncherTest, MpirunsLastWordsAreInTheFailure) {
  ASSERT_TRUE(Start("exit 0", "echo -----\necho no route to host; exit 5").ok());
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  ASSERT_THAT(events_.failures, SizeIs(1));
  EXPECT_EQ(events_.failures[0].message(), "mpirun exited with 5: no route to host");
  EXPECT_THAT(events_.output, Contains("mpirun: no route to host"));
}

TEST_F(MpirunLauncherTest, ARankThatItsLauncherLetsGoOfEndsAndWaitsForABetterReason) {
  // orted leaves, and with it the helper.
  ASSERT_TRUE(Start("sleep 600", absl::StrCat(kMpirun, "; sleep 600"),
                    absl::StrCat(kOrted, " & sleep 0.3; kill $!; exit 0"))
                  .ok());
  ASSERT_TRUE(RunUntil([this] { return events_.lost.contains(0) || !events_.failures.empty(); }));
  const absl::Status why = events_.failures.empty() ? events_.lost.at(0) : events_.failures.front();
  EXPECT_THAT(std::string(why.message()),
              AnyOf(HasSubstr("mpirun ended this rank"), HasSubstr("orted exited with 0")));
  EXPECT_TRUE(RunUntil([this] { return IsGone(events_.pids.at(0)); }));
  launcher_->Abort(key_);
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

TEST_F(MpirunLauncherTest, AnAbortEndsProgramsThatDoNotCare) {
  ASSERT_TRUE(Start("exit 0", "trap '' TERM; echo ready; while :; do sleep 1; done").ok());
  ASSERT_TRUE(RunUntil([this] { return !events_.output.empty(); }));
  EXPECT_FALSE(Gone());
  launcher_->Abort(key_);
  EXPECT_THAT(events_.lost, IsEmpty());  // not from within the call
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
  EXPECT_TRUE(events_.lost.contains(0));
  EXPECT_THAT(events_.failures, IsEmpty());
  EXPECT_EQ(children_.size(), 0u);
}

TEST_F(MpirunLauncherTest, APlanWithoutThisNodeIsAnError) {
  ASSERT_TRUE(Start("exit 0").ok());
  LaunchRequest request{.key = {"j-other", 1}, .ranks = {{0, "t"}}, .fake_script = ""};
  request.plan.hosts = {{"pnode0", "n2", 1}};
  EXPECT_THAT(std::string(launcher_->Start(request).status().message()), HasSubstr("node n1"));
  ASSERT_TRUE(RunUntil([this] { return Gone(); }));
}

}  // namespace
}  // namespace param::agent
