// What really runs, for the record.

#include "agent/backends/mpi/state.h"

namespace param::mpi {
namespace {

struct CallNames {
  const char* blocking;
  const char* with_request;
};

CallNames CallsOf(kit::CollectiveKind kind) {
  static constexpr CallNames kCalls[] = {
      {"MPI_Allreduce", "MPI_Iallreduce"},
      {"MPI_Reduce", "MPI_Ireduce"},
      {"MPI_Bcast", "MPI_Ibcast"},
      {"MPI_Allgather", "MPI_Iallgather"},
      {"MPI_Reduce_scatter_block", "MPI_Ireduce_scatter_block"},
      {"MPI_Alltoall", "MPI_Ialltoall"},
      {"MPI_Gather", "MPI_Igather"},
      {"MPI_Scatter", "MPI_Iscatter"},
      {"MPI_Allgatherv", "MPI_Iallgatherv"},
      {"MPI_Reduce_scatter", "MPI_Ireduce_scatter"},
      {"MPI_Alltoallv", "MPI_Ialltoallv"},
      {"MPI_Irecv, MPI_Isend, MPI_Waitall", "MPI_Irecv, MPI_Isend"},
      {"MPI_Irecv, MPI_Isend, MPI_Waitall", "MPI_Irecv, MPI_Isend"},
      {"MPI_Barrier", "MPI_Ibarrier"},
      {"MPI_Send", "MPI_Isend"},
      {"MPI_Recv", "MPI_Irecv"},
  };
  static_assert(std::size(kCalls) == std::size(kit::kCollectiveNames));
  return kCalls[static_cast<int>(kind)];
}

// What is set of a parameter of the library; "" when it has none of this name or nothing is set.
std::string Parameter(const char* name) {
  int index = 0;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return "";
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum names = MPI_T_ENUM_NULL;
  int verbosity = 0;
  int bind = 0;
  int scope = 0;
  int no_length = 0;  // of texts that nobody wants
  int no_description = 0;
  if (MPI_T_cvar_get_info(index, nullptr, &no_length, &verbosity, &type, &names, nullptr,
                          &no_description, &bind, &scope) != MPI_SUCCESS) {
    return "";
  }
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int count = 0;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) != MPI_SUCCESS) return "";
  std::string value;
  if (type == MPI_CHAR) {
    std::string text(static_cast<std::size_t>(count) + 1, '\0');
    if (MPI_T_cvar_read(handle, text.data()) == MPI_SUCCESS) {
      value.assign(text.data(), strnlen(text.data(), text.size()));
    }
  } else if (type == MPI_INT && count == 1) {
    int number = 0;
    if (MPI_T_cvar_read(handle, &number) == MPI_SUCCESS) value = std::to_string(number);
  } else if (type == MPI_C_BOOL && count == 1) {
    bool flag = false;
    if (MPI_T_cvar_read(handle, &flag) == MPI_SUCCESS) value = flag ? "1" : "0";
  }
  MPI_T_cvar_handle_free(&handle);
  return value;
}

// What decides how bytes travel and how ranks wait. Open MPI's names; other MPIs have none of them.
std::vector<std::pair<std::string, std::string>> ReadParameters() {
  std::vector<std::pair<std::string, std::string>> all;
  int level = 0;
  if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return all;
  for (const char* const name : {"pml", "btl", "mpi_yield_when_idle", "btl_tcp_if_include"}) {
    const std::string value = Parameter(name);
    if (!value.empty()) all.emplace_back(std::string("mca ") + name, value);
  }
  MPI_T_finalize();
  return all;
}

}  // namespace

std::int32_t OpInfo(param_ctx* ctx, param_op* op, char* json, std::size_t capacity,
                    param_error* err) {
  return kit::Guard(err, [&] {
    const CallNames calls = CallsOf(op->c.kind);
    kit::JsonObject info;
    info.Text("library", LibraryVersion()).Text("implementation", calls.blocking);
    info.Text("with_request", calls.with_request);
    if (op->user_reduction) {
      info.Text("reduction",
                std::string("user-defined (MPI has no ") + kit::DtypeName(op->c.dtype) + ")");
    }
    if (op->c.reduces() && op->c.redop == kit::RedOp::kAvg) {
      info.Text("average", "sum, divided by the ranks afterwards (MPI has no avg)");
    }
    if (op->via_workspace) info.Text("in_place", "through a workspace (MPI has another layout)");
    if (op->owns_type) info.Text("counts", "in blocks of elements (MPI counts in 32 bits)");
    if (!ctx->parameters_read) ctx->parameters = ReadParameters();
    ctx->parameters_read = true;
    for (const auto& [name, value] : ctx->parameters) info.Text(name.c_str(), value);
    return kit::PutText(info.Done(), json, capacity, err);
  });
}

}  // namespace param::mpi
