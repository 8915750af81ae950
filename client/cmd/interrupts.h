#pragma once
// The terminal's Ctrl-C.

#include "client/cmd/io.h"

namespace param {

// SIGINT of this process. One object per process, owned by main().
class SignalInterrupts final : public Interrupts {
 public:
  void Arm() override;
  bool Raised() override;
};

}  // namespace param
