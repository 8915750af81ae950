#pragma once
// Does the bad things a script asks for. Each fault strikes once, "wrong" from then on.
//
//   crash      SIGSEGV
//   hang       the calling thread never returns and does not look at cancellation
//   exit       the process ends with status 3, silently
//   error      the call fails with "code" and "text"
//   wrong      one element of the result is corrupted
//   garbage    "text" (or bytes that are no message) goes to the worker's socket, whose descriptor
//              is in PARAM_WORKER_SOCKET_FD
//   flood      "count" lines go to the log and to standard error
//   fill_disk  "bytes" go to a file fake-fill.bin in the working directory

#include <string>
#include <vector>

#include "agent/backends/fake/script.h"

namespace param::fake {

// Not thread safe, as the contexts that own one.
class Faults {
 public:
  // Keeps `host`, which outlives every context.
  Faults(const param_host* host, std::vector<Fault> faults);

  // The rank is at this point of its life: runs what is due. Returns the code of "error".
  std::int32_t Reach(const char* point, param_error* err);
  // Whether results are to be corrupted from now on.
  bool IsWrong() const { return wrong_; }

 private:
  std::int32_t Strike(const Fault& fault, param_error* err);
  void Flood(std::int64_t lines);

  const param_host* host_;
  std::vector<Fault> faults_;
  bool wrong_ = false;
};

}  // namespace param::fake
