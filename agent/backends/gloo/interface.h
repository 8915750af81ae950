#pragma once
// Which of the machine's addresses the ranks meet at.

#include <sys/socket.h>

#include <string>
#include <vector>

#include "agent/backend/kit.h"

namespace param::gloo_comm {

// An interface that is up, with one of its addresses.
struct Interface {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.2"
  bool loopback = false;
  bool ipv6 = false;
};

// "10.0.0.2"; "" for what is no internet address.
std::string AddressText(const sockaddr* address);

// Those that are up, IPv4 first; addresses that are valid on one link only are left out.
std::vector<Interface> ListInterfaces();

// The environment variable PARAM_INTERFACE (a name or an address) decides, or GLOO_SOCKET_IFNAME,
// which users of Gloo in other programs have set already. Without them: the address
// of the host's name, as Gloo would take, unless that is a loopback address and there are ranks on
// other hosts; then the first interface that is no loopback; then the loopback. NOT_FOUND or
// FAILED_PRECONDITION list what there is.
std::int32_t ChooseInterface(const param_host& host, Interface* out, param_error* err);

}  // namespace param::gloo_comm
