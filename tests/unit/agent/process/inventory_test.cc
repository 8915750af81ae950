#include "agent/process/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/process/process_fixture.h"

namespace param::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class InventoryTest : public ProcessTest {
 protected:
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = folder_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  Inventory Read() { return ReadInventory({.root = folder_, .hostname = "n7", .cpus = {0, 1, 2}}); }
  // A machine with 1 GiB.
  void PutMemory() { Put("/proc/meminfo", "MemTotal:       1048576 kB\n"); }
};

TEST_F(InventoryTest, ReadsAMachine) {
  Put("/proc/sys/kernel/random/boot_id", "b00t\n");
  Put("/proc/sys/kernel/osrelease", "6.1.0\n");
  Put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: EPYC 9654\nprocessor : 1\nmodel name : x\n");
  Put("/proc/meminfo", "MemTotal:       1048576 kB\nMemFree: 1 kB\n");
  for (int cpu = 0; cpu < 4; ++cpu) {
    Put(absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/physical_package_id"),
        absl::StrCat(cpu / 2, "\n"));
  }
  Put("/sys/devices/system/cpu/cpufreq/x", "");
  Put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  for (const char* node : {"node0", "node1", "node10", "power"}) {
    Put(absl::StrCat("/sys/devices/system/node/", node, "/x"), "");
  }
  Put("/sys/class/net/lo/operstate", "unknown");
  Put("/sys/class/net/eth0/operstate", "up\n");
  Put("/sys/class/net/eth0/speed", "100000\n");
  Put("/sys/class/net/eth0/device/x", "");
  std::filesystem::create_symlink("../../../bus/pci/drivers/mlx5_core",
                                  folder_ + "/sys/class/net/eth0/device/driver");
  Put("/sys/class/net/eth1/operstate", "down\n");
  Put("/sys/class/net/eth1/speed", "-1\n");

  const Inventory inventory = Read();
  EXPECT_EQ(inventory.hostname, "n7");
  EXPECT_EQ(inventory.boot_id, "b00t");
  EXPECT_EQ(inventory.kernel, "6.1.0");
  EXPECT_EQ(inventory.cpu_model, "EPYC 9654");
  EXPECT_EQ(inventory.cores, 3);
  EXPECT_EQ(inventory.sockets, 2);
  EXPECT_EQ(inventory.numa_nodes, 3);
  EXPECT_EQ(inventory.memory_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(inventory.governor, "performance");
  ASSERT_THAT(inventory.nics, SizeIs(2));
  EXPECT_EQ(inventory.nics[0], (Nic{.name = "eth0",
                                    .driver = "mlx5_core",
                                    .speed_bits_per_second = 100'000'000'000,
                                    .state = "up"}));
  EXPECT_EQ(inventory.nics[1],
            (Nic{.name = "eth1", .driver = "", .speed_bits_per_second = 0, .state = "down"}));
}

TEST_F(InventoryTest, AMachineThatSaysNothingHasAnInventoryAllTheSame) {
  const Inventory inventory = Read();
  EXPECT_EQ(inventory.cores, 3);
  EXPECT_EQ(inventory.sockets, 1);
  EXPECT_EQ(inventory.numa_nodes, 1);
  EXPECT_EQ(inventory.memory_bytes, 0);
  EXPECT_THAT(inventory.nics, IsEmpty());
}

TEST_F(InventoryTest, MemoryIsTheLimitOfTheControlGroupWhereThatIsLess) {
  PutMemory();
  Put("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_EQ(Read().memory_bytes, std::int64_t{512} << 20);
}

TEST_F(InventoryTest, MemoryIsTheLimitOfAVersionOneControlGroup) {
  PutMemory();
  Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
  EXPECT_EQ(Read().memory_bytes, std::int64_t{256} << 20);
}

TEST_F(InventoryTest, MemoryIsTheMachinesWhereTheControlGroupHasNoLimit) {
  PutMemory();
  Put("/sys/fs/cgroup/memory.max", "max\n");
  Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read().memory_bytes, std::int64_t{1} << 30);
}

TEST_F(InventoryTest, AddressesAndTheNetworkAreThisProcesss) {
  const Inventory inventory = ReadInventory(ThisMachine());
  EXPECT_THAT(inventory.addresses, ::testing::Contains(NetAddress{"lo", "127.0.0.1", 8}));
  EXPECT_THAT(inventory.network_id, ::testing::StartsWith("net:["));
}

TEST_F(InventoryTest, TheGovernorIsThatOfTheFirstCpuThatMayBeUsed) {
  Put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  Put("/sys/devices/system/cpu/cpu5/cpufreq/scaling_governor", "performance\n");
  EXPECT_EQ(ReadInventory({.root = folder_, .hostname = "n7", .cpus = {5, 6}}).governor,
            "performance");
}

TEST_F(InventoryTest, ThisMachineHasCoresAndABootId) {
  const Inventory inventory = ReadInventory(ThisMachine());
  EXPECT_GT(inventory.cores, 0);
  EXPECT_GT(inventory.memory_bytes, 0);
  EXPECT_THAT(inventory.boot_id, SizeIs(36));
}

}  // namespace
}  // namespace param::agent
