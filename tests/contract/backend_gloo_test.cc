// The gloo backend's own promises: groups, the choice of an interface, what is composed, and what
// is said of a peer that goes away.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/contract/comm_fixture.h"

namespace param {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class GlooTest : public CommTest {
 protected:
  void SetUp() override {
    const std::vector<std::string> names = NamesWith("comm");
    if (std::find(names.begin(), names.end(), "gloo") == names.end()) {
      GTEST_SKIP() << "the backend gloo was not built";
    }
    // So that messages name one address wherever this runs.
    ASSERT_EQ(::setenv("PARAM_INTERFACE", "lo", 1), 0);
    Load("gloo");
  }
  void TearDown() override {
    CommTest::TearDown();
    ::unsetenv("PARAM_INTERFACE");
  }

  // What op_info says of an operation.
  static nlohmann::json InfoOf(Rank& rank, OpDesc& desc) {
    BackendError error;
    param_op* op = nullptr;
    char json[4096] = "{}";
    EXPECT_EQ(rank.table().op_create(rank.ctx, rank.comm, &desc.desc(), &op, &error), 0)
        << error.message;
    if (op == nullptr) return {};
    EXPECT_EQ(rank.table().op_info(rank.ctx, op, json, sizeof(json), &error), 0) << error.message;
    rank.table().op_destroy(rank.ctx, op);
    return nlohmann::json::parse(json);
  }
};

TEST_F(GlooTest, GroupsOfACommunicatorWorkApart) {
  Connect(3);
  if (HasFatalFailure()) return;
  std::vector<CollectiveReport> reports(3);
  std::vector<int> ranks_in_group(3);
  // Ranks 0 and 2 in the opposite order, and rank 1 alone.
  EXPECT_THAT(
      OnAll([&](Rank& rank) -> absl::Status {
        BackendError error;
        param_comm* group = nullptr;
        const int own = rank.host.rank;
        PARAM_RETURN_IF_ERROR(BackendStatus(
            rank.table().comm_split(rank.ctx, rank.comm, own % 2, -own, &group, &error), error));
        const CommUnderTest under = {.table = &rank.table(),
                                     .ctx = rank.ctx,
                                     .comm = group,
                                     .device = &*rank.device,
                                     .rank = own == 0 ? 1 : 0,
                                     .size = own == 1 ? 1 : 2};
        reports[static_cast<std::size_t>(own)] = CheckCollectives(under);
        return BackendStatus(rank.table().comm_destroy(rank.ctx, group, &error), error);
      }),
      Each(absl::OkStatus()));
  for (const CollectiveReport& report : reports) {
    EXPECT_THAT(report.failures, IsEmpty());
    EXPECT_GT(report.ran, 700);
  }
}

TEST_F(GlooTest, SaysWhatIsComposedAndWhereItRuns) {
  Connect(1);
  if (HasFatalFailure()) return;
  OpDesc gathering("all_gather");
  gathering.Tensor("src", PARAM_DTYPE_F32, {4}).Tensor("dst", PARAM_DTYPE_F32, {4});
  EXPECT_EQ(InfoOf(*ranks_[0], gathering)["implementation"], "gloo::allgather");
  OpDesc scattering("reduce_scatter");
  scattering.Tensor("src", PARAM_DTYPE_F32, {4}).Tensor("dst", PARAM_DTYPE_F32, {4});
  const nlohmann::json info = InfoOf(*ranks_[0], scattering);
  EXPECT_THAT(info["implementation"].get<std::string>(), StartsWith("composed: "));
  EXPECT_THAT(info["library"].get<std::string>(), StartsWith("Gloo "));
  EXPECT_EQ(info["transport"], "tcp");
}

TEST_F(GlooTest, TheInterfaceCanBeChosen) {
  Connect(2);
  if (HasFatalFailure()) return;
  OpDesc barrier("barrier");
  EXPECT_EQ(InfoOf(*ranks_[1], barrier)["interface"], "lo 127.0.0.1");

  ASSERT_EQ(::setenv("PARAM_INTERFACE", "nosuch0", 1), 0);
  Rank other;
  other.backend = &backend_;
  other.device_table = device_table();
  const absl::Status status = other.Open(0, 1, "");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("\"nosuch0\""));
  EXPECT_THAT(status.message(), HasSubstr("lo 127.0.0.1"));
}

TEST_F(GlooTest, AnAbortIsSeenByThePeers) {
  Connect(2);
  if (HasFatalFailure()) return;
  broken_ = true;
  absl::Status ended;
  std::thread waiting([&] {
    OpDesc barrier("barrier");
    ended = ranks_[0]->Run(barrier, {});
  });
  backend_.comm->comm_abort(ranks_[1]->ctx, ranks_[1]->comm);
  waiting.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
  EXPECT_THAT(ended.message(), HasSubstr("[127.0.0.1]:")) << ended;
}

