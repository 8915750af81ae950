// The fake backend's own promises: its script decides times and faults.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tests/contract/backend_fixture.h"

namespace param {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;

class FakeTest : public ::testing::Test {
 protected:
  FakeTest() {
    absl::StatusOr<LoadedBackend> loaded = LoadBackend(ManifestOf("fake").object_path);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    if (loaded.ok()) loaded_ = *std::move(loaded);
  }

  absl::Status Open(const char* script, int rank = 0) {
    host_ = LonelyHost(script);
    host_.rank = rank;
    host_.size = 4;
    host_.user = this;
    host_.log = [](void* user, std::int32_t, const char*) {
      ++static_cast<FakeTest*>(user)->logs_;
    };
    host_.phase = [](void* user) { return static_cast<FakeTest*>(user)->phase_; };
    PARAM_ASSIGN_OR_RETURN(Device device, Device::Open(*loaded_.device, host_, 0));
    device_.emplace(std::move(device));
    PARAM_ASSIGN_OR_RETURN(stream_, device_->CreateStream());
    return absl::OkStatus();
  }

  // Nanoseconds of one operation that does nothing, by events.
  absl::StatusOr<double> TimeOne() {
    OpDesc desc("noop");
    PARAM_ASSIGN_OR_RETURN(Op op, device_->CreateOp(desc.desc()));
    PARAM_ASSIGN_OR_RETURN(Event begin, device_->CreateEvent());
    PARAM_ASSIGN_OR_RETURN(Event end, device_->CreateEvent());
    PARAM_RETURN_IF_ERROR(begin.Record(stream_));
    PARAM_RETURN_IF_ERROR(op.Enqueue(stream_, {}, nullptr));
    PARAM_RETURN_IF_ERROR(end.Record(stream_));
    return end.ElapsedNsSince(begin);
  }

