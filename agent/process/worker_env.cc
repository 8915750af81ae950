#include "agent/process/worker_env.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"

namespace param::agent {
namespace {

constexpr absl::string_view kNames[] = {"PATH",
                                        "HOME",
                                        "USER",
                                        "LOGNAME",
                                        "LANG",
                                        "LANGUAGE",
                                        "TZ",
                                        "TMPDIR",
                                        "LD_LIBRARY_PATH",
                                        "ASAN_OPTIONS",
                                        "LSAN_OPTIONS",
                                        "UBSAN_OPTIONS",
                                        "TSAN_OPTIONS",
                                        "LLVM_PROFILE_FILE",
                                        "GCOV_PREFIX",
                                        "GCOV_PREFIX_STRIP"};
constexpr absl::string_view kPrefixes[] = {
    "LC_",    "OMP_",  "GOMP_",   "KMP_",  "MKL_",  "DNNL_", "ONEDNN_", "OPENBLAS_",  "CUDA_",
    "CUBLAS", "NCCL_", "NVIDIA_", "OMPI_", "PMIX_", "UCX_",  "GLOO_",   "PARAM_FAKE_"};

bool IsAllowed(absl::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace

std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    if (IsAllowed(absl::string_view(entry).substr(0, equals))) kept.push_back(entry);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

}  // namespace param::agent
