#pragma once
// A model of NCCL on host memory and the streams of cuda_model.h: communicators are non-blocking,
// ranks are threads of this process. Linked in NCCL's place, it runs the backend where there is no
// GPU. A call on a communicator that was freed, or that is not through with the last one, ends the
// process.

#include "agent/backend/load_backend.h"

namespace param::nccl_model {

// The nccl backend that is linked into this program.
LoadedBackend NcclBackend();

// What goes wrong from now on.
struct Faults {
  bool wrong_element = false;  // the first byte that a rank receives or reduces
  bool remote_error = false;   // every communicator has an asynchronous ncclRemoteError
};
void SetFaults(Faults faults);

}  // namespace param::nccl_model
