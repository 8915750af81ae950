#include "proto/daemon/shutdown.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace param {
namespace {

TEST(ShutdownTest, WaitGivesTheSignalThatCame) {
  auto signals = ShutdownSignals::Block();
  ASSERT_EQ(signals.status(), absl::OkStatus());
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);  // pending, since it is blocked
  EXPECT_EQ(*signals->Wait(), SIGTERM);
  ASSERT_EQ(::kill(::getpid(), SIGINT), 0);
  EXPECT_EQ(*signals->Wait(), SIGINT);
}

TEST(ShutdownTest, AClosedTerminalIsIgnored) {
  const auto signals = ShutdownSignals::Block();
  ASSERT_EQ(signals.status(), absl::OkStatus());
  EXPECT_EQ(::kill(::getpid(), SIGHUP), 0);  // the process lives on
  EXPECT_EQ(std::signal(SIGHUP, SIG_IGN), SIG_IGN);
}

}  // namespace
}  // namespace param
