// The mpi backend's entry: the table "comm" for processes that mpirun started.

#include "agent/backends/mpi/state.h"

namespace {

constexpr param_comm_v1 MakeTable() {
  param_comm_v1 t = {};
  t.struct_size = sizeof(t);
  t.kind = "mpi";
  t.probe = param::mpi::Probe;
  t.open = param::mpi::Open;
  t.close = param::mpi::Close;
  t.unique_id = param::mpi::UniqueId;
  t.comm_create = param::mpi::CommCreate;
  t.comm_split = param::mpi::CommSplit;
  t.comm_destroy = param::mpi::CommDestroy;
  t.comm_abort = param::mpi::CommAbort;
  t.comm_async_error = param::mpi::CommAsyncError;
  t.group_begin = param::mpi::GroupBegin;
  t.group_end = param::mpi::GroupEnd;
  t.op_create = param::mpi::OpCreate;
  t.op_destroy = param::mpi::OpDestroy;
  t.op_workspace_bytes = param::mpi::OpWorkspaceBytes;
  t.op_enqueue = param::mpi::OpEnqueue;
  t.request_test = param::mpi::RequestTest;
  t.request_wait = param::mpi::RequestWait;
  t.op_info = param::mpi::OpInfo;
  return t;
}

constexpr param_comm_v1 kComm = MakeTable();

const void* Table(const char* name) { return std::strcmp(name, "comm") == 0 ? &kComm : nullptr; }

constexpr param_backend_v1 kEntry = {
    .struct_size = sizeof(param_backend_v1),
    .abi_major = PARAM_BACKEND_ABI_MAJOR,
    .abi_minor = PARAM_BACKEND_ABI_MINOR,
    .name = "mpi",
    .version = PARAM_BACKEND_VERSION,
    .table = Table,
};

}  // namespace

extern "C" const param_backend_v1* param_backend_entry_v1(void) { return &kEntry; }
