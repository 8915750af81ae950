// The small parts of the vocabulary: handles, locks, log, ids, clock, units, version.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/clock.h"
#include "proto/base/handle.h"
#include "proto/base/log.h"
#include "proto/base/random.h"
#include "proto/base/sync.h"
#include "proto/base/units.h"
#include "proto/base/version.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(Handle, ClosesWhatItOwns) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    const Fd fd(raw);
    EXPECT_TRUE(fd);
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(Handle, MovesOwnership) {
  Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int raw = first.get();
  Fd second = std::move(first);
  EXPECT_EQ(second.get(), raw);
  EXPECT_TRUE(IsOpen(raw));
  EXPECT_EQ(second.release(), raw);
  EXPECT_FALSE(second);
  EXPECT_EQ(::close(raw), 0);
}

TEST(Handle, ClosesTheOldOneOnAssignment) {
  Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int old = fd.get();
  const int next = ::dup(old);
  fd = Fd(next);
  EXPECT_FALSE(IsOpen(old));
  EXPECT_TRUE(IsOpen(next));
}

TEST(CondVar, WakesAWaiter) {
  Mutex mu;
  CondVar changed;
  bool ready = false;
  std::thread setter([&] {
    MutexLock lock(mu);
    ready = true;
    changed.NotifyOne();
  });
  {
    MutexLock lock(mu);
    while (!ready) changed.Wait(mu);
  }
  setter.join();
  EXPECT_TRUE(ready);
}

TEST(CondVar, SaysWhenTheTimeRanOut) {
  Mutex mu;
  CondVar changed;
  MutexLock lock(mu);
  EXPECT_FALSE(changed.WaitFor(mu, std::chrono::milliseconds(1)));
}

TEST(Log, WritesOneEscapedLineFromItsThresholdOn) {
  std::vector<std::string> lines;
  const Log log(Level::kInfo,
                [&lines](Level, absl::string_view line) { lines.emplace_back(line); });
  log.Debug("unseen");
  log.Info("job placed", {F("job", "j-1"), F("cause", "two\nlines"), F("nodes", 4)});
  EXPECT_THAT(lines, ElementsAre("job placed job=\"j-1\" cause=\"two\\nlines\" nodes=\"4\""));
}

class CountingRandom final : public Random {
 public:
  std::uint64_t Next() override { return next_++; }

 private:
  std::uint64_t next_ = 0x0123456789abcdefULL;
};

TEST(MakeId, IsReproducibleAndSafeInFileNames) {
  CountingRandom random;
  const std::string id = MakeId(random, "j-");
  EXPECT_THAT(id, MatchesRegex("j-[a-z2-7]{10}"));
  CountingRandom again;
  EXPECT_EQ(MakeId(again, "j-"), id);
}

TEST(MakeToken, Has128BitsOfHexadecimal) {
  SystemRandom random;
  const std::string token = MakeToken(random);
  EXPECT_THAT(token, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(MakeToken(random), token);
}

TEST(SystemClock, MonotonicNeverGoesBack) {
  const SystemClock clock;
  const absl::Duration before = clock.Monotonic();
  EXPECT_GE(clock.Monotonic(), before);
  EXPECT_GT(clock.Wall(), absl::FromCivil(absl::CivilDay(2020, 1, 1), absl::UTCTimeZone()));
}

TEST(Quantity, DividesIntoRates) {
  const BytesPerSecond rate = Bytes(1'000'000) / absl::Milliseconds(500);
  EXPECT_EQ(rate.count(), 2e6);
  EXPECT_GT(Bytes(2), Bytes(1));
  EXPECT_EQ((Bytes(2) + Bytes(3) - Bytes(1)).count(), 4);
}

TEST(Version, IsStated) {
  EXPECT_THAT(std::string(Version()), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(Revision().empty());
  EXPECT_FALSE(Compiler().empty());
}

}  // namespace
}  // namespace param
