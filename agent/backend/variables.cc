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
// How a launcher and its ranks find each other: of one run only, and many. Settings begin with
// OMPI_MCA_ too.
constexpr absl::string_view kPlumbing[] = {
    "OMPI_ALLOW_RUN_", "OMPI_APP_",      "OMPI_ARGV",      "OMPI_COMM",
    "OMPI_FILE_LOC",   "OMPI_FIRST_",    "OMPI_MCA_ess",   "OMPI_MCA_if_base_do",
    "OMPI_MCA_init",   "OMPI_MCA_oob_",  "OMPI_MCA_orte_", "OMPI_MCA_plm",
    "OMPI_MCA_pmix",   "OMPI_NUM_",      "OMPI_UNIVERSE_", "OMPI_MCA_shmem_RUNTIME",
    "PMIX_BFROP_",     "PMIX_DSTORE_",   "PMIX_GDS_",      "PMIX_HOSTNAME",
    "PMIX_ID",         "PMIX_NAMESPACE", "PMIX_RANK",      "PMIX_SECURITY_MODE",
    "PMIX_SERVER_",    "PMIX_SYSTEM_",   "PMIX_VERSION"};
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
  const bool is_plumbing =
      std::any_of(std::begin(kPlumbing), std::end(kPlumbing),
                  [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
  if (is_plumbing || IsIn(kNever, name)) return false;
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
