#pragma once
// What this node is, read from /proc and /sys.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/core/messages.h"

namespace param::agent {

struct InventorySource {
  std::string root;       // "" for the machine's own files; tests give a folder
  std::string hostname;   // as the kernel says
  std::vector<int> cpus;  // this process's affinity
  std::vector<NetAddress> addresses = {};
  std::string network_id = "";  // of this process's network namespace
};

// What cannot be read stays empty or 0: an inventory never fails. Backends are not part of it.
Inventory ReadInventory(const InventorySource& source);

// This machine.
InventorySource ThisMachine();

}  // namespace param::agent
