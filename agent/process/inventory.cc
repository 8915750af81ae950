#include "agent/process/inventory.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <limits>
#include <set>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/file.h"

namespace param::agent {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const std::string& path) {
  return std::string(absl::StripAsciiWhitespace(ReadFileOrEmpty(path)));
}

// Names in a folder, sorted.
std::vector<std::string> List(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "node0" with prefix "node": yes; "nodes": no.
bool IsNumbered(absl::string_view name, absl::string_view prefix) {
  return absl::StartsWith(name, prefix) && name.size() > prefix.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// The value of "key : value" in a file like /proc/cpuinfo, first one.
std::string FieldOf(absl::string_view text, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    if (absl::StripAsciiWhitespace(line.substr(0, colon)) != key) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

int CountSockets(const std::string& root) {
  std::set<std::string> packages;
  const std::string cpus = absl::StrCat(root, "/sys/devices/system/cpu");
  for (const std::string& name : List(cpus)) {
    if (!IsNumbered(name, "cpu")) continue;
    const std::string package =
        ReadText(absl::StrCat(cpus, "/", name, "/topology/physical_package_id"));
    if (!package.empty()) packages.insert(package);
  }
  return std::max(static_cast<int>(packages.size()), 1);
}

int CountNumaNodes(const std::string& root) {
  const std::vector<std::string> names = List(absl::StrCat(root, "/sys/devices/system/node"));
  const auto nodes = std::count_if(
      names.begin(), names.end(), [](const std::string& name) { return IsNumbered(name, "node"); });
  return std::max(static_cast<int>(nodes), 1);
}

// The file's number if it is one above 0, else the largest number: no limit ("max", or no file).
std::int64_t LimitIn(const std::string& path) {
  std::int64_t limit = 0;
  const bool given = absl::SimpleAtoi(ReadText(path), &limit) && limit > 0;
  return given ? limit : std::numeric_limits<std::int64_t>::max();
}

// What this process may use: a container sees the whole machine's MemTotal, but is killed at the
// limit of its control group. Version 1 says "no limit" with a number beyond any memory.
std::int64_t MemoryBytes(const std::string& root) {
  const std::string total = FieldOf(ReadText(absl::StrCat(root, "/proc/meminfo")), "MemTotal");
  const std::vector<std::string> parts = absl::StrSplit(total, ' ', absl::SkipEmpty());
  std::int64_t kib = 0;
  if (parts.empty() || !absl::SimpleAtoi(parts[0], &kib) || kib < 0) return 0;
  const std::string groups = absl::StrCat(root, "/sys/fs/cgroup");
  return std::min({kib * 1024, LimitIn(absl::StrCat(groups, "/memory.max")),
                   LimitIn(absl::StrCat(groups, "/memory/memory.limit_in_bytes")),
                   LimitIn(absl::StrCat(groups, "/memory.limit_in_bytes"))});
}

std::vector<Nic> ReadNics(const std::string& root) {
  std::vector<Nic> nics;
  const std::string net = absl::StrCat(root, "/sys/class/net");
  for (const std::string& name : List(net)) {
    if (name == "lo") continue;
    const std::string base = absl::StrCat(net, "/", name);
    Nic nic;
    nic.name = name;
    std::error_code error;
    const fs::path driver = fs::read_symlink(absl::StrCat(base, "/device/driver"), error);
    if (!error) nic.driver = driver.filename().string();
    std::int64_t megabits = 0;
    // A link that is down says -1 or cannot be read.
    if (absl::SimpleAtoi(ReadText(absl::StrCat(base, "/speed")), &megabits) && megabits > 0) {
      nic.speed_bits_per_second = megabits * 1'000'000;
    }
    nic.state = ReadText(absl::StrCat(base, "/operstate"));
    nics.push_back(std::move(nic));
  }
  return nics;
}

int PrefixBits(const unsigned char* mask, std::size_t bytes) {
  int bits = 0;
  for (std::size_t i = 0; i < bytes; ++i) bits += __builtin_popcount(mask[i]);
  return bits;
}

// Of the interfaces that are up.
std::vector<NetAddress> OwnAddresses() {
  std::vector<NetAddress> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_netmask == nullptr) continue;
    if ((each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    std::array<char, INET6_ADDRSTRLEN> text{};
    int prefix = 0;
    if (family == AF_INET) {
      const auto* const address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      const auto* const mask = reinterpret_cast<const sockaddr_in*>(each->ifa_netmask);
      ::inet_ntop(family, &address->sin_addr, text.data(), text.size());
      prefix = PrefixBits(reinterpret_cast<const unsigned char*>(&mask->sin_addr), 4);
    } else if (family == AF_INET6) {
      const auto* const address = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
      const auto* const mask = reinterpret_cast<const sockaddr_in6*>(each->ifa_netmask);
      ::inet_ntop(family, &address->sin6_addr, text.data(), text.size());
      prefix = PrefixBits(mask->sin6_addr.s6_addr, 16);
    } else {
      continue;
    }
    addresses.push_back({each->ifa_name, text.data(), prefix});
  }
  ::freeifaddrs(list);
  return addresses;
}

}  // namespace

Inventory ReadInventory(const InventorySource& source) {
  const std::string& root = source.root;
  Inventory inventory;
  inventory.hostname = source.hostname;
  inventory.boot_id = ReadText(absl::StrCat(root, "/proc/sys/kernel/random/boot_id"));
  inventory.kernel = ReadText(absl::StrCat(root, "/proc/sys/kernel/osrelease"));
  inventory.cpu_model = FieldOf(ReadText(absl::StrCat(root, "/proc/cpuinfo")), "model name");
  inventory.cores = static_cast<int>(source.cpus.size());
  inventory.sockets = CountSockets(root);
  inventory.numa_nodes = CountNumaNodes(root);
  inventory.memory_bytes = MemoryBytes(root);
  const int first_cpu = source.cpus.empty() ? 0 : source.cpus.front();
  inventory.governor = ReadText(
      absl::StrCat(root, "/sys/devices/system/cpu/cpu", first_cpu, "/cpufreq/scaling_governor"));
  inventory.nics = ReadNics(root);
  inventory.cpus = source.cpus;
  inventory.addresses = source.addresses;
  inventory.network_id = source.network_id;
  return inventory;
}

InventorySource ThisMachine() {
  InventorySource source;
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) source.hostname = name.data();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) source.cpus.push_back(cpu);
    }
  }
  source.addresses = OwnAddresses();
  std::error_code error;  // without /proc it is nobody's namespace
  source.network_id = fs::read_symlink("/proc/self/ns/net", error).string();
  return source;
}

}  // namespace param::agent
