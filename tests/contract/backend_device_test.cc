// Every backend with a table "device": loading, probing, memory, streams, events.

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <limits>
#include <memory>

#include "absl/strings/match.h"
#include "tests/contract/backend_fixture.h"

namespace param {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

// Needs no usable device.
class AnyBackend : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const Manifest& manifest : InstalledHere()) names.push_back(manifest.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Installed, AnyBackend, ::testing::ValuesIn(AllNames()),
                         [](const auto& test) { return test.param; });

TEST_P(AnyBackend, ExportsOneSymbol) {
  const std::string command = "nm -D --defined-only '" + ManifestOf(GetParam()).object_path + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  ASSERT_NE(pipe, nullptr);
  std::vector<std::string> symbols;
  std::array<char, 512> line = {};
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    std::string text = line.data();
    if (!text.empty() && text.back() == '\n') text.pop_back();
    symbols.push_back(text.substr(text.rfind(' ') + 1));
  }
  EXPECT_THAT(symbols, ElementsAre("param_backend_entry_v1"));
}

TEST_P(AnyBackend, IsWhatItsManifestSays) {
  const Manifest& manifest = ManifestOf(GetParam());
  const absl::StatusOr<LoadedBackend> loaded = LoadBackend(manifest.object_path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->name, manifest.name);
  EXPECT_NE(loaded->version, "");
  EXPECT_EQ(manifest.abi_major, static_cast<int>(PARAM_BACKEND_ABI_MAJOR));
  EXPECT_EQ(manifest.abi_minor, static_cast<int>(loaded->abi_minor));
  std::vector<std::string> tables;
  if (loaded->device) tables.push_back("device");
  if (loaded->comm) tables.push_back("comm");
  if (loaded->native) tables.push_back("native");
  EXPECT_THAT(manifest.tables, UnorderedElementsAreArray(tables));
}

TEST_P(AnyBackend, IsUsableOrSaysWhyNot) {
  const nlohmann::json probed = nlohmann::json::parse(RunProbe(ManifestOf(GetParam()).object_path));
  EXPECT_TRUE(probed["loadable"].get<bool>()) << probed;
  if (!probed["usable"].get<bool>()) {
    EXPECT_NE(probed["reason"].get<std::string>(), "");
    GTEST_SKIP() << GetParam()
                 << ": installed, not usable: " << probed["reason"].get<std::string>();
  }
  EXPECT_EQ(probed["reason"], "");
  if (!ManifestOf(GetParam()).HasTable("device")) return;
  ASSERT_GT(probed["devices"].get<int>(), 0);
  ASSERT_EQ(probed["describe"]["devices"].size(), probed["devices"].get<std::size_t>());
  EXPECT_TRUE(probed["describe"]["libraries"].is_object());
  for (const auto& device : probed["describe"]["devices"]) {
    EXPECT_NE(device["name"].get<std::string>(), "");
    EXPECT_GT(device["memory_bytes"].get<std::int64_t>(), 0);
  }
}

TEST_P(AnyBackend, HasNoTableOfAnUnknownName) {
  const std::string& path = ManifestOf(GetParam()).object_path;
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  const auto entry = reinterpret_cast<decltype(&param_backend_entry_v1)>(
      ::dlsym(handle, "param_backend_entry_v1"));
  ASSERT_NE(entry, nullptr);
  ASSERT_NE(entry()->table, nullptr);
  EXPECT_EQ(entry()->table("no_such_table"), nullptr);
}

class DeviceContract : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Installed, DeviceContract, ::testing::ValuesIn(NamesWith("device")),
                         [](const auto& test) { return test.param; });

