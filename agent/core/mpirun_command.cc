#include "agent/core/mpirun_command.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"

namespace param::agent {
namespace {

constexpr std::size_t kMaxWords = 256;
constexpr std::size_t kMaxWordBytes = 64 << 10;  // a list of many thousand hosts
// Transports that every build of the library has. The shared memory one is for ranks of one node.
constexpr absl::string_view kTransports = "self,vader,tcp";
constexpr absl::string_view kNoOtherPmix = "^s1,s2,cray,isolated";
// With /bin/sh or ksh as the user's shell, mpirun has the profile read first.
constexpr absl::string_view kProfile[] = {"(",          "test", "!", "-r",
                                          "./.profile", "||",   ".", "./.profile;"};

// Of Open MPI 4.1: what its daemon sets for each rank, and settings of MpirunArgs().
constexpr absl::string_view kForRanks[] = {"OMPI_APP_CTX_NUM_PROCS",
                                           "OMPI_ARGV",
                                           "OMPI_COMMAND",
                                           "OMPI_COMM_WORLD_LOCAL_RANK",
                                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                                           "OMPI_COMM_WORLD_NODE_RANK",
                                           "OMPI_COMM_WORLD_RANK",
                                           "OMPI_COMM_WORLD_SIZE",
                                           "OMPI_FILE_LOCATION",
                                           "OMPI_FIRST_RANKS",
                                           "OMPI_MCA_btl",
                                           "OMPI_MCA_btl_tcp_if_include",
                                           "OMPI_MCA_ess",
                                           "OMPI_MCA_ess_base_jobid",
                                           "OMPI_MCA_ess_base_vpid",
                                           "OMPI_MCA_hwloc_base_binding_policy",
                                           "OMPI_MCA_if_base_do_not_resolve",
                                           "OMPI_MCA_initial_wdir",
                                           "OMPI_MCA_mpi_oversubscribe",
                                           "OMPI_MCA_mpi_yield_when_idle",
                                           "OMPI_MCA_oob_tcp_if_include",
                                           "OMPI_MCA_orte_app_num",
                                           "OMPI_MCA_orte_ess_node_rank",
                                           "OMPI_MCA_orte_ess_num_procs",
                                           "OMPI_MCA_orte_hnp_uri",
                                           "OMPI_MCA_orte_jobfam_session_dir",
                                           "OMPI_MCA_orte_launch",
                                           "OMPI_MCA_orte_local_daemon_uri",
                                           "OMPI_MCA_orte_num_nodes",
                                           "OMPI_MCA_orte_precondition_transports",
                                           "OMPI_MCA_orte_tmpdir_base",
                                           "OMPI_MCA_orte_top_session_dir",
                                           "OMPI_MCA_pmix",
                                           "OMPI_MCA_pml",
                                           "OMPI_MCA_rmaps_base_mapping_policy",
                                           "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
                                           "OMPI_NUM_APP_CTX",
                                           "OMPI_UNIVERSE_SIZE",
                                           "PMIX_BFROP_BUFFER_TYPE",
                                           "PMIX_DSTORE_21_BASE_PATH",
                                           "PMIX_DSTORE_ESH_BASE_PATH",
                                           "PMIX_GDS_MODULE",
                                           "PMIX_HOSTNAME",
                                           "PMIX_ID",
                                           "PMIX_NAMESPACE",
                                           "PMIX_PTL_MODULE",
                                           "PMIX_RANK",
                                           "PMIX_SECURITY_MODE",
                                           "PMIX_SERVER_TMPDIR",
                                           "PMIX_SYSTEM_TMPDIR",
                                           "PMIX_VERSION"};
// One variable per version of the protocol.
constexpr absl::string_view kServerUri = "PMIX_SERVER_URI";

absl::Status Refused(absl::string_view what) {
  return absl::PermissionDeniedError(absl::StrCat("orted refused: ", what));
}

// For messages: a hostile word neither floods a log nor breaks a line.
std::string Shown(absl::string_view word) {
  std::string shown;
  for (const char c : word.substr(0, 80)) {
    shown += absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?';
  }
  return absl::StrCat("\"", shown, word.size() > 80 ? "..." : "", "\"");
}

// A word as a shell would have read it, for the only quoting that mpirun does: all of it between
// double quotes.
absl::StatusOr<std::string> Unquote(absl::string_view word) {
  const bool quoted = word.size() >= 2 && word.front() == '"' && word.back() == '"';
  if (quoted) word = word.substr(1, word.size() - 2);
  if (word.find_first_of("\"'\\`$\n\r\0", 0, 8) != absl::string_view::npos) {
    return Refused(absl::StrCat(Shown(word), " is quoted in a way that mpirun does not use"));
  }
  return std::string(word);
}

bool IsNumber(absl::string_view text, std::uint64_t* value) {
  const bool digits =
      !text.empty() && text.size() <= 20 && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isdigit(static_cast<unsigned char>(c));
      });
  return digits && absl::SimpleAtoi(text, value);
}

