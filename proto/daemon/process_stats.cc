#include "proto/daemon/process_stats.h"
#include "proto/base/file.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>

namespace param {
namespace {

prometheus::MetricFamily One(const char* name, const char* help, prometheus::MetricType type,
                             double value) {
  prometheus::ClientMetric metric;
  if (type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return {name, help, type, {metric}};
}

double BootSeconds() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    if (word != "btime") continue;
    double seconds = 0;
    file >> seconds;
    return seconds;
  }
  return 0;
}

double OpenDescriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (folder == nullptr) return -1;
  double count = -3;  // ".", ".." and the folder's own
  while (::readdir(folder.get()) != nullptr) ++count;
  return count;
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessMetrics() {
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families;
  const std::string text = ReadFileOrEmpty("/proc/self/stat");
  // The name in parentheses may hold anything: fields are counted from after it. See proc(5).
  if (const std::size_t name_end = text.rfind(')'); name_end != std::string::npos) {
    std::istringstream in(text.substr(name_end + 1));
    std::vector<std::string> fields((std::istream_iterator<std::string>(in)),
                                    std::istream_iterator<std::string>());
    if (fields.size() > 21) {
      const auto field = [&fields](std::size_t number) {  // as numbered in proc(5)
        return std::strtod(fields[number - 3].c_str(), nullptr);
      };
      const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
      families.push_back(One("process_cpu_seconds_total", "User and system CPU time",
                             MetricType::Counter, (field(14) + field(15)) / ticks));
      families.push_back(
          One("process_threads", "Threads of the process", MetricType::Gauge, field(20)));
      families.push_back(One("process_start_time_seconds", "Start of the process since the epoch",
                             MetricType::Gauge, BootSeconds() + field(22) / ticks));
      families.push_back(
          One("process_virtual_memory_bytes", "Virtual memory", MetricType::Gauge, field(23)));
      families.push_back(One("process_resident_memory_bytes", "Resident memory", MetricType::Gauge,
                             field(24) * static_cast<double>(::sysconf(_SC_PAGESIZE))));
    }
  }
  if (const double open = OpenDescriptors(); open >= 0) {
    families.push_back(One("process_open_fds", "Open file descriptors", MetricType::Gauge, open));
  }
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(One("process_max_fds", "Limit of open file descriptors", MetricType::Gauge,
                           static_cast<double>(limit.rlim_cur)));
  }
  return families;
}

}  // namespace param
