#pragma once
// Asks the real promtool about a page of metrics.

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace param {

// What "promtool check metrics" says of the page, "" when all is well; "no promtool" when it is not
// installed.
inline std::string PromtoolComplaints(const std::vector<prometheus::MetricFamily>& families) {
  if (::access("/usr/bin/promtool", X_OK) != 0) return "no promtool";
  std::string file = "/tmp/metrics-XXXXXX";
  const int fd = ::mkstemp(file.data());
  if (fd < 0) return "no temporary file";
  ::close(fd);
  std::ofstream(file) << prometheus::TextSerializer().Serialize(families);
  const std::string command = "/usr/bin/promtool check metrics < " + file + " 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string complaints;
  std::array<char, 256> line = {};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    complaints += line.data();
  }
  (void)::unlink(file.c_str());
  return complaints;
}

}  // namespace param
