#include "proto/base/socket_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace param {
namespace {

namespace fs = std::filesystem;

class SocketFolderTest : public testing::Test {
 protected:
  SocketFolderTest() {
    std::string pattern = testing::TempDir() + "/socket_folder.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~SocketFolderTest() override { fs::remove_all(root_); }
  SocketFolder Make() {
    auto folder = MakeSocketFolder(root_);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return *std::move(folder);
  }
  // A folder as an agent leaves it that was killed: everything there, the lock free.
  std::string Left(const std::string& name) const {
    const std::string path = root_ + "/" + name;
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path + "/agent.lock") << "";
    std::ofstream(path + "/s") << "";
    return path;
  }

  std::string root_;
};

TEST_F(SocketFolderTest, IsOnesOwnAndStaysWhileItIsUsed) {
  const SocketFolder folder = Make(), other = Make();
  EXPECT_NE(folder.path, other.path);
  struct stat info {};
  ASSERT_EQ(::stat(folder.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(RemoveDeadSocketFolders(root_), 0);
  EXPECT_TRUE(fs::exists(folder.path));
}

TEST_F(SocketFolderTest, OfAKilledProcessIsRemovedWithWhatIsInIt) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto folder = MakeSocketFolder(root_);
    if (folder.ok()) std::ofstream(folder->path + "/s") << "";
    const char said = folder.ok() ? 'y' : 'n';
    if (::write(ends[1], &said, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char said = 0;
  ASSERT_EQ(::read(ends[0], &said, 1), 1);
  ASSERT_EQ(said, 'y');
  EXPECT_EQ(RemoveDeadSocketFolders(root_), 0);  // it lives
  EXPECT_FALSE(fs::is_empty(root_));
  ::kill(owner, SIGKILL);
  ASSERT_EQ(::waitpid(owner, nullptr, 0), owner);
  EXPECT_EQ(RemoveDeadSocketFolders(root_), 1);
  EXPECT_TRUE(fs::is_empty(root_));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(SocketFolderTest, OfALivingAgentStaysWhileThatOfADeadOneGoes) {
  const SocketFolder used = Make();
  const std::string dead = Left("param-a1B2c3");
  EXPECT_EQ(RemoveDeadSocketFolders(root_), 1);
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(used.path + "/agent.lock"));
}

TEST_F(SocketFolderTest, WhatIsNotCertainlyDeadStays) {
  Left("param-toolong");
  Left("param-short");
  Left("other-abcdef");
  Left("param-ab.def");
  fs::permissions(Left("param-open00"), fs::perms::all);  // not made by us
  fs::remove(Left("param-nolock") + "/agent.lock");       // perhaps just being made
  std::ofstream(root_ + "/param-afile0") << "";
  const std::string elsewhere = Left("elsewhere");
  fs::create_directory_symlink(elsewhere, root_ + "/param-alink0");
  const std::string odd = Left("param-oddlck");
  fs::remove(odd + "/agent.lock");
  fs::create_symlink(elsewhere + "/agent.lock", odd + "/agent.lock");
  EXPECT_EQ(RemoveDeadSocketFolders(root_), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 10);
  EXPECT_TRUE(fs::exists(elsewhere + "/s"));
}

TEST_F(SocketFolderTest, ItsOwnerRemovesItWithAllThatIsInIt) {
  const SocketFolder folder = Make();
  fs::create_directories(folder.path + "/a/b");
  std::ofstream(folder.path + "/a/b/c") << "x";
  EXPECT_TRUE(RemoveSocketFolder(folder.path));
  EXPECT_TRUE(fs::is_empty(root_));
  EXPECT_FALSE(RemoveSocketFolder(folder.path));  // gone
}

TEST_F(SocketFolderTest, OneIsRemovedByName) {
  const SocketFolder used = Make();
  const std::string dead = Left("param-a1B2c3"), other = Left("other-abcdef");
  EXPECT_FALSE(RemoveDeadSocketFolder(used.path));
  EXPECT_FALSE(RemoveDeadSocketFolder(other));
  EXPECT_FALSE(RemoveDeadSocketFolder(root_ + "/param-nobody"));
  EXPECT_TRUE(RemoveDeadSocketFolder(dead));
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(SocketFolderTest, TheRootHasNothingThatACommandLineWouldSplit) {
  const char* const before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before == nullptr ? "" : before;
  for (const char* const name : {"plain", "with blank", "with'quote", "with\"quote", "with$x"}) {
    const std::string path = root_ + "/" + name;
    fs::create_directory(path);
    ::setenv("XDG_RUNTIME_DIR", path.c_str(), 1);
    EXPECT_EQ(SocketRoot(), std::string(name) == "plain" ? path : "/tmp") << name;
  }
  if (before == nullptr) {
    ::unsetenv("XDG_RUNTIME_DIR");
  } else {
    ::setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  }
}

TEST_F(SocketFolderTest, ARootThatIsNotThereHasNone) {
  EXPECT_EQ(RemoveDeadSocketFolders(root_ + "/missing"), 0);
  EXPECT_FALSE(MakeSocketFolder(root_ + "/missing").ok());
}

}  // namespace
}  // namespace param
