#include "server/core/backend_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace param {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

BackendStatus Usable(const std::string& name, const std::string& table, int preference = 0) {
  BackendStatus backend;
  backend.name = name;
  backend.installed = backend.loadable = backend.usable = true;
  backend.devices = 1;
  backend.tables = {table};
  backend.benchmarks = {"*"};
  backend.preference = preference;
  return backend;
}

Inventory Node(std::vector<BackendStatus> backends) {
  Inventory node;
  node.backends = std::move(backends);
  return node;
}

TEST(ParseBackend, TakesDeviceCommAndBoth) {
  const std::vector<std::string> devices = {"cpu", "fast"};
  for (const char* text : {"", "auto"}) {
    const auto any = ParseBackend(text, devices);
    ASSERT_TRUE(any.ok());
    EXPECT_EQ(any->device, "");
    EXPECT_THAT(any->comm, IsEmpty());
  }
  const auto device = ParseBackend("fast", devices);
  EXPECT_EQ(device->device, "fast");
  EXPECT_THAT(device->comm, IsEmpty());
  const auto comm = ParseBackend("ring", devices);
  EXPECT_EQ(comm->device, "");  // the missing half is chosen
  EXPECT_THAT(comm->comm, ElementsAre("ring"));
  const auto both = ParseBackend("fast+ring+tree", devices);
  EXPECT_EQ(both->device, "fast");
  EXPECT_THAT(both->comm, ElementsAre("ring", "tree"));
  const auto turned = ParseBackend("ring+fast", devices);  // only the first may be the device
  EXPECT_EQ(turned->device, "");
  EXPECT_THAT(turned->comm, ElementsAre("ring", "fast"));
}

TEST(ParseBackend, AnEmptyPartIsAnErrorThatShowsTheText) {
  for (const char* text : {"+", "cpu+", "+ring", "cpu++ring"}) {
    const absl::Status status = ParseBackend(text, {"cpu"}).status();
    EXPECT_EQ(status, absl::InvalidArgumentError(absl::StrCat(
                          "backend \"", text, "\": write auto, DEVICE, COMM or DEVICE+COMM")));
  }
}

TEST(WhyNotUsable, SaysWhichOfTheStatesIsMissingAndWhy) {
  BackendStatus backend = Usable("cpu", "device");
  const auto why = [&backend](const std::string& name, const std::string& table,
                              const std::string& benchmark) {
    return WhyNotUsable(Node({backend}), name, table, benchmark);
  };
  EXPECT_EQ(why("cpu", "device", "gemm"), "");
  EXPECT_EQ(why("gpu", "device", "gemm"), "backend gpu is not installed");
  EXPECT_EQ(why("cpu", "comm", "gemm"), "backend cpu has no table \"comm\"");
  backend.benchmarks = {"copy", "gemm"};
  EXPECT_EQ(why("cpu", "device", "gemm"), "");
  EXPECT_EQ(why("cpu", "device", "sort"), "backend cpu does not run sort");
  backend.usable = false;
  backend.reason = "no driver";
  EXPECT_EQ(why("cpu", "device", "gemm"), "backend cpu is installed, not usable: no driver");
  backend.loadable = false;
  backend.reason = "libx.so: not found";
  EXPECT_EQ(why("cpu", "device", "gemm"),
            "backend cpu is installed, not loadable: libx.so: not found");
}

TEST(DeviceBackends, AreThoseOfAnyNodeUsableOrNot) {
  BackendStatus broken = Usable("gpu", "device");
  broken.usable = false;
  const Inventory one = Node({Usable("cpu", "device"), Usable("ring", "comm")});
  const Inventory two = Node({Usable("cpu", "device"), broken});
  EXPECT_THAT(DeviceBackends({&one, &two}), ElementsAre("cpu", "gpu"));
  EXPECT_THAT(DeviceBackends({}), IsEmpty());
}

TEST(AutoCandidates, AreUsableDevicesBestFirst) {
  BackendStatus broken = Usable("best", "device", 99);
  broken.usable = false;
  const Inventory one = Node({Usable("cpu", "device", 10), Usable("fake", "device", 0),
                              Usable("ring", "comm", 50), broken});
  const Inventory two = Node({Usable("gpu", "device", 20), Usable("abc", "device", 10)});
  EXPECT_THAT(AutoCandidates({&one, &two}), ElementsAre("gpu", "abc", "cpu"));
  const Inventory boosted = Node({Usable("cpu", "device", 30)});  // the highest of any node counts
  EXPECT_THAT(AutoCandidates({&one, &two, &boosted}), ElementsAre("cpu", "gpu", "abc"));
}

TEST(DefaultRanksPerNode, IsOneOrOnePerDevice) {
  BackendStatus gpu = Usable("gpu", "device");
  gpu.devices = 8;
  EXPECT_EQ(DefaultRanksPerNode(Node({gpu}), "gpu"), 1);
  gpu.rank_per_device = true;
  EXPECT_EQ(DefaultRanksPerNode(Node({gpu}), "gpu"), 8);
  EXPECT_EQ(DefaultRanksPerNode(Node({gpu}), "cpu"), 1);
  gpu.devices = 0;
  EXPECT_EQ(DefaultRanksPerNode(Node({gpu}), "gpu"), 1);
}

TEST(DeviceMemory, IsTheBackendsOwnOrNone) {
  BackendStatus gpu = Usable("gpu", "device");
  gpu.device_memory_bytes = std::int64_t{80} << 30;
  const Inventory node = Node({Usable("cpu", "device"), gpu});
  EXPECT_EQ(DeviceMemory(node, "gpu"), std::int64_t{80} << 30);
  EXPECT_EQ(DeviceMemory(node, "cpu"), 0);
  EXPECT_EQ(DeviceMemory(node, "tpu"), 0);
}

}  // namespace
}  // namespace param