// Host names as mpirun packs them: "vm,p[1:0-3]@0(5)".
bool IsHostList(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view(".,-_[]:@()").find(c) != absl::string_view::npos;
  });
}

// "JOB.0;tcp://A,B:PORT;tcp6://[C]:PORT", all of it at the head's addresses.
absl::Status CheckHeadUri(absl::string_view uri, absl::string_view job, const LaunchPlan& plan) {
  const std::vector<absl::string_view> parts = absl::StrSplit(uri, ';');
  if (parts.size() < 2 || parts[0] != absl::StrCat(job, ".0")) {
    return Refused(absl::StrCat("orte_hnp_uri ", Shown(uri), " is not of process ", job, ".0"));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    absl::string_view rest = parts[i];
    const bool is_six = absl::ConsumePrefix(&rest, "tcp6://[");
    if (!is_six && !absl::ConsumePrefix(&rest, "tcp://")) {
      return Refused(absl::StrCat("orte_hnp_uri: ", Shown(parts[i]), " is not TCP"));
    }
    const std::size_t end = rest.rfind(is_six ? "]:" : ":");
    std::uint64_t port = 0;
    if (end == absl::string_view::npos || !IsNumber(rest.substr(end + (is_six ? 2 : 1)), &port) ||
        port == 0 || port > 65535) {
      return Refused(absl::StrCat("orte_hnp_uri: ", Shown(parts[i]), " has no port"));
    }
    for (const absl::string_view address : absl::StrSplit(rest.substr(0, end), ',')) {
      if (std::find(plan.head_addresses.begin(), plan.head_addresses.end(), address) ==
          plan.head_addresses.end()) {
        return Refused(absl::StrCat("orte_hnp_uri: ", Shown(address),
                                    " is not an address of the head node ", plan.hosts[0].node));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOne(absl::string_view key, absl::string_view value,
                      absl::string_view only_value) {
  if (value == only_value) return absl::OkStatus();
  return Refused(absl::StrCat(key, " is ", Shown(value), ", not ", Shown(only_value)));
}

// What is told by a number: which daemon this is, of how many.
absl::Status CheckNumbers(const std::map<std::string, std::string>& values, const LaunchPlan& plan,
                          absl::string_view host) {
  const auto number = [&values](const std::string& key) {
    std::uint64_t value = 0;
    const auto found = values.find(key);
    return found != values.end() && IsNumber(found->second, &value) ? value : UINT64_MAX;
  };
  const std::uint64_t hosts = plan.hosts.size();
  if (number("ess_base_jobid") > UINT32_MAX) return Refused("ess_base_jobid is no job's number");
  if (number("ess_base_num_procs") != hosts + 1) {
    return Refused(absl::StrCat("ess_base_num_procs is not ", hosts + 1, " for ", hosts, " hosts"));
  }
  const std::uint64_t self = number("ess_base_vpid");
  if (self < 1 || self > hosts || plan.hosts[self - 1].host != host) {
    return Refused(absl::StrCat("ess_base_vpid is not the number of host ", host));
  }
  return absl::OkStatus();
}

absl::Status CheckValues(const std::map<std::string, std::string>& values, const LaunchPlan& plan,
                         absl::string_view host) {
  // Keys with one value; then those whose value is checked by what it means.
  const std::map<absl::string_view, std::string> fixed = {
      {"orte_leave_session_attached", "1"},
      {"ess", "env"},
      {"plm", "rsh"},
      {"plm_rsh_no_tree_spawn", "1"},
      {"pml", "ob1"},
      {"btl", std::string(kTransports)},
      {"oob_tcp_if_include", plan.interface},
      {"btl_tcp_if_include", plan.interface},
      {"mpi_yield_when_idle", plan.yield_when_idle ? "1" : "0"},
      {"if_base_do_not_resolve", "1"},
      {"hwloc_base_binding_policy", "none"},
      {"rmaps_base_mapping_policy", "slot"},
      {"pmix", std::string(kNoOtherPmix)}};
  for (const auto& [key, value] : values) {
    if (const auto only = fixed.find(key); only != fixed.end()) {
      PARAM_RETURN_IF_ERROR(CheckOne(key, value, only->second));
    } else if (key == "orte_node_regex") {
      if (!IsHostList(value)) {
        return Refused(absl::StrCat(key, " ", Shown(value), " is no list of hosts"));
      }
    } else if (key != "ess_base_jobid" && key != "ess_base_vpid" && key != "ess_base_num_procs" &&
               key != "orte_hnp_uri" && key != "plm_rsh_agent") {
      return Refused(absl::StrCat("key ", Shown(key), " is not let through"));
    }
  }
  // A setting that is left out has the library's own value, which is not the plan's.
  for (const auto& [needed, value] : fixed) {
    if (!values.contains(std::string(needed))) {
      return Refused(absl::StrCat(needed, " is missing"));
    }
  }
  for (const char* const needed : {"orte_node_regex", "orte_hnp_uri"}) {
    if (!values.contains(needed)) return Refused(absl::StrCat(needed, " is missing"));
  }
  PARAM_RETURN_IF_ERROR(CheckNumbers(values, plan, host));
  return CheckHeadUri(values.at("orte_hnp_uri"), values.at("ess_base_jobid"), plan);
}

absl::Span<const std::string> WithoutProfile(absl::Span<const std::string> given) {
  const std::size_t length = std::size(kProfile);
  const bool has_it = given.size() > length && given.back() == ")" &&
                      std::equal(std::begin(kProfile), std::end(kProfile), given.begin());
  return has_it ? given.subspan(length, given.size() - length - 1) : given;
}

}  // namespace

std::vector<std::string> MpirunArgs(const LaunchPlan& plan, absl::Span<const std::string> shim,
                                    absl::Span<const std::string> worker) {
  std::vector<std::string> hosts;
  int ranks = 0;
  for (const LaunchHost& host : plan.hosts) {
    hosts.push_back(absl::StrCat(host.host, ":", host.slots));
    ranks += host.slots;
  }
  std::vector<std::string> args = {
      "--leave-session-attached", "--noprefix", "--bind-to", "none", "--map-by", "slot"};
  const std::pair<absl::string_view, std::string> settings[] = {
      {"plm_rsh_agent", absl::StrJoin(shim, " ")},
      {"plm_rsh_no_tree_spawn", "1"},
      {"pml", "ob1"},
      {"btl", std::string(kTransports)},
      {"oob_tcp_if_include", plan.interface},
      {"btl_tcp_if_include", plan.interface},
      // Hosts have names of their own, which nobody else needs to know.
      {"if_base_do_not_resolve", "1"},
      {"mpi_yield_when_idle", plan.yield_when_idle ? "1" : "0"}};
  for (const auto& [key, value] : settings) {
    args.insert(args.end(), {"--mca", std::string(key), value});
  }
  args.insert(args.end(), {"--host", absl::StrJoin(hosts, ","), "-n", absl::StrCat(ranks)});
  args.insert(args.end(), worker.begin(), worker.end());
  return args;
}

absl::StatusOr<std::vector<std::string>> OrtedArgs(absl::Span<const std::string> given,
                                                   const LaunchPlan& plan, absl::string_view host) {
  if (plan.hosts.empty()) return Refused("the attempt has no launcher that wants one");
  if (given.size() > kMaxWords) return Refused(absl::StrCat(given.size(), " words"));
  for (const std::string& word : given) {
    if (word.size() > kMaxWordBytes) return Refused(absl::StrCat(Shown(word), " is too long"));
  }
  const absl::Span<const std::string> words = WithoutProfile(given);
  // The shim gets the program's name with a space before it.
  if (words.empty() || absl::StripLeadingAsciiWhitespace(words[0]) != "orted") {
    return Refused(
        absl::StrCat(words.empty() ? "\"\"" : Shown(words[0]), " is not the program that may run"));
  }
  std::map<std::string, std::string> values;
  std::vector<std::string> args;
  for (std::size_t i = 1; i < words.size(); i += 3) {
    if (words[i] != "-mca" && words[i] != "--mca") {
      return Refused(absl::StrCat(Shown(words[i]), " is not let through"));
    }
    if (i + 2 >= words.size()) return Refused(absl::StrCat(Shown(words[i]), " without a value"));
    PARAM_ASSIGN_OR_RETURN(const std::string key, Unquote(words[i + 1]));
    PARAM_ASSIGN_OR_RETURN(std::string value, Unquote(words[i + 2]));
    const auto [known, is_new] = values.emplace(key, value);
    if (!is_new && known->second != value) {
      return Refused(absl::StrCat(Shown(key), " is said twice, differently"));
    }
    if (is_new && key != "plm_rsh_agent") {
      args.insert(args.end(), {"-mca", key, std::move(value)});
    }
  }
  PARAM_RETURN_IF_ERROR(CheckValues(values, plan, host));
  return args;
}

bool IsForRank(absl::string_view name) {
  if (absl::ConsumePrefix(&name, kServerUri)) {
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
  }
  return std::find(std::begin(kForRanks), std::end(kForRanks), name) != std::end(kForRanks);
}

}  // namespace param::agent
