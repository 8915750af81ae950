#include "agent/backends/gloo/interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <memory>

namespace param::gloo_comm {
namespace {

// Valid on one link only: useless without its interface's number.
bool IsLinkLocal(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

bool IsLoopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

// Of this host's name, in the resolver's order; empty when it does not resolve.
std::vector<std::string> HostAddresses() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.data(), nullptr, &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    addresses.push_back(AddressText(one->ai_addr));
  }
  return addresses;
}

std::string Listed(const std::vector<Interface>& all) {
  std::string text;
  for (const Interface& one : all) {
    text += (text.empty() ? "" : ", ") + one.name + " " + one.address;
  }
  return text.empty() ? "none" : text;
}

// "" where the user does not say.
std::string Wanted() {
  for (const char* const name : {"PARAM_INTERFACE", "GLOO_SOCKET_IFNAME"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

const Interface* First(const std::vector<Interface>& all, bool loopback) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Interface& one) { return one.loopback == loopback; });
  return found == all.end() ? nullptr : &*found;
}

// That of the host's name, where every rank can reach it.
const Interface* OfHostName(const std::vector<Interface>& all, bool one_host) {
  for (const std::string& address : HostAddresses()) {
    // Debian gives a host the address 127.0.1.1, which no interface lists.
    if (IsLoopback(address)) return one_host ? First(all, true) : nullptr;
    for (const Interface& one : all) {
      if (one.address == address) return &one;
    }
  }
  return nullptr;
}

}  // namespace

std::string AddressText(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (address->sa_family == AF_INET) {
    const auto* const in = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto* const in = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &in->sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::vector<Interface> ListInterfaces() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, ::freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const std::string address = AddressText(one->ifa_addr);
    if (address.empty() || IsLinkLocal(one->ifa_addr)) continue;
    all.push_back({one->ifa_name, address, (one->ifa_flags & IFF_LOOPBACK) != 0,
                   one->ifa_addr->sa_family == AF_INET6});
  }
  std::stable_partition(all.begin(), all.end(), [](const Interface& one) { return !one.ipv6; });
  return all;
}

std::int32_t ChooseInterface(const param_host& host, Interface* out, param_error* err) {
  const std::vector<Interface> all = ListInterfaces();
  const std::string wanted = Wanted();
  const Interface* chosen = nullptr;
  if (!wanted.empty()) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Interface& one) {
      return one.name == wanted || one.address == wanted;
    });
    if (found == all.end()) {
      return kit::Fail(err, kit::kNotFound, "no interface \"%s\" is up here; there are: %s",
                       wanted.c_str(), Listed(all).c_str());
    }
    chosen = &*found;
  }
  const bool one_host = host.local_size == host.size;
  if (chosen == nullptr) chosen = OfHostName(all, one_host);
  if (chosen == nullptr) chosen = First(all, false);
  if (chosen == nullptr) chosen = First(all, true);
  if (chosen == nullptr) {
    return kit::Fail(err, kit::kFailedPrecondition, "no network interface is up");
  }
  *out = *chosen;
  return kit::kOk;
}

}  // namespace param::gloo_comm
