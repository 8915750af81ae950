#include "client/cmd/fleet_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/client/cmd/harness.h"

namespace param {
namespace {

class Fleet : public testing::Test {
 protected:
  Fleet() {
    std::string pattern = (std::filesystem::path(testing::TempDir()) / "fleetXXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    harness_.program_folder = folder_ + "/bin";
    std::filesystem::create_directories(harness_.program_folder);
  }
  ~Fleet() override { std::filesystem::remove_all(folder_); }

  std::string Log() const { return folder_ + "/log.txt"; }
  std::string Read(const std::string& path) const {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Program(const std::string& name, const std::string& script) {
    const std::string path = harness_.program_folder + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << script;
    chmod(path.c_str(), 0755);
  }

  std::string folder_;
  Harness harness_;
};

TEST_F(Fleet, StartsDetachedWithNoDescriptorOfOurs) {
  const std::string ready = folder_ + "/ready";
  ASSERT_EQ(mkfifo(ready.c_str(), 0600), 0);
  const int leaked = open((folder_ + "/leak").c_str(), O_RDWR | O_CREAT, 0600);  // no O_CLOEXEC
  const absl::StatusOr<FleetProcess> process = StartDetached(
      "x",
      {"/bin/sh", "-c",
       "for f in /proc/$$/fd/*; do readlink $f; done; pwd; echo > " + ready + "; exec sleep 100"},
      folder_, Log());
  close(leaked);
  ASSERT_TRUE(process.ok()) << process.status();
  Read(ready);  // blocks until all is written
  EXPECT_EQ(getsid(process->pid), process->pid);
  const std::string log = Read(Log());
  EXPECT_TRUE(Contains(log, "/dev/null\n" + Log() + "\n" + Log() + "\n")) << log;
  EXPECT_FALSE(Contains(log, "/leak")) << log;
  EXPECT_TRUE(Contains(log, "\n" + folder_ + "\n")) << log;
  EXPECT_TRUE(StopAll({*process}, absl::Seconds(20)).empty());
  EXPECT_FALSE(IsRunning(*process));
}

TEST_F(Fleet, KillsWhatIgnoresTheRequest) {
  const std::string ready = folder_ + "/ready";
  ASSERT_EQ(mkfifo(ready.c_str(), 0600), 0);
  const absl::StatusOr<FleetProcess> process = StartDetached(
      "stubborn",
      {"/bin/sh", "-c", "trap '' TERM; echo > " + ready + "; while :; do sleep 1; done"}, folder_,
      Log());
  ASSERT_TRUE(process.ok()) << process.status();
  Read(ready);  // blocks until the trap is set
  EXPECT_EQ(StopAll({*process}, absl::Milliseconds(100)), std::vector<std::string>{"stubborn"});
  EXPECT_FALSE(IsRunning(*process));
}

TEST_F(Fleet, AnotherProcessWithTheSamePidIsNotOurs) {
  absl::StatusOr<FleetProcess> process =
      StartDetached("x", {"/bin/sh", "-c", "exec sleep 100"}, folder_, Log());
  ASSERT_TRUE(process.ok());
  FleetProcess other = *process;
  other.start_time += 1;
  EXPECT_FALSE(IsRunning(other));
  StopAll({other}, absl::Seconds(1));
  EXPECT_TRUE(IsRunning(*process));
  StopAll({*process}, absl::Seconds(20));
}

TEST_F(Fleet, RecordSurvivesTheDisk) {
  const FleetRecord record = {.nodes = 2,
                              .listen = "127.0.0.1:7700",
                              .http = "127.0.0.1:7701",
                              .processes = {{"server", 17, 12345}, {"n1", 18, 12346}}};
  ASSERT_TRUE(WriteFleet(folder_, record).ok());
  const absl::StatusOr<FleetRecord> back = ReadFleet(folder_);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->listen, record.listen);
  ASSERT_EQ(back->processes.size(), 2u);
  EXPECT_EQ(back->processes[1].start_time, 12346u);
}

TEST_F(Fleet, GarbageInTheRecordIsAnError) {
  std::ofstream(folder_ + "/fleet.json") << "{";
  EXPECT_TRUE(absl::IsDataLoss(ReadFleet(folder_).status()));
}

TEST_F(Fleet, OnlyOneMayWorkInAFolder) {
  const absl::StatusOr<FolderLock> first = FolderLock::Take(folder_);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(FolderLock::Take(folder_).status()));
}

TEST_F(Fleet, DownWithoutAFleetIsGood) {
  const Ran ran = harness_.Run({"down", "--state", folder_});
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(Contains(ran.err, "not running"));
}

TEST_F(Fleet, UpWithoutProgramsSaysWhatIsMissing) {
  const Ran ran = harness_.Run({"up", "--state", folder_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Contains(ran.err, "param-server")) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/fleet.json"));
}

TEST_F(Fleet, UpShowsTheLogOfACoordinatorThatEnded) {
  Program("param-server", "echo the disk is full; exit 1\n");
  const Ran ran = harness_.Run({"up", "--state", folder_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Contains(ran.err, "the disk is full")) << ran.err;
  EXPECT_TRUE(Contains(ran.err, "the coordinator ended at once")) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/fleet.json"));
}

TEST_F(Fleet, UpShowsNothingOfAnEarlierFleetsLog) {
  Program("param-server", "echo the disk is full; exit 1\n");
  harness_.Run({"up", "--state", folder_});
  Program("param-server", "echo no such flag; exit 1\n");
  const Ran ran = harness_.Run({"up", "--state", folder_});
  EXPECT_TRUE(Contains(ran.err, "no such flag")) << ran.err;
  EXPECT_FALSE(Contains(ran.err, "the disk is full")) << ran.err;
  EXPECT_TRUE(Contains(Read(folder_ + "/log/server.log.old"), "the disk is full"));
}

TEST_F(Fleet, UpStopsWhatItStartedWhenAnAgentEnds) {
  Program("param-server", "echo $$ > " + folder_ +
                              "/server.pid\n"
                              "echo 127.0.0.1:1 > \"$6/listen\"; echo 127.0.0.1:2 > \"$6/http\"\n"
                              "exec sleep 100\n");
  Program("param-agent", "echo no such flag; exit 2\n");
  const Ran ran = harness_.Run({"up", "--nodes", "2", "--state", folder_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Contains(ran.err, "no such flag")) << ran.err;
  const pid_t pid = std::stoi(Read(folder_ + "/server.pid"));
  EXPECT_FALSE(std::filesystem::exists("/proc/" + std::to_string(pid))) << "still runs";
}

TEST_F(Fleet, DownStopsWhatIsRecordedAndForgetsIt) {
  const absl::StatusOr<FleetProcess> server =
      StartDetached("server", {"/bin/sh", "-c", "exec sleep 100"}, folder_, Log());
  ASSERT_TRUE(server.ok());
  ASSERT_TRUE(
      WriteFleet(folder_, {.nodes = 1, .listen = "", .http = "", .processes = {*server}}).ok());
  EXPECT_EQ(harness_.Run({"down", "--state", folder_}).code, 0);
  EXPECT_FALSE(IsRunning(*server));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/fleet.json"));
}

TEST_F(Fleet, UpSaysThatAFleetOfAnotherSizeIsUp) {
  const absl::StatusOr<FleetProcess> server =
      StartDetached("server", {"/bin/sh", "-c", "exec sleep 100"}, folder_, Log());
  ASSERT_TRUE(server.ok());
  ASSERT_TRUE(WriteFleet(folder_,
                         {.nodes = 2, .listen = "127.0.0.1:5", .http = "h", .processes = {*server}})
                  .ok());
  EXPECT_EQ(harness_.Run({"up", "--nodes", "2", "--state", folder_}).code, 0);
  EXPECT_TRUE(Contains(harness_.Run({"up", "--nodes", "2", "--state", folder_, "-o", "json"}).out,
                       "\"listen\": \"127.0.0.1:5\""));
  const Ran other = harness_.Run({"up", "--nodes", "3", "--state", folder_});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(Contains(other.err, "a fleet of 2 nodes is up"));
  StopAll({*server}, absl::Seconds(20));
}

}  // namespace
}  // namespace param
