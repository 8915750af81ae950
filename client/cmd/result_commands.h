#pragma once
// Commands of `paramctl result` that have a file of their own; ResultCommands() joins them.

#include "client/cmd/command.h"

namespace param {

Command CompareCommand();
Command ImportCommand();

}  // namespace param
