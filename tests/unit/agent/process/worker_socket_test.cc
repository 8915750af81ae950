// Who may talk to an agent as a worker, and for how long one may be silent.

#include "agent/process/worker_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/agent/process/process_fixture.h"

namespace param::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WorkerSocketTest : public ProcessTest {
 protected:
  // The reactor runs by a clock that the test turns.
  WorkerSocketTest() { reactor_ = *Reactor::Make(turned_); }
  ~WorkerSocketTest() override { socket_.reset(); }

  void Listen(WorkerSocket::Limits limits) {
    auto socket =
        WorkerSocket::Listen(*reactor_, log_.log, Path("s"),
                             {.greeting = [](pid_t, absl::string_view line) -> absl::StatusOr<int> {
                                int rank = -1;
                                if (absl::SimpleAtoi(line, &rank)) return rank;
                                return absl::PermissionDeniedError("no hello");
                              },
                              .connected = [this](int rank) { ranks_.push_back(rank); },
                              .lines =
                                  [this](int, const std::vector<std::string>& lines) {
                                    lines_.insert(lines_.end(), lines.begin(), lines.end());
                                  },
                              .bad_stream = [](int, const absl::Status&) {}},
                             limits);
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
  }
  Fd Connect() const {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = Path("s");
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  static void Write(const Fd& fd, const std::string& text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // The agent closed its end; nothing is waited for.
  static bool IsClosed(const Fd& fd) {
    char byte = 0;
    return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  // A connection of another rank: whoever came before it was let in, too.
  void Settle(const std::string& rank) {
    const Fd probe = Connect();
    const std::size_t before = ranks_.size();
    Write(probe, rank + "\n");
    ASSERT_TRUE(RunUntil([&] { return ranks_.size() > before; }));
  }

  FakeClock turned_;
  std::vector<int> ranks_;
  std::vector<std::string> lines_;
  std::unique_ptr<WorkerSocket> socket_;
};

TEST_F(WorkerSocketTest, OneThatSaysNoHelloIsClosedAfterTheDeadlineAndSaid) {
  Listen({.greeting = absl::Seconds(30)});
  const Fd silent = Connect(), half = Connect(), worker = Connect();
  Write(half, "0");  // no line
  Write(worker, "7\n");
  ASSERT_TRUE(RunUntil([&] { return !ranks_.empty(); }));
  turned_.Advance(absl::Seconds(29));
  Settle("8");
  EXPECT_FALSE(IsClosed(silent));
  turned_.Advance(absl::Seconds(1));
  ASSERT_TRUE(RunUntil([&] { return IsClosed(silent) && IsClosed(half); }));
  EXPECT_TRUE(log_.Has("said no hello"));
  turned_.Advance(absl::Hours(1));  // who has greeted may be silent
  Write(worker, "still here\n");
  ASSERT_TRUE(RunUntil([&] { return !lines_.empty(); }));
  EXPECT_THAT(lines_, ElementsAre("still here"));
}

TEST_F(WorkerSocketTest, StrangersAreBoundedAndOthersWaitUntilThereIsRoom) {
  Listen({.greeting = absl::Seconds(30), .strangers = 2});
  const Fd first = Connect(), second = Connect();
  const Fd worker = Connect();
  Write(worker, "5\n");
  ASSERT_TRUE(RunUntil([&] { return log_.Has("have not said hello"); }));
  EXPECT_THAT(ranks_, IsEmpty());
  Write(first, "1\n");  // has greeted: makes room
  ASSERT_TRUE(RunUntil([&] { return ranks_.size() == 2; }));
  EXPECT_THAT(ranks_, ElementsAre(1, 5));
  const Fd third = Connect(), late = Connect();
  Write(late, "6\n");
  turned_.Advance(absl::Seconds(30));  // and so does one whose time is over
  ASSERT_TRUE(RunUntil([&] { return ranks_.size() == 3; }));
  EXPECT_TRUE(IsClosed(second));
}

TEST_F(WorkerSocketTest, ARefusedConnectionIsNoStrangerAnyMore) {
  Listen({.greeting = absl::Seconds(30), .strangers = 1});
  const Fd refused = Connect();
  Write(refused, "let me in\n");
  const Fd worker = Connect();
  Write(worker, "3\n");
  ASSERT_TRUE(RunUntil([&] { return !ranks_.empty(); }));
  EXPECT_TRUE(IsClosed(refused));
  turned_.Advance(absl::Hours(1));
  Settle("4");
  EXPECT_FALSE(log_.Has("said no hello"));
}

TEST_F(WorkerSocketTest, ASocketThatGoesTakesItsDeadlinesAlong) {
  Listen({.greeting = absl::Seconds(30)});
  const Fd silent = Connect();
  Settle("1");
  socket_.reset();
  turned_.Advance(absl::Hours(1));
  ASSERT_TRUE(RunUntil([&] { return IsClosed(silent); }));
  EXPECT_FALSE(log_.Has("said no hello"));
}

}  // namespace
}  // namespace param::agent
