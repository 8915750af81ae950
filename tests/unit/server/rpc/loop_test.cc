#include "server/rpc/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace param {
namespace {

using testing::ElementsAre;

// Opened once; whoever waits goes on.
class Gate {
 public:
  void Open() { promise_.set_value(); }
  [[nodiscard]] bool Await() const {
    return future_.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  }

 private:
  std::promise<void> promise_;
  const std::shared_future<void> future_ = promise_.get_future().share();
};

TEST(Loop, RunsClosuresInTheOrderTheyWerePosted) {
  Loop loop(absl::Seconds(1), [] {});
  std::vector<int> ran, expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  loop.Start();
  for (const int i : expected) loop.Post([&ran, i] { ran.push_back(i); });
  loop.Stop();
  EXPECT_EQ(ran, expected);
}

TEST(Loop, RunsClosuresOfManyThreadsOnOneOfItsOwn) {
  Loop loop(absl::Seconds(1), [] {});
  std::vector<std::pair<int, int>> ran;  // no lock: one thread touches it
  std::vector<std::thread::id> threads;
  loop.Start();
  std::vector<std::thread> posters;
  for (int poster = 0; poster < 4; ++poster) {
    posters.emplace_back([&, poster] {
      for (int i = 0; i < 250; ++i) {
        loop.Post([&, poster, i] {
          ran.emplace_back(poster, i);
          threads.push_back(std::this_thread::get_id());
        });
      }
    });
  }
  for (std::thread& poster : posters) poster.join();
  loop.Stop();
  ASSERT_EQ(ran.size(), 1000u);
  std::vector<int> next(4, 0);
  for (const auto& [poster, i] : ran) EXPECT_EQ(i, next[static_cast<std::size_t>(poster)]++);
  for (const std::thread::id& id : threads) {
    EXPECT_EQ(id, threads.front());
    EXPECT_NE(id, std::this_thread::get_id());
  }
}

TEST(Loop, TicksThoughNothingIsPosted) {
  Gate third;
  int ticks = 0;
  Loop loop(absl::Milliseconds(1), [&] {
    if (++ticks == 3) third.Open();
  });
  loop.Start();
  EXPECT_TRUE(third.Await());
}

TEST(Loop, TicksThoughClosuresNeverCease) {
  Gate ticked;
  std::atomic<bool> done = false;
  Loop loop(absl::Milliseconds(1), [&] {
    if (!done.exchange(true)) ticked.Open();
  });
  std::function<void()> again = [&] {
    if (!done) loop.Post(again);
  };
  loop.Post(again);
  loop.Start();
  EXPECT_TRUE(ticked.Await());
  loop.Stop();
}

TEST(Loop, WarnsOfAClosureThatKeptTheOthersWaiting) {
  FakeClock clock;
  std::vector<std::string> lines;  // the loop's thread writes, and is gone before they are read
  const Log log{Level::kWarn, [&](Level, absl::string_view line) { lines.emplace_back(line); }};
  const SlowWatch watch(clock, log);
  Loop loop(
      absl::Hours(1), [] {}, &watch);
  loop.Start();
  loop.Post([&clock] { clock.Advance(absl::Seconds(1)); });
  loop.Post([&clock] { clock.Advance(absl::Milliseconds(1500)); });
  loop.Stop();
  ASSERT_THAT(lines, testing::SizeIs(1));
  EXPECT_THAT(lines[0], testing::HasSubstr("closure"));
  EXPECT_THAT(lines[0], testing::HasSubstr("1.5s"));
  watch.Took("a commit of the store", absl::Milliseconds(999));
  EXPECT_THAT(lines, testing::SizeIs(1));
  watch.Took("a commit of the store", absl::Milliseconds(2500));
  EXPECT_THAT(lines, testing::SizeIs(2));
}

TEST(Loop, StopRunsWhatWasPostedBeforeIt) {
  Loop loop(absl::Seconds(1), [] {});
  Gate entered, release;
  std::vector<int> ran;
  loop.Start();
  loop.Post([&] {
    entered.Open();
    EXPECT_TRUE(release.Await());
    loop.Post([&ran] { ran.push_back(3); });  // of a closure that Stop() waits for
  });
  ASSERT_TRUE(entered.Await());
  loop.Post([&ran] { ran.push_back(1); });
  loop.Post([&ran] { ran.push_back(2); });
  std::thread stopper([&loop] { loop.Stop(); });
  release.Open();
  stopper.join();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(Loop, StopTwiceIsHarmless) {
  Loop loop(absl::Milliseconds(1), [] {});
  loop.Start();
  loop.Stop();
  loop.Stop();
}

TEST(ReaderPool, RefusesWhenFullAndStopFinishesWhatIsQueued) {
  ReaderPool pool(1, 2);
  Gate entered, release;
  std::vector<int> ran;
  ASSERT_TRUE(pool.Post([&] {
    entered.Open();
    EXPECT_TRUE(release.Await());
  }));
  ASSERT_TRUE(entered.Await());  // the one thread is taken, the queue is empty
  EXPECT_TRUE(pool.Post([&ran] { ran.push_back(1); }));
  EXPECT_TRUE(pool.Post([&ran] { ran.push_back(2); }));
  EXPECT_FALSE(pool.Post([&ran] { ran.push_back(3); }));
  release.Open();
  pool.Stop();
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST(ReaderPool, RefusesOnceStopped) {
  ReaderPool pool(2, 8);
  pool.Stop();
  EXPECT_FALSE(pool.Post([] {}));
}

TEST(ReaderPool, OneSlowReadDoesNotHoldUpTheNext) {
  ReaderPool pool(2, 8);
  Gate second, release;
  EXPECT_TRUE(pool.Post([&] { EXPECT_TRUE(release.Await()); }));
  EXPECT_TRUE(pool.Post([&] { second.Open(); }));
  EXPECT_TRUE(second.Await());
  release.Open();
  pool.Stop();
}

}  // namespace
}  // namespace param
