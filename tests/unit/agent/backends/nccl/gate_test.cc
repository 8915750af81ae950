#include "agent/backends/nccl/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace param::nccl {
namespace {

constexpr std::chrono::milliseconds kLong{60'000};
constexpr std::chrono::milliseconds kNone{0};

TEST(NcclGate, LetsOneInAtATime) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  EXPECT_FALSE(gate.TryEnter());
  gate.Leave();
  EXPECT_TRUE(gate.TryEnter());
  gate.Leave();
}

TEST(NcclGate, LetsNobodyInOnceClosedAndClosesOnce) {
  Gate gate;
  EXPECT_FALSE(gate.closed());
  EXPECT_TRUE(gate.Close(kNone));
  EXPECT_FALSE(gate.Close(kNone));
  EXPECT_TRUE(gate.closed());
  EXPECT_FALSE(gate.Enter());
  EXPECT_FALSE(gate.TryEnter());
}

TEST(NcclGate, ClosingWaitsForWhoIsInside) {
  Gate gate;
  std::atomic<bool> left = false;
  ASSERT_TRUE(gate.Enter());
  std::thread closer([&] {
    EXPECT_TRUE(gate.Close(kLong));
    EXPECT_TRUE(left);
  });
  while (!gate.closed()) std::this_thread::yield();
  left = true;
  gate.Leave();
  closer.join();
}

TEST(NcclGate, ClosingEndsWithoutWhoIsStuckInside) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  EXPECT_TRUE(gate.Close(std::chrono::milliseconds(1)));
  EXPECT_TRUE(gate.closed());
  gate.Leave();
  EXPECT_FALSE(gate.Enter());
}

TEST(NcclGate, ClosingSendsAwayWhoWaitsToEnter) {
  Gate gate;
  ASSERT_TRUE(gate.Enter());
  std::thread waiting([&] { EXPECT_FALSE(gate.Enter()); });
  EXPECT_TRUE(gate.Close(kNone));  // with the first still inside
  waiting.join();
  gate.Leave();
}

}  // namespace
}  // namespace param::nccl