  LoadedBackend loaded_;
  param_host host_ = {};
  const char* phase_ = "timed";
  int logs_ = 0;
  std::optional<Device> device_;
  Stream stream_;
};
using FakeDeathTest = FakeTest;

TEST_F(FakeTest, TimesAreAsScripted) {
  PARAM_ASSERT_OK(Open(R"({"latency_ns": 20000})"));
  EXPECT_EQ(TimeOne().value_or(-1), 20000);
}

TEST_F(FakeTest, ARankMayBeSlow) {
  const char* const script = R"({"latency_ns": 20000, "rank_latency_ns": {"1": 60000}})";
  PARAM_ASSERT_OK(Open(script, 1));
  EXPECT_EQ(TimeOne().value_or(-1), 60000);
  stream_.reset();
  PARAM_ASSERT_OK(Open(script, 2));
  EXPECT_EQ(TimeOne().value_or(-1), 20000);
}

TEST_F(FakeTest, JitterIsBoundedAndRepeatable) {
  const char* const script = R"({"latency_ns": 1000, "jitter_ns": 100})";
  std::vector<double> first;
  std::vector<double> second;
  for (std::vector<double>* times : {&first, &second}) {
    stream_.reset();
    PARAM_ASSERT_OK(Open(script));
    for (int i = 0; i < 20; ++i) times->push_back(TimeOne().value_or(-1));
  }
  EXPECT_EQ(first, second);
  EXPECT_GT(*std::max_element(first.begin(), first.end()), 1000);
  for (const double ns : first) {
    EXPECT_GE(ns, 1000);
    EXPECT_LE(ns, 1100);
  }
}

TEST_F(FakeTest, AScriptWithMistakesIsRefused) {
  for (const char* script :
       {"{", "[]", R"({"latency_ns": "x"})", R"({"latency_ns": -1})",
        R"({"faults": [{"at": "timed"}]})", R"({"faults": [{"at": "lunch", "kind": "crash"}]})",
        R"({"faults": [{"at": "timed", "kind": "sulk"}]})"}) {
    EXPECT_EQ(Open(script).code(), absl::StatusCode::kInvalidArgument) << script;
  }
}

TEST_F(FakeTest, AnErrorComesAtItsPointWithItsWords) {
  PARAM_ASSERT_OK(
      Open(R"({"faults": [{"at": "warmup", "kind": "error", "code": 14, "text": "gone"}]})"));
  PARAM_ASSERT_OK(TimeOne().status());
  phase_ = "warmup";
  EXPECT_EQ(TimeOne().status(), absl::UnavailableError("gone"));
  PARAM_ASSERT_OK(TimeOne().status());
}

TEST_F(FakeTest, OpeningMayFail) {
  EXPECT_EQ(Open(R"({"faults": [{"at": "spawn", "kind": "error", "code": 9}]})").code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(FakeTest, OtherRanksAreSpared) {
  PARAM_ASSERT_OK(Open(R"({"faults": [{"at": "timed", "kind": "crash", "rank": 1}]})", 0));
  PARAM_ASSERT_OK(TimeOne().status());
}

TEST_F(FakeTest, AWrongElementIsInTheResult) {
  PARAM_ASSERT_OK(Open(R"({"faults": [{"at": "case", "kind": "wrong"}]})"));
  OpDesc desc("gemm");
  for (const char* name : {"a", "b", "c"}) desc.Tensor(name, PARAM_DTYPE_F32, {1, 2, 2});
  absl::StatusOr<Op> op = device_->CreateOp(desc.desc());
  ASSERT_TRUE(op.ok()) << op.status();
  absl::StatusOr<Buffer> buffer = device_->CreateBuffer(PARAM_MEMORY_DEVICE, 48);
  ASSERT_TRUE(buffer.ok());
  std::vector<float> numbers(12, 1.0f);
  PARAM_ASSERT_OK(buffer->Write(0, numbers.data(), 48));
  PARAM_ASSERT_OK(op->Enqueue(stream_, {buffer->At(0), buffer->At(16), buffer->At(32)}, nullptr));
  PARAM_ASSERT_OK(buffer->Read(0, numbers.data(), 48));
  EXPECT_EQ(std::vector<float>(numbers.begin() + 8, numbers.begin() + 11),
            std::vector<float>(3, 2.0f));
  EXPECT_NE(numbers[11], 2.0f);
}

TEST_F(FakeTest, GarbageGoesToTheWorkersSocket) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ::setenv("PARAM_WORKER_SOCKET_FD", std::to_string(ends[0]).c_str(), 1);
  PARAM_ASSERT_OK(Open(R"({"faults": [{"at": "timed", "kind": "garbage", "text": "lies\n"}]})"));
  PARAM_ASSERT_OK(TimeOne().status());
  std::array<char, 16> got = {};
  EXPECT_EQ(::read(ends[1], got.data(), got.size()), 5);
  EXPECT_STREQ(got.data(), "lies\n");
  ::unsetenv("PARAM_WORKER_SOCKET_FD");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(FakeTest, AFloodFillsTheLog) {
  PARAM_ASSERT_OK(Open(R"({"faults": [{"at": "timed", "kind": "flood", "count": 5}]})"));
  PARAM_ASSERT_OK(TimeOne().status());
  EXPECT_EQ(logs_, 5);
}

TEST_F(FakeDeathTest, CrashesAfterSoMany) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        (void)Open(R"({"faults": [{"at": "timed", "kind": "crash", "after": 2}]})");
        for (int i = 0; i < 2; ++i) {
          if (!TimeOne().ok()) std::_Exit(9);
        }
        (void)TimeOne();
        std::_Exit(8);
      },
      KilledBySignal(SIGSEGV), "");
}

TEST_F(FakeDeathTest, ExitsInTeardown) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        (void)Open(R"({"faults": [{"at": "teardown", "kind": "exit"}]})");
        stream_.reset();
        device_.reset();
        std::_Exit(8);
      },
      ExitedWithCode(3), "");
}

TEST_F(FakeTest, ProbingMaySayThatItIsNotUsable) {
  ::setenv("PARAM_FAKE_PROBE", "the driver is on strike", 1);
  const nlohmann::json probed = nlohmann::json::parse(RunProbe(ManifestOf("fake").object_path));
  ::unsetenv("PARAM_FAKE_PROBE");
  EXPECT_TRUE(probed["loadable"].get<bool>());
  EXPECT_FALSE(probed["usable"].get<bool>());
  EXPECT_EQ(probed["reason"], "the driver is on strike");
}

TEST_F(FakeTest, SleepsNativelyAndReportsEachSample) {
  host_ = LonelyHost();
  std::vector<double> samples;
  BackendError error;
  ASSERT_EQ(loaded_.native->run(
                &host_, "sleep", R"({"iters": 3, "seconds": 0.0001})",
                [](void* user, const char* metric, const char* unit, double value) {
                  EXPECT_STREQ(metric, "time");
                  EXPECT_STREQ(unit, "s");
                  static_cast<std::vector<double>*>(user)->push_back(value);
                },
                &samples, &error),
            0)
      << error.message;
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_GE(samples[0], 0.0001);
}

TEST_F(FakeTest, SaysWhatItDoesNotRunNatively) {
  BackendError error;
  EXPECT_EQ(loaded_.native->supports("gemm", "{}", &error), 12);
  EXPECT_THAT(error.message, HasSubstr("gemm"));
}

}  // namespace
}  // namespace param
