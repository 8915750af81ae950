#include "server/core/outbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

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
  Recorder port;
  Outbox<int> outbox(port, 4);
  outbox.Push(Message(1), Loss::kMustDeliver);
  outbox.Push(Message(2), Loss::kMustDeliver);
  EXPECT_EQ(port.written, std::vector<int>({1}));
  outbox.WriteDone(true);
  EXPECT_EQ(port.written, std::vector<int>({1, 2}));
}

TEST(Outbox, DropsWhatMayBeDroppedWhenFull) {
  Recorder port;
  Outbox<int> outbox(port, 1);
  EXPECT_TRUE(outbox.Push(Message(1), Loss::kMayDrop));  // in flight
  EXPECT_TRUE(outbox.Push(Message(2), Loss::kMayDrop));
  EXPECT_FALSE(outbox.Push(Message(3), Loss::kMayDrop));
  EXPECT_EQ(port.finishes, 0);
}

TEST(Outbox, EndsASlowReaderWithAClearStatus) {
  Recorder port;
  Outbox<int> outbox(port, 1);
  outbox.Push(Message(1), Loss::kMustDeliver);
  outbox.Push(Message(2), Loss::kMustDeliver);
  EXPECT_FALSE(outbox.Push(Message(3), Loss::kMustDeliver));
  EXPECT_EQ(port.finishes, 0);  // not while a write is in flight
  outbox.WriteDone(true);
  EXPECT_EQ(port.finishes, 1);
  EXPECT_EQ(port.final_status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(port.final_status.message().find("after_seq"), absl::string_view::npos);
}

TEST(Outbox, PreloadedMessagesDoNotCountAgainstTheBound) {
  Recorder port;
  Outbox<int> outbox(port, 1);
  outbox.Preload({Message(1), Message(2), Message(3)});
  EXPECT_TRUE(outbox.Push(Message(4), Loss::kMustDeliver));
  for (int i = 0; i < 4; ++i) outbox.WriteDone(true);
  EXPECT_EQ(port.written, std::vector<int>({1, 2, 3, 4}));
}

TEST(Outbox, CloseDeliversWhatIsQueuedThenFinishesOnce) {
  Recorder port;
  Outbox<int> outbox(port, 4);
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
  Recorder port;
  Outbox<int> outbox(port, 4);
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
  for (int round = 0; round < 50; ++round) {
    Racing port;
    Outbox<int> outbox(port, 8);
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
