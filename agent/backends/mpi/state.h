#pragma once
// What stands behind the opaque handles of the mpi backend.
//
// Threads: MPI is opened for one calling thread at a time (MPI_THREAD_SERIALIZED), which is what
// the boundary promises. MPI_THREAD_MULTIPLE would put locks into every call that other tools'
// numbers do not have; an abort from another thread makes no MPI call, so it is not needed.
//
// Waiting and abort: MPI has no way to end a call that waits for a peer. The hot path is the
// blocking call itself and not a loop over its non-blocking form, which is another algorithm with
// other times. So an abort
//  - sets a flag: every later call of the context returns ABORTED, and the loops in request_wait,
//    comm_create and comm_split, which test and look, end with it;
//  - gives a blocking call in flight (group_end is one) a moment to come back by itself;
//  - else ends the process with _exit: mpirun sees a rank that ended without MPI_Finalize and ends
//    the others, and the service kills the process group in any case. Not MPI_Abort, which takes
//    the library's locks and asks a daemon that may be what hangs.
// MPI knows one kind of failure only, that of all: aborting one communicator aborts the context.
// After an abort, a deadline that passed or an error of MPI's own, MPI_Finalize is never called.

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/backend/kit_collective.h"

// Where an operation's data lies, once the operands are resolved.
struct MpiPlaces {
  void* src = nullptr;  // "data" too
  void* dst = nullptr;
  void* out = nullptr;  // where MPI writes the result: dst, or the workspace
};

struct param_comm {
  MPI_Comm handle = MPI_COMM_NULL;
  std::int32_t rank = 0, size = 0;
};

struct param_op {
  param_comm* comm = nullptr;
  param::kit::Collective c;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owns_type = false;  // a contiguous block of elements, for what 32 bits cannot count
  MPI_Op reduction = MPI_OP_NULL;
  bool user_reduction = false;
  int n = 0;                                                            // per peer, in `type`
  std::vector<int> send_counts, send_displs, recv_counts, recv_displs;  // likewise
  std::size_t operands = 0;
  bool is_root = false;
  bool via_workspace = false;      // the result is copied from there to dst
  bool averages_here = false;      // this rank divides the sum
  bool finishes = false;           // one of the two
  std::vector<MPI_Request> parts;  // of a blocking incast or multicast
};

struct param_request {
  param_op* op = nullptr;
  MpiPlaces places;
  std::vector<MPI_Request> parts;
  param_request* next = nullptr;  // in the pool
};

struct param_ctx {
  const param_host* host = nullptr;
  const param_device_v1* device = nullptr;
  param_ctx* device_ctx = nullptr;
  std::atomic<bool> aborted{false};
  std::atomic<bool> in_flight{false};  // a blocking call
  bool broken = false;                 // MPI's state is not to be trusted
  // User-defined reductions, made at first use: [f16, bf16][sum, prod, min, max].
  std::array<std::array<MPI_Op, 4>, 2> reductions = {};
  bool parameters_read = false;
  std::vector<std::pair<std::string, std::string>> parameters;  // of the library, for the record
  param_request* pool = nullptr;
  bool grouping = false;
  struct Grouped {
    param_op* op = nullptr;
    MpiPlaces places;
  };
  std::vector<MPI_Request> group;
  std::vector<MPI_Status> group_statuses;
  std::vector<Grouped> grouped;  // those that finish here
};

namespace param::mpi {

// ---- process.cc: MPI in this process --------------------------------------------------------

// "Open MPI 4.1.4". Legal before MPI is opened.
std::string LibraryVersion();
// 1 when a rank could be started here, else -1 and why. Does not open MPI.
std::int32_t Probe(param_error* why);
std::int32_t Open(const param_host*, const param_device_v1*, param_ctx* device_ctx, param_ctx** out,
                  param_error*);
void Close(param_ctx*);
// Fills `err` with the call and MPI's own words. The context is not finalized after it.
std::int32_t FailWith(param_ctx* ctx, param_error* err, const char* call, int code);
std::int32_t Aborted(param_error* err);

// ---- comm.cc --------------------------------------------------------------------------------

std::int32_t UniqueId(param_ctx*, std::uint8_t id[PARAM_COMM_ID_BYTES], param_error*);
std::int32_t CommCreate(param_ctx*, const std::uint8_t id[PARAM_COMM_ID_BYTES], std::int32_t rank,
                        std::int32_t size, std::int64_t deadline_ns, param_comm** out,
                        param_error*);
std::int32_t CommSplit(param_ctx*, param_comm*, std::int32_t color, std::int32_t key,
                       param_comm** out, param_error*);
std::int32_t CommDestroy(param_ctx*, param_comm*, param_error*);
void CommAbort(param_ctx*, param_comm*);
std::int32_t CommAsyncError(param_ctx*, param_comm*, param_error*);

// ---- types.cc -------------------------------------------------------------------------------

// MPI's type for an element; a type of the same width where MPI has none.
MPI_Datatype TypeOf(param_dtype dtype);
// UNIMPLEMENTED for types that cannot be reduced here. avg is a sum.
std::int32_t ReductionFor(param_ctx*, kit::RedOp, param_dtype, MPI_Op* out, bool* is_user,
                          param_error*);

// ---- prepare.cc, info.cc, run.cc ------------------------------------------------------------

std::int32_t OpCreate(param_ctx*, param_comm*, const param_op_desc*, param_op** out, param_error*);
void OpDestroy(param_ctx*, param_op*);
std::size_t OpWorkspaceBytes(param_ctx*, param_op*);
std::int32_t OpInfo(param_ctx*, param_op*, char* json, std::size_t capacity, param_error*);
std::int32_t OpEnqueue(param_ctx*, param_op*, param_stream*, const param_operand*, std::size_t,
                       param_buffer* workspace, param_request**, param_error*);
std::int32_t RequestTest(param_ctx*, param_request*, std::int32_t* done, param_error*);
std::int32_t RequestWait(param_ctx*, param_request*, param_error*);
std::int32_t GroupBegin(param_ctx*, param_error*);
std::int32_t GroupEnd(param_ctx*, param_error*);

}  // namespace param::mpi
