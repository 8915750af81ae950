#include "agent/process/backend_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/agent/process/process_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BackendListTest : public ProcessTest {
 protected:
  void Install(const std::string& name) {
    const std::string folder = Path("backends/" + name);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + name + ".so") << "";
    std::ofstream(folder + "/manifest.json")
        << R"({"name": ")" << name
        << R"(", "abi_major": 1, "abi_minor": 0, "tables": ["device"], "benchmarks": ["*"],)"
        << R"( "object": ")" << name << R"(.so", "libraries": [], "memory": ["host"],)"
        << R"( "streams": ["cpu"], "summary": "x"})";
  }
  void Probe(const std::string& worker, const std::vector<std::string>& folders,
             const std::string& filter = "", absl::Duration deadline = absl::Seconds(20)) {
    prober_.emplace(BackendProber::Options{.worker_path = worker,
                                           .env = {"PATH=/usr/bin:/bin", "DIR=" + folder_},
                                           .deadline = deadline},
                    *reactor_, children_);
    list_.emplace(
        folders, *ParseBackendFilter(filter),
        BackendList::Parts{.reactor = reactor_.get(), .prober = &*prober_, .log = &log_.log});
    bool done = false;
    list_->ProbeAll([&done] { done = true; });
    ASSERT_TRUE(RunUntil([&done] { return done; }));
  }
  void ProbeScript(const std::string& body, const std::string& filter = "",
                   absl::Duration deadline = absl::Seconds(20)) {
    Probe(Script("worker", body), {Path("backends")}, filter, deadline);
  }
  const BackendStatus& Status(const std::string& name) {
    statuses_ = list_->statuses();
    for (const BackendStatus& status : statuses_) {
      if (status.name == name) return status;
    }
    ADD_FAILURE() << "no backend " << name;
    static const BackendStatus none;
    return none;
  }

  Children children_{*reactor_, clock_, log_.log};
  std::optional<BackendProber> prober_;
  std::optional<BackendList> list_;
  std::vector<BackendStatus> statuses_;
};

TEST_F(BackendListTest, AnAnswerMakesABackendUsable) {
  Install("x");
  ProbeScript(R"(echo '{"name": "x", "version": "1.2", "loadable": true, "usable": true,
    "reason": "", "devices": 3, "tables": ["device"],
    "describe": {"libraries": {"libx": "4"}}}')");
  const BackendStatus& status = Status("x");
  EXPECT_TRUE(status.installed && status.loadable && status.usable) << status.reason;
  EXPECT_EQ(status.version, "1.2");
  EXPECT_EQ(status.devices, 3);
  EXPECT_EQ(list_->Devices("x"), 3);
  EXPECT_EQ(*list_->Path("x"), Path("backends/x/x.so"));
  EXPECT_EQ(list_->libraries().at("libx"), "4");
}

struct BadProbe {
  const char* name;
  const char* script;
  const char* reason;
};
class BadProbeTest : public BackendListTest, public ::testing::WithParamInterface<BadProbe> {};

TEST_P(BadProbeTest, IsAReasonAndNotMore) {
  Install("x");
  ProbeScript(GetParam().script, "", absl::Milliseconds(700));
  const BackendStatus& status = Status("x");
  EXPECT_TRUE(status.installed);
  EXPECT_FALSE(status.loadable);
  EXPECT_FALSE(status.usable);
  EXPECT_THAT(status.reason, HasSubstr(GetParam().reason));
  EXPECT_EQ(list_->Path("x").status().code(), absl::StatusCode::kFailedPrecondition);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadProbeTest,
    ::testing::Values(
        BadProbe{"Crash", "kill -SEGV $$", "killed by SIGSEGV"},
        BadProbe{"Hang", "exec sleep 1000", "gave no answer for 700 ms"},
        BadProbe{"Exit", "echo 'libfoo.so: not found' >&2; exit 127",
                 "exited with 127: libfoo.so: not found"},
        BadProbe{"Rubbish", "echo '{nonsense'", "no answer that can be read"},
        BadProbe{"Flood", "yes | head -c 3000000", "no answer that can be read"},
        BadProbe{"Silence", "exit 0", "no answer that can be read"},
        BadProbe{"Reason", R"(echo '{"loadable": false, "usable": true, "reason": "old driver"}')",
                 "old driver"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(BackendListTest, SwitchedOffBackendsAreListedAndNotProbed) {
  Install("x");
  Install("y");
  ProbeScript("echo \"$2\" >> $DIR/probed; echo '{\"loadable\": true, \"usable\": true}'", "-x");
  EXPECT_EQ(Status("x").reason, "switched off by --backends");
  EXPECT_TRUE(Status("y").usable);
  EXPECT_EQ(ReadFile(Path("probed")), Path("backends/y/y.so") + "\n");
}

TEST_F(BackendListTest, AMalformedManifestIsListedWithItsReason) {
  Install("x");
  std::ofstream(Path("backends/x/manifest.json")) << "{";
  ProbeScript("exit 0");
  ASSERT_EQ(list_->statuses().size(), 1u);
  EXPECT_FALSE(list_->statuses()[0].installed);
  EXPECT_NE(list_->statuses()[0].reason, "");
}

TEST_F(BackendListTest, ASuspectedBackendIsProbedAgain) {
  Install("x");
  ProbeScript(
      "if [ -e $DIR/broken ]; then exit 9; fi; "
      "echo '{\"loadable\": true, \"usable\": true, \"devices\": 1}'");
  ASSERT_TRUE(Status("x").usable);
  bool changed = false;
  list_->SetChanged([&changed] { changed = true; });
  std::ofstream(Path("broken")) << "";
  list_->Suspect("x");
  ASSERT_TRUE(RunUntil([&changed] { return changed; }));
  EXPECT_THAT(Status("x").reason, HasSubstr("exited with 9"));
}

TEST(BackendFilterTest, ReadsPlusAndMinus) {
  const BackendFilter filter = *ParseBackendFilter("+cpu,+fake,-cuda");
  EXPECT_TRUE(filter.Allows("cpu"));
  EXPECT_FALSE(filter.Allows("cuda"));
  EXPECT_FALSE(filter.Allows("gloo"));
  EXPECT_TRUE(ParseBackendFilter("-cuda")->Allows("gloo"));
  EXPECT_FALSE(ParseBackendFilter("cuda").ok());
}

}  // namespace
}  // namespace param::agent
