#include "agent/backends/cpu/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

namespace param::cpu {
namespace {

// The first line of a file, "" when there is none.
std::string ReadLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string CpuFolder(int cpu) { return "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/"; }

// "32768K", as the kernel writes sizes of caches.
std::int64_t ParseCacheSize(const std::string& text) {
  char* unit = nullptr;
  const std::int64_t value = std::strtoll(text.c_str(), &unit, 10);
  if (*unit == 'K') return value << 10;
  return *unit == 'M' ? value << 20 : value;
}

// Values of "key : value" lines of /proc/cpuinfo.
std::vector<std::string> CpuinfoValues(const std::string& key) {
  std::vector<std::string> values;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && line.compare(0, key.size(), key) == 0) {
      values.push_back(line.substr(colon + 2));
    }
  }
  return values;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

std::string ProcessorName() {
  const std::vector<std::string> names = CpuinfoValues("model name");
  return names.empty() ? "" : names[0];
}

std::vector<int> AllowedProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::int64_t MemoryBytes() {
  std::int64_t bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::int64_t limit = std::strtoll(ReadLine(path).c_str(), nullptr, 10);  // "max": 0
    if (limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

std::int64_t LastLevelCacheBytes() {
  std::set<std::string> seen;  // caches, by the processors that share them
  std::int64_t total = 0;
  for (const int cpu : AllowedProcessors()) {
    std::int64_t level = 0;
    std::int64_t size = 0;
    std::string shared;
    for (int index = 0; index < 8; ++index) {
      const std::string folder = CpuFolder(cpu) + "cache/index" + std::to_string(index) + "/";
      const std::int64_t this_level = std::strtoll(ReadLine(folder + "level").c_str(), nullptr, 10);
      if (this_level <= level) continue;
      level = this_level;
      size = ParseCacheSize(ReadLine(folder + "size"));
      shared = ReadLine(folder + "shared_cpu_list");
    }
    if (seen.insert(shared).second) total += size;
  }
  return total > 0 ? total : std::int64_t{32} << 20;
}

double ClockHz() {
  std::vector<double> khz;
  for (const int cpu : AllowedProcessors()) {
    const std::string text = ReadLine(CpuFolder(cpu) + "cpufreq/scaling_cur_freq");
    if (!text.empty()) khz.push_back(std::strtod(text.c_str(), nullptr));
  }
  if (!khz.empty()) return Mean(khz) * 1e3;
  std::vector<double> mhz;
  for (const std::string& text : CpuinfoValues("cpu MHz")) {
    mhz.push_back(std::strtod(text.c_str(), nullptr));
  }
  return Mean(mhz) * 1e6;
}

std::string Governor() {
  const std::vector<int> cpus = AllowedProcessors();
  return cpus.empty() ? "" : ReadLine(CpuFolder(cpus[0]) + "cpufreq/scaling_governor");
}

void Parallel(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(body, i);
  body(0);
  for (std::thread& other : others) other.join();
}

}  // namespace param::cpu
