#include "agent/worker/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/backend/error.h"
#include "agent/worker/affinity.h"
#include "proto/base/version.h"

namespace param {
namespace {

// What changes how libraries compute or talk; never anything that may hold a secret.
constexpr absl::string_view kVariables[] = {
    "CUDA_VISIBLE_DEVICES", "GOMP_CPU_AFFINITY",    "KMP_AFFINITY",    "OMP_NUM_THREADS",
    "OMP_PLACES",           "OMP_PROC_BIND",        "OMP_WAIT_POLICY", "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",     "OPENBLAS_NUM_THREADS",
};
constexpr absl::string_view kPrefixes[] = {"DNNL_", "MKL_", "NCCL_", "ONEDNN_"};
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
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* const equals = std::strchr(*entry, '=');
    if (equals == nullptr) continue;
    const std::string name(*entry, static_cast<std::size_t>(equals - *entry));
    if (facts.size() >= kMaxFacts || !IsRecordedVariable(name)) continue;
    facts[absl::StrCat("env.", name)] = std::string(equals + 1).substr(0, kMaxValue);
  }
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

bool IsRecordedVariable(const std::string& name) {
  const auto same = [&name](absl::string_view one) { return name == one; };
  const auto begins = [&name](absl::string_view one) { return absl::StartsWith(name, one); };
  return std::any_of(std::begin(kVariables), std::end(kVariables), same) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes), begins);
}

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