// Two processes that exchange over a pair of sockets. The other one is a copy of this.
class GlooProcessTest : public GlooTest {
 protected:
  // Runs `as_peer` as rank 1 in a process of its own, which ends with it.
  void Fork(const std::function<void(Rank&)>& as_peer) {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets_), 0);
    peer_ = ::fork();
    ASSERT_GE(peer_, 0);
    if (peer_ > 0) {
      ::close(sockets_[1]);
      return;
    }
    ::close(sockets_[0]);
    const std::unique_ptr<Rank> rank = Make(1);
    if (rank != nullptr) as_peer(*rank);
    ::_exit(0);
  }

  std::unique_ptr<Rank> Make(int number) {
    auto rank = std::make_unique<Rank>();
    rank->backend = &backend_;
    rank->device_table = device_table();
    if (!rank->Open(number, 2, "").ok()) return nullptr;
    rank->host.user = &sockets_[number];
    rank->host.exchange = [](void* user, const void* mine, std::size_t bytes, void* all,
                             param_error* error) {
      return ExchangeOver(*static_cast<int*>(user), mine, bytes, all, error);
    };
    return rank;
  }

  // Rank 0 is the process that forked.
  static std::int32_t ExchangeOver(int socket, const void* mine, std::size_t bytes, void* all,
                                   param_error* error) {
    std::vector<char> theirs(bytes);
    const bool good =
        ::send(socket, mine, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes) &&
        ::recv(socket, theirs.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
    if (!good) {
      error->code = static_cast<std::int32_t>(absl::StatusCode::kUnavailable);
      return error->code;
    }
    const bool is_peer = ::getpid() != Parent();
    std::memcpy(all, is_peer ? theirs.data() : mine, bytes);
    std::memcpy(static_cast<char*>(all) + bytes, is_peer ? mine : theirs.data(), bytes);
    return 0;
  }

  static pid_t Parent() {
    static const pid_t kParent = ::getpid();
    return kParent;
  }

  void TearDown() override {
    if (peer_ > 0) ::waitpid(peer_, nullptr, 0);
    if (sockets_[0] >= 0) ::close(sockets_[0]);
    GlooTest::TearDown();
  }

  const pid_t parent_ = Parent();
  int sockets_[2] = {-1, -1};
  pid_t peer_ = -1;
};

TEST_F(GlooProcessTest, ADeadPeerIsNamed) {
  char go = 0;
  Fork([&](Rank& rank) {
    (void)rank.Create(id_, kLong);
    (void)::recv(sockets_[1], &go, 1, 0);  // once the other one is connected too
  });
  if (HasFatalFailure()) return;
  const std::unique_ptr<Rank> rank = Make(0);
  ASSERT_NE(rank, nullptr);
  PARAM_ASSERT_OK(rank->Create(id_, kLong));
  ASSERT_EQ(::send(sockets_[0], &go, 1, MSG_NOSIGNAL), 1);
  OpDesc barrier("barrier");
  const absl::Status ended = rank->Run(barrier, {});
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable) << ended;
  EXPECT_THAT(ended.message(), HasSubstr("[127.0.0.1]:")) << ended;
  BackendError error;
  EXPECT_NE(rank->table().comm_async_error(rank->ctx, rank->comm, &error), 0);
}

// Gloo decides by the addresses who connects and who waits: the one is refused, the other waits
// until its deadline.
TEST_F(GlooProcessTest, APeerThatDoesNotConnectIsNamed) {
  Fork([](Rank& rank) {
    rank.host.exchange = [](void* user, const void* mine, std::size_t bytes, void* all,
                            param_error* error) {
      (void)ExchangeOver(*static_cast<int*>(user), mine, bytes, all, error);
      ::_exit(0);
      return 0;
    };
    const std::uint8_t id[PARAM_COMM_ID_BYTES] = {};
    (void)rank.Create(id, kLong);
  });
  if (HasFatalFailure()) return;
  const std::unique_ptr<Rank> rank = Make(0);
  ASSERT_NE(rank, nullptr);
  const absl::Status made = rank->Create(id_, 300'000'000);
  EXPECT_TRUE(made.code() == absl::StatusCode::kUnavailable ||
              made.code() == absl::StatusCode::kDeadlineExceeded)
      << made;
  EXPECT_THAT(made.message(), HasSubstr("rank 1 at 127.0.0.1 port ")) << made;
}

}  // namespace
}  // namespace param
