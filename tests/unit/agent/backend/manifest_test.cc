#include "agent/backend/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

nlohmann::json Good() {
  return {{"name", "one"},
          {"abi_major", 1},
          {"abi_minor", 0},
          {"tables", {"device", "comm"}},
          {"benchmarks", {"gemm"}},
          {"object", "one.so"},
          {"libraries", {"libx.so.1"}},
          {"memory", {"host"}},
          {"streams", {"cpu"}},
          {"summary", "a test"},
          {"from_a_later_version", 7}};
}

// The message for the manifest with `key` set to `value`.
std::string ProblemWith(const char* key, const nlohmann::json& value) {
  nlohmann::json json = Good();
  json[key] = value;
  const absl::StatusOr<Manifest> manifest = ParseManifest(json.dump(), "/lib/one");
  return manifest.ok() ? "" : std::string(manifest.status().message());
}

TEST(ParseManifest, ReadsEveryKeyAndLeavesUnknownOnes) {
  const absl::StatusOr<Manifest> manifest = ParseManifest(Good().dump(), "/lib/one");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->name, "one");
  EXPECT_EQ(manifest->abi_major, 1);
  EXPECT_THAT(manifest->libraries, ElementsAre("libx.so.1"));
  EXPECT_THAT(manifest->memory, ElementsAre("host"));
  EXPECT_THAT(manifest->streams, ElementsAre("cpu"));
  EXPECT_EQ(manifest->object_path, "/lib/one/one.so");
  EXPECT_TRUE(manifest->HasTable("comm"));
  EXPECT_FALSE(manifest->HasTable("native"));
  EXPECT_TRUE(manifest->Serves("gemm"));
  EXPECT_FALSE(manifest->Serves("copy"));
}

TEST(ParseManifest, AStarServesEveryBenchmark) {
  nlohmann::json json = Good();
  json["benchmarks"] = {"*"};
  EXPECT_TRUE(ParseManifest(json.dump(), "/lib/one")->Serves("anything"));
}

TEST(ParseManifest, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "{", "nonsense", "\xff\xfe"}) {
    EXPECT_EQ(ParseManifest(text, "/lib/one").status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(ParseManifest, NamesTheKeyThatIsWrong) {
  EXPECT_THAT(ProblemWith("name", 5), HasSubstr("name: must be a string"));
  EXPECT_THAT(ProblemWith("name", "../one"), HasSubstr("name:"));
  EXPECT_THAT(ProblemWith("name", "two"), HasSubstr("\"two\" in folder \"one\""));
  EXPECT_THAT(ProblemWith("abi_major", "1"), HasSubstr("abi_major: must be a whole number"));
  EXPECT_THAT(ProblemWith("abi_minor", -1), HasSubstr("abi_minor:"));
  EXPECT_THAT(ProblemWith("tables", nlohmann::json::array()), HasSubstr("tables:"));
  EXPECT_THAT(ProblemWith("tables", {"devise"}), HasSubstr("unknown table \"devise\""));
  EXPECT_THAT(ProblemWith("libraries", {1}), HasSubstr("libraries:"));
}

TEST(ParseManifest, AnObjectIsAFileBesideIt) {
  for (const char* object : {"", "/bin/one.so", "../one.so", "a/b.so", ".hidden.so"}) {
    EXPECT_THAT(ProblemWith("object", object), HasSubstr("object:")) << object;
  }
}

class FindBackendsTest : public ::testing::Test {
 protected:
  FindBackendsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "manifest-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~FindBackendsTest() override { std::filesystem::remove_all(root_); }

  void Install(const std::string& folder, const std::string& name, const std::string& text) {
    const std::filesystem::path at = root_ / folder / name;
    std::filesystem::create_directories(at);
    std::ofstream(at / "manifest.json") << text;
    std::ofstream(at / "one.so") << "never loaded";
  }
  std::string Folder(const std::string& folder) const { return (root_ / folder).string(); }

  std::filesystem::path root_;
};

TEST_F(FindBackendsTest, ListsWhatIsInstalledByName) {
  Install("a", "one", Good().dump());
  nlohmann::json other = Good();
  other["name"] = "also";
  Install("a", "also", other.dump());
  const InstalledBackends found = FindBackends({Folder("a")});
  ASSERT_THAT(found.backends, SizeIs(2));
  EXPECT_EQ(found.backends[0].name, "also");
  EXPECT_NE(found.Find("one"), nullptr);
  EXPECT_EQ(found.Find("two"), nullptr);
  EXPECT_THAT(found.problems, IsEmpty());
}

TEST_F(FindBackendsTest, AMalformedManifestIsANamedProblem) {
  Install("a", "one", "{");
  const InstalledBackends found = FindBackends({Folder("a")});
  EXPECT_THAT(found.backends, IsEmpty());
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_EQ(found.problems[0].path, Folder("a") + "/one/manifest.json");
  EXPECT_THAT(found.problems[0].reason, HasSubstr("not a JSON object"));
}

TEST_F(FindBackendsTest, AManifestWithoutBoundsIsAProblem) {
  Install("a", "one", std::string(100 << 10, ' ') + Good().dump());
  ASSERT_THAT(FindBackends({Folder("a")}).problems, SizeIs(1));
}

TEST_F(FindBackendsTest, AMissingObjectIsAProblem) {
  Install("a", "one", Good().dump());
  std::filesystem::remove(root_ / "a/one/one.so");
  const InstalledBackends found = FindBackends({Folder("a")});
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0].reason, HasSubstr("one.so is not there"));
}

TEST_F(FindBackendsTest, TheFirstOfTwoOfOneNameCounts) {
  Install("a", "one", Good().dump());
  Install("b", "one", Good().dump());
  const InstalledBackends found = FindBackends({Folder("a"), Folder("b")});
  ASSERT_THAT(found.backends, SizeIs(1));
  EXPECT_EQ(found.backends[0].object_path, Folder("a") + "/one/one.so");
  ASSERT_THAT(found.problems, SizeIs(1));
  EXPECT_THAT(found.problems[0].reason, HasSubstr("already installed"));
}

TEST_F(FindBackendsTest, AFolderThatIsNotThereHoldsNothing) {
  const InstalledBackends found = FindBackends({Folder("nowhere")});
  EXPECT_THAT(found.backends, IsEmpty());
  EXPECT_THAT(found.problems, IsEmpty());
}

}  // namespace
}  // namespace param
