#include "server/core/outbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/fakes/fake_clock.h"

namespace param {
namespace {

struct Recorder final : Outbox<int>::Port {
  void Write(const int& message) override { written.push_back(message); }
  void Finish(const absl::Status& status) override {
    ++finishes;
    final_status = status;
  }
  std::vector<int> written;
  int finishes = 0;
  absl::Status final_status;
};

std::shared_ptr<const int> Message(int value) { return std::make_shared<const int>(value); }
using Loss = Outbox<int>::Loss;

TEST(Outbox, HasOneWriteInFlight) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 4}, clock);
  outbox.Push(Message(1), Loss::kMustDeliver);
  outbox.Push(Message(2), Loss::kMustDeliver);
  EXPECT_EQ(port.written, std::vector<int>({1}));
  outbox.WriteDone(true);
  EXPECT_EQ(port.written, std::vector<int>({1, 2}));
}

TEST(Outbox, DropsWhatMayBeDroppedWhenFull) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 1}, clock);
  EXPECT_TRUE(outbox.Push(Message(1), Loss::kMayDrop));  // in flight
  EXPECT_TRUE(outbox.Push(Message(2), Loss::kMayDrop));
  EXPECT_FALSE(outbox.Push(Message(3), Loss::kMayDrop));
  EXPECT_EQ(port.finishes, 0);
}

TEST(Outbox, EndsASlowReaderWithAClearStatus) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 1}, clock);
  outbox.Push(Message(1), Loss::kMustDeliver);
  outbox.Push(Message(2), Loss::kMustDeliver);
  EXPECT_FALSE(outbox.Push(Message(3), Loss::kMustDeliver));
  EXPECT_EQ(port.finishes, 0);  // not while a write is in flight
  outbox.WriteDone(true);
  EXPECT_EQ(port.finishes, 1);
  EXPECT_EQ(port.final_status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(port.final_status.message().find("after_seq"), absl::string_view::npos);
}

TEST(Outbox, AReaderThatGoesOnReadingMayFallBehindByABurst) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 1, .burst = 4, .patience = absl::Seconds(5)}, clock);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(outbox.Push(Message(i), Loss::kMustDeliver)) << i;
  EXPECT_FALSE(outbox.Push(Message(99), Loss::kMayDrop));  // what may be dropped is no burst
  clock.Advance(absl::Seconds(4));
  outbox.WriteDone(true);
  clock.Advance(absl::Seconds(4));  // the next write is four seconds old, not eight
  EXPECT_TRUE(outbox.Push(Message(4), Loss::kMustDeliver));
  EXPECT_TRUE(outbox.Push(Message(5), Loss::kMustDeliver));
  EXPECT_FALSE(outbox.Push(Message(6), Loss::kMustDeliver));  // a burst has an end, too
  outbox.WriteDone(true);
  EXPECT_EQ(port.final_status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Outbox, AReaderThatDoesNotReadIsEndedOnceItLags) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 2, .burst = 100, .patience = absl::Seconds(5)}, clock);
  outbox.Push(Message(0), Loss::kMustDeliver);  // in flight, for good
  clock.Advance(absl::Seconds(5));
  EXPECT_TRUE(outbox.Push(Message(1), Loss::kMustDeliver));
  EXPECT_TRUE(outbox.Push(Message(2), Loss::kMustDeliver));
  EXPECT_FALSE(outbox.Push(Message(3), Loss::kMustDeliver));
  outbox.WriteDone(true);
  EXPECT_EQ(port.final_status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Outbox, WhatWaitsIsBoundedByItsBytes) {
  FakeClock clock;
  Recorder port;
  const auto size = [](const int& message) { return static_cast<std::size_t>(message); };
  Outbox<int> outbox(port, {.messages = 100, .bytes = 10, .size = size}, clock);
  EXPECT_TRUE(outbox.Push(Message(50), Loss::kMustDeliver));  // in flight: it waits no more
  EXPECT_TRUE(outbox.Push(Message(50), Loss::kMustDeliver));  // alone it may be larger
  EXPECT_FALSE(outbox.Push(Message(1), Loss::kMayDrop));
  outbox.WriteDone(true);
  EXPECT_TRUE(outbox.Push(Message(4), Loss::kMustDeliver));
  EXPECT_TRUE(outbox.Push(Message(6), Loss::kMustDeliver));
  EXPECT_FALSE(outbox.Push(Message(1), Loss::kMustDeliver));
  outbox.WriteDone(true);
  EXPECT_EQ(port.final_status.code(), absl::StatusCode::kResourceExhausted);
}

TEST(Outbox, PreloadedMessagesDoNotCountAgainstTheBound) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 1}, clock);
  outbox.Preload({Message(1), Message(2), Message(3)});
  EXPECT_TRUE(outbox.Push(Message(4), Loss::kMustDeliver));
  for (int i = 0; i < 4; ++i) outbox.WriteDone(true);
  EXPECT_EQ(port.written, std::vector<int>({1, 2, 3, 4}));
}

TEST(Outbox, CloseDeliversWhatIsQueuedThenFinishesOnce) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 4}, clock);
  outbox.Push(Message(1), Loss::kMustDeliver);
  outbox.Close(absl::OkStatus());
  outbox.Close(absl::InternalError("second"));
  EXPECT_EQ(port.finishes, 0);
  outbox.WriteDone(true);
  EXPECT_EQ(port.finishes, 1);
  EXPECT_TRUE(port.final_status.ok());
  EXPECT_FALSE(outbox.Push(Message(2), Loss::kMustDeliver));
}

TEST(Outbox, FailedWriteEndsTheCall) {
  FakeClock clock;
  Recorder port;
  Outbox<int> outbox(port, {.messages = 4}, clock);
  outbox.Push(Message(1), Loss::kMustDeliver);
  outbox.WriteDone(false);
  EXPECT_EQ(port.final_status.code(), absl::StatusCode::kCancelled);
}

// Completes its writes on another thread, as gRPC does.
struct Racing final : Outbox<int>::Port {
  void Write(const int&) override { pending.fetch_add(1); }
  void Finish(const absl::Status&) override { finishes.fetch_add(1); }
  std::atomic<int> pending = 0, finishes = 0;
};

TEST(Outbox, FinishesExactlyOnceUnderRaces) {
  FakeClock clock;
  for (int round = 0; round < 50; ++round) {
    Racing port;
    Outbox<int> outbox(port, {.messages = 8}, clock);
    std::atomic<bool> stop = false;
    std::thread completer([&] {
      while (!stop || port.pending > 0) {
        if (port.pending > 0) {
          port.pending.fetch_sub(1);
          outbox.WriteDone(true);
        }
      }
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) outbox.Push(Message(i), Loss::kMayDrop);
      });
    }
    threads.emplace_back([&] { outbox.Close(absl::OkStatus()); });
    threads.emplace_back([&] { outbox.Cancelled(); });
    for (std::thread& thread : threads) thread.join();
    stop = true;
    completer.join();
    EXPECT_EQ(port.finishes, 1);
  }
}

}  // namespace
}  // namespace param
