#include "client/cmd/interrupts.h"

#include <signal.h>

#include <csignal>

namespace param {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a handler has no other place
volatile std::sig_atomic_t raised = 0;

void OnSignal(int) { raised = 1; }

}  // namespace

void SignalInterrupts::Arm() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C ends us
  sigaction(SIGINT, &action, nullptr);
}

bool SignalInterrupts::Raised() { return raised != 0; }

}  // namespace param