TEST_P(DeviceContract, RefusesADeviceThatIsNotThere) {
  EXPECT_EQ(Device::Open(*loaded_.device, host_, devices_).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Device::Open(*loaded_.device, host_, -1).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(DeviceContract, OpensADeviceTwice) {
  absl::StatusOr<Device> second = Device::Open(*loaded_.device, host_, 0);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->CreateBuffer(PARAM_MEMORY_DEVICE, 64).ok());
}

TEST_P(DeviceContract, BuffersGiveBackWhatWasWritten) {
  const std::string text = "what was written";
  for (const param_memory_kind kind :
       {PARAM_MEMORY_HOST, PARAM_MEMORY_PINNED, PARAM_MEMORY_DEVICE}) {
    absl::StatusOr<Buffer> buffer = device_->CreateBuffer(kind, 4096);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    std::vector<char> zeros(4096, 0);
    PARAM_ASSERT_OK(buffer->Write(0, zeros.data(), zeros.size()));
    PARAM_ASSERT_OK(buffer->Write(1000, text.data(), text.size()));
    std::string read(text.size() + 2, '?');
    PARAM_ASSERT_OK(buffer->Read(999, read.data(), read.size()));
    EXPECT_EQ(read, std::string(1, '\0') + text + std::string(1, '\0'));
  }
}

TEST_P(DeviceContract, BuffersRefuseWhatLiesOutside) {
  Buffer buffer = NewBuffer(64);
  std::array<char, 64> bytes = {};
  EXPECT_EQ(buffer.Write(1, bytes.data(), 64).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(buffer.Read(65, bytes.data(), 0).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(buffer.Read(std::numeric_limits<std::size_t>::max(), bytes.data(), 2).code(),
            absl::StatusCode::kOutOfRange);
  PARAM_ASSERT_OK(buffer.Write(0, bytes.data(), 64));
  PARAM_ASSERT_OK(buffer.Read(64, bytes.data(), 0));
}

TEST_P(DeviceContract, TooMuchMemoryIsRefusedWithItsSize) {
  const absl::Status status =
      device_->CreateBuffer(PARAM_MEMORY_DEVICE, std::size_t{1} << 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1125899906842624"));
}

TEST_P(DeviceContract, EventsFollowOneAnother) {
  Event first = NewEvent();
  Event second = NewEvent();
  Event third = NewEvent();
  PARAM_ASSERT_OK(first.Record(stream_));
  PARAM_ASSERT_OK(second.Record(stream_));
  PARAM_ASSERT_OK(third.Record(stream_));
  PARAM_ASSERT_OK(third.Synchronize());
  const absl::StatusOr<double> all = third.ElapsedNsSince(first);
  const absl::StatusOr<double> part = second.ElapsedNsSince(first);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_GE(*part, 0);
  EXPECT_GE(*all, *part);
}

TEST_P(DeviceContract, AnEventThatWasNeverRecordedHasNoTime) {
  Event never = NewEvent();
  Event recorded = NewEvent();
  PARAM_ASSERT_OK(recorded.Record(stream_));
  PARAM_ASSERT_OK(recorded.Synchronize());
  EXPECT_FALSE(recorded.ElapsedNsSince(never).ok());
}

TEST_P(DeviceContract, StreamsWaitForEventsOfOthers) {
  absl::StatusOr<Stream> other = device_->CreateStream();
  ASSERT_TRUE(other.ok()) << other.status();
  Event event = NewEvent();
  PARAM_ASSERT_OK(event.Record(*other));
  PARAM_ASSERT_OK(stream_.Wait(event));
  PARAM_ASSERT_OK(stream_.Synchronize());
}

TEST_P(DeviceContract, AHeldStreamRunsWhatWasQueuedOnceReleased) {
  Event event = NewEvent();
  PARAM_ASSERT_OK(stream_.Hold());
  PARAM_ASSERT_OK(event.Record(stream_));
  PARAM_ASSERT_OK(stream_.Release());
  PARAM_ASSERT_OK(event.Synchronize());
}

TEST_P(DeviceContract, FlushingCachesSaysHowMuchWasWritten) {
  const absl::StatusOr<std::uint64_t> flushed = stream_.FlushCache();
  if (absl::IsUnimplemented(flushed.status())) GTEST_SKIP() << flushed.status();
  ASSERT_TRUE(flushed.ok()) << flushed.status();
  EXPECT_GE(*flushed, std::uint64_t{1} << 20);
  PARAM_ASSERT_OK(stream_.Synchronize());
}

TEST_P(DeviceContract, ClocksAreJson) {
  const absl::StatusOr<std::string> clocks = device_->Clocks();
  if (absl::IsUnimplemented(clocks.status())) GTEST_SKIP() << clocks.status();
  ASSERT_TRUE(clocks.ok()) << clocks.status();
  EXPECT_TRUE(nlohmann::json::parse(*clocks).is_object()) << *clocks;
}

TEST_P(DeviceContract, PeaksArePositiveAndExplained) {
  int known = 0;
  for (const param_dtype dtype : {PARAM_DTYPE_F64, PARAM_DTYPE_F32, PARAM_DTYPE_BF16}) {
    const absl::StatusOr<PeakRate> peak = device_->PeakFlops(dtype);
    if (absl::IsUnimplemented(peak.status())) {
      EXPECT_NE(peak.status().message(), "");
      continue;
    }
    ASSERT_TRUE(peak.ok()) << peak.status();
    EXPECT_GT(peak->flops, 1e6);
    EXPECT_NE(peak->how, "");
    ++known;
  }
  if (known == 0) GTEST_SKIP() << GetParam() << " knows no peaks";
}

TEST_P(DeviceContract, CopiesBetweenBuffers) {
  OpDesc desc("copy");
  desc.Tensor("src", PARAM_DTYPE_F32, {4, 5}).Tensor("dst", PARAM_DTYPE_F32, {4, 5});
  absl::StatusOr<Op> op = device_->CreateOp(desc.desc());
  ASSERT_TRUE(op.ok()) << op.status();
  std::vector<float> numbers(20);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) + 0.5f;
  Buffer src = NewBuffer(100);
  Buffer dst = NewBuffer(100);
  PARAM_ASSERT_OK(src.Write(16, numbers.data(), 80));
  PARAM_ASSERT_OK(RunOnce(*op, {src.At(16), dst.At(4)}));
  std::vector<float> copied(20);
  PARAM_ASSERT_OK(dst.Read(4, copied.data(), 80));
  EXPECT_EQ(copied, numbers);
  EXPECT_EQ(op->Enqueue(stream_, {src.At(24), dst.At(0)}, nullptr).code(),
            absl::StatusCode::kOutOfRange);
}

TEST_P(DeviceContract, AnUnknownOperationIsUnimplemented) {
  OpDesc desc("no_such_operation");
  const absl::Status status = device_->CreateOp(desc.desc()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no_such_operation"));
}

TEST_P(DeviceContract, MessagesEndWithinTheirArray) {
  OpDesc desc(std::string(5000, 'x'));
  param_op* op = nullptr;
  param_error error;
  std::memset(&error, 'y', sizeof(error));
  EXPECT_EQ(loaded_.device->op_create(device_->ctx(), &desc.desc(), &op, &error), 12);
  EXPECT_LT(strnlen(error.message, sizeof(error.message)), sizeof(error.message));
  EXPECT_EQ(error.code, 12);
}

}  // namespace
}  // namespace param
