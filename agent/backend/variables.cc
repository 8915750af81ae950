#include "agent/backend/variables.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace param {
namespace {

constexpr absl::string_view kSurroundings[] = {
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "GCOV_PREFIX",
    "GCOV_PREFIX_STRIP",
    "LLVM_PROFILE_FILE",
};
constexpr absl::string_view kNames[] = {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS",
                                        "UBSAN_OPTIONS",   "TSAN_OPTIONS", "PARAM_INTERFACE"};
constexpr absl::string_view kPrefixes[] = {
    "OMP_",   "GOMP_", "KMP_",    "MKL_",  "DNNL_", "ONEDNN_", "OPENBLAS_", "CUDA_",
    "CUBLAS", "NCCL_", "NVIDIA_", "OMPI_", "PMIX_", "UCX_",    "GLOO_",     "PARAM_FAKE_"};
constexpr absl::string_view kNever[] = {"CUDA_LAUNCH_BLOCKING"};
constexpr absl::string_view kSecrets[] = {"SECRET",     "TOKEN", "PASSW",
                                          "CREDENTIAL", "_KEY",  "PRECONDITION_TRANSPORTS"};

template <std::size_t N>
bool IsIn(const absl::string_view (&names)[N], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool IsSurrounding(absl::string_view name) {
  return IsIn(kSurroundings, name) || absl::StartsWith(name, "LC_");
}

}  // namespace

bool IsRecordedVariable(absl::string_view name) {
  if (IsIn(kNever, name)) return false;
  return IsIn(kNames, name) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

bool ReachesWorker(absl::string_view name) {
  return IsSurrounding(name) || IsRecordedVariable(name);
}

bool MayHoldSecret(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  return std::any_of(std::begin(kSecrets), std::end(kSecrets),
                     [&upper](absl::string_view part) { return absl::StrContains(upper, part); });
}

}  // namespace param
