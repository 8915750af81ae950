#pragma once
// paramctl doctor: one row per check, with a verdict and what to do.

#include "client/cmd/command.h"

namespace param {

ExitCode RunDoctor(Context& context);

}  // namespace param
