#include "agent/worker/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "agent/backend/error.h"
#include "agent/backend/variables.h"
#include "agent/worker/affinity.h"
#include "proto/base/version.h"

namespace param {
namespace {

constexpr std::size_t kMaxValue = 512;
constexpr std::size_t kMaxFacts = 60;  // agents take 64
constexpr std::size_t kDescribeBytes = 64 << 10;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void AddVariables(std::map<std::string, std::string>& facts) {
  int left_out = 0;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* const equals = std::strchr(*entry, '=');
    if (equals == nullptr) continue;
    const std::string name(*entry, static_cast<std::size_t>(equals - *entry));
    if (!IsRecordedVariable(name)) continue;
    if (facts.size() >= kMaxFacts) {
      ++left_out;
      continue;
    }
    facts[absl::StrCat("env.", name)] =
        MayHoldSecret(name) ? "(set)" : std::string(equals + 1).substr(0, kMaxValue);
  }
  if (left_out > 0) facts["env_left_out"] = absl::StrCat(left_out);
}

void AddBackend(const LoadedBackend& backend, std::map<std::string, std::string>& facts) {
  facts[absl::StrCat("backend.", backend.name)] = backend.version;
  if (!backend.device.has_value() || backend.device->describe == nullptr) return;
  std::string text(kDescribeBytes, '\0');
  BackendError error;
  if (backend.device->describe(text.data(), text.size(), &error) != 0) return;
  text.back() = '\0';
  const nlohmann::json parsed = nlohmann::json::parse(text.c_str(), nullptr, false);
  if (!parsed.is_object() || !parsed.contains("libraries")) return;
  const nlohmann::json& libraries = parsed["libraries"];
  if (!libraries.is_object()) return;
  for (const auto& [name, version] : libraries.items()) {
    if (version.is_string() && facts.size() < kMaxFacts) {
      facts[absl::StrCat("library.", name)] = version.get<std::string>().substr(0, kMaxValue);
    }
  }
}

}  // namespace

std::map<std::string, std::string> CollectFacts(const std::vector<const LoadedBackend*>& backends,
                                                int threads) {
  std::map<std::string, std::string> facts;
  facts["version"] = std::string(Version());
  facts["revision"] = std::string(Revision());
  facts["compiler"] = std::string(Compiler());
  facts["threads"] = absl::StrCat(threads);
  utsname system = {};
  if (uname(&system) == 0) {
    facts["hostname"] = system.nodename;
    facts["kernel"] = absl::StrCat(system.sysname, " ", system.release, " ", system.machine);
  }
  if (const auto cpus = AllowedCpus(); cpus.ok()) {
    facts["affinity"] = CpuListText(*cpus);
    if (!cpus->empty()) {
      const std::string governor = FirstLine(
          absl::StrCat("/sys/devices/system/cpu/cpu", cpus->front(), "/cpufreq/scaling_governor"));
      facts["governor"] = governor.empty() ? "unknown" : governor;
    }
  }
  for (const LoadedBackend* backend : backends) AddBackend(*backend, facts);
  AddVariables(facts);
  return facts;
}

}  // namespace param
