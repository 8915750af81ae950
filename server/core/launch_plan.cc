#include "server/core/launch_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param {
namespace {

constexpr std::size_t kMaxArgs = 256;
constexpr std::size_t kMaxArgsBytes = 256 << 10;
constexpr std::size_t kMaxCauseBytes = 4 << 10;

// A name that somebody gave us, for messages.
std::string Shown(const std::string& host) {
  return host.size() <= 64 ? host : absl::StrCat(ValidUtf8(host, 64), "...");
}

// An IPv4 address as a number; false for anything else.
bool ParseAddress(const std::string& text, std::uint32_t* address) {
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  if (parts.size() != 4) return false;
  *address = 0;
  for (const std::string& part : parts) {
    std::uint32_t value = 0;
    if (!absl::SimpleAtoi(part, &value) || value > 255) return false;
    *address = (*address << 8) | value;
  }
  return true;
}

// "10.0.0.0/24" of an IPv4 address; "" for others and for loopback.
std::string NetworkOf(const NetAddress& own) {
  std::uint32_t address = 0;
  if (!ParseAddress(own.address, &address) || own.prefix < 1 || own.prefix > 32) return "";
  if (absl::StartsWith(own.address, "127.")) return "";
  address &= UINT32_MAX << (32 - own.prefix);
  return absl::StrCat(address >> 24, ".", (address >> 16) & 255, ".", (address >> 8) & 255, ".",
                      address & 255, "/", own.prefix);
}

// The host's part of "ipv4:10.0.0.7:4711".
std::string PeerHost(const std::string& peer) {
  const std::vector<std::string> parts = absl::StrSplit(peer, ':');
  return parts.size() == 3 && parts[0] == "ipv4" ? parts[1] : "";
}

std::vector<std::string> NetworksOf(const Registration& node) {
  std::vector<std::string> networks;
  for (const NetAddress& own : node.inventory.addresses) {
    const std::string network = NetworkOf(own);
    if (!network.empty()) networks.push_back(network);
  }
  return networks;
}

// The networks by which the nodes reach the coordinator, each once; empty when that of some node is
// not known.
std::vector<std::string> UplinkNetworks(const std::vector<const Registration*>& nodes) {
  std::vector<std::string> networks;
  for (const Registration* node : nodes) {
    const std::string host = PeerHost(node->address);
    const auto& own = node->inventory.addresses;
    const auto found = std::find_if(
        own.begin(), own.end(), [&host](const NetAddress& each) { return each.address == host; });
    const std::string network = found == own.end() ? "" : NetworkOf(*found);
    if (network.empty()) return {};
    if (std::find(networks.begin(), networks.end(), network) == networks.end()) {
      networks.push_back(network);
    }
  }
  return networks;
}

bool IsAmong(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool ShareLoopback(const std::vector<const Registration*>& nodes) {
  const Inventory& first = nodes.front()->inventory;
  return !first.boot_id.empty() && !first.network_id.empty() &&
         std::all_of(nodes.begin(), nodes.end(), [&first](const Registration* node) {
           return node->inventory.boot_id == first.boot_id &&
                  node->inventory.network_id == first.network_id;
         });
}

absl::StatusOr<std::string> ChooseInterface(const std::vector<const Registration*>& nodes) {
  if (ShareLoopback(nodes)) {
    for (const NetAddress& own : nodes.front()->inventory.addresses) {
      if (absl::StartsWith(own.address, "127.")) return own.interface;
    }
  }
  if (const auto networks = UplinkNetworks(nodes); !networks.empty()) {
    return absl::StrJoin(networks, ",");
  }
  for (const std::string& network : NetworksOf(*nodes.front())) {
    if (std::all_of(nodes.begin(), nodes.end(), [&network](const Registration* node) {
          return IsAmong(NetworksOf(*node), network);
        })) {
      return network;
    }
  }
  std::vector<std::string> known;
  for (const Registration* node : nodes) {
    if (known.size() >= 4) break;
    known.push_back(absl::StrCat(node->node, " is in ", absl::StrJoin(NetworksOf(*node), " and ")));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the nodes have no network in common: ", absl::StrJoin(known, "; ")));
}

}  // namespace

absl::Status CheckInterface(const std::string& name) {
  const bool is_good = name.size() <= 256 && std::all_of(name.begin(), name.end(), [](char c) {
                         return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                                absl::string_view("._:/,-").find(c) != absl::string_view::npos;
                       });
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("interface \"", name, "\": write names like eth0 or networks like 10.0.0.0/24"));
}

std::string LauncherFor(const Inventory& node, const std::vector<std::string>& comm_backends) {
  for (const BackendStatus& backend : node.backends) {
    const bool is_used = IsAmong(comm_backends, backend.name);
    if (is_used && !backend.launcher.empty() && backend.launcher != "direct") {
      return backend.launcher;
    }
  }
  return "direct";
}

std::vector<LaunchHost> HostsOf(const std::vector<RankPlace>& ranks) {
  std::vector<LaunchHost> hosts;
  for (const RankPlace& place : ranks) {
    if (hosts.empty() || hosts.back().node != place.node) {
      hosts.push_back({absl::StrCat("pnode", hosts.size()), place.node, 0});
    }
    ++hosts.back().slots;
  }
  return hosts;
}

absl::StatusOr<LaunchPlan> PlanLaunch(const std::vector<RankPlace>& ranks,
                                      const std::map<std::string, const Registration*>& nodes,
                                      bool oversubscribed, const std::string& wanted) {
  LaunchPlan plan{.hosts = HostsOf(ranks),
                  .head_addresses = {},
                  .interface = wanted,
                  .yield_when_idle = oversubscribed};
  PARAM_RETURN_IF_ERROR(CheckInterface(wanted));
  std::vector<const Registration*> used;
  for (const LaunchHost& host : plan.hosts) {
    const auto found = nodes.find(host.node);
    if (found == nodes.end() || found->second == nullptr) {
      return absl::UnavailableError(absl::StrCat("node ", host.node, " is not connected"));
    }
    used.push_back(found->second);
  }
  if (used.empty()) return absl::InvalidArgumentError("an attempt without ranks");
  if (wanted.empty()) {
    PARAM_ASSIGN_OR_RETURN(plan.interface, ChooseInterface(used));
  }
  const bool loopback = ShareLoopback(used);
  for (const NetAddress& own : used.front()->inventory.addresses) {
    const bool is_loopback = absl::StartsWith(own.address, "127.") || own.address == "::1";
    if (loopback || !is_loopback) plan.head_addresses.push_back(own.address);
  }
  return plan;
}

const LaunchHost* LaunchRelay::Find(const std::string& host) const {
  const auto found = std::find_if(hosts_.begin(), hosts_.end(),
                                  [&host](const LaunchHost& each) { return each.host == host; });
  return found == hosts_.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> LaunchRelay::Want(const std::string& from_node, const std::string& host,
                                              const std::vector<std::string>& args) {
  const LaunchHost* const target = Find(host);
  if (target == nullptr || hosts_.front().node != from_node) {
    return absl::PermissionDeniedError(
        target == nullptr ? absl::StrCat("host ", Shown(host), " is not one of the attempt's")
                          : absl::StrCat("node ", from_node, " is not the head of the attempt"));
  }
  std::size_t bytes = 0;
  for (const std::string& arg : args) bytes += arg.size();
  if (args.size() > kMaxArgs || bytes > kMaxArgsBytes) {
    return absl::PermissionDeniedError(
        absl::StrCat("a command line of ", args.size(), " words and ", bytes, " B"));
  }
  Daemon& daemon = daemons_[host];
  if (daemon.args.has_value() && *daemon.args != args) {
    return absl::PermissionDeniedError(absl::StrCat("a second daemon for host ", host));
  }
  daemon.args = args;
  return target->node;
}

absl::StatusOr<std::string> LaunchRelay::Ended(const std::string& from_node,
                                               const std::string& host, DaemonEnd end) {
  const LaunchHost* const source = Find(host);
  if (source == nullptr || source->node != from_node) {
    return absl::PermissionDeniedError(absl::StrCat("node ", from_node, " speaks for host ",
                                                    Shown(host), ", which is not its own"));
  }
  end.cause = ValidUtf8(end.cause, kMaxCauseBytes);
  Daemon& daemon = daemons_[host];
  if (!daemon.end.has_value()) daemon.end = std::move(end);
  return hosts_.front().node;
}

const DaemonEnd* LaunchRelay::EndOf(const std::string& host) const {
  const auto found = daemons_.find(host);
  return found != daemons_.end() && found->second.end.has_value() ? &*found->second.end : nullptr;
}

std::map<std::string, std::vector<std::string>> LaunchRelay::WantedOn(
    const std::string& node) const {
  std::map<std::string, std::vector<std::string>> wanted;
  for (const auto& [host, daemon] : daemons_) {
    const bool is_open = daemon.args.has_value() && !daemon.end.has_value();
    if (is_open && Find(host)->node == node) wanted[host] = *daemon.args;
  }
  return wanted;
}

std::map<std::string, DaemonEnd> LaunchRelay::EndsFor(const std::string& node) const {
  std::map<std::string, DaemonEnd> ends;
  if (hosts_.front().node != node) return ends;
  for (const auto& [host, daemon] : daemons_) {
    if (daemon.end.has_value()) ends[host] = *daemon.end;
  }
  return ends;
}

}  // namespace param
