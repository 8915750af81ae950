#pragma once
// What a worker does with its assignment.

#include "agent/worker/channel.h"

namespace param {

// Ways a worker ends; the agent reads them beside what was reported.
enum WorkerExitCode : int {
  kWorkerDone = 0,    // all cases ended, or the job was cancelled
  kWorkerFailed = 1,  // said why in a Failure
  kWorkerUsage = 2,   // called in a wrong way
  kWorkerOrphan = 3,  // nobody to work for: the agent is gone or said abort
};

// Waits for the assignment and goes through all phases. Reports everything through `channel`, Done
// or Failure last; returns the exit code. The process is ready for nothing else afterwards: it is
// bound to CPUs and has loaded foreign code.
int RunWorker(Channel& channel);

}  // namespace param
