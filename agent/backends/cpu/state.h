#pragma once
// What stands behind the opaque handles of the cpu backend. Streams run their work at once, in the
// calling thread and the libraries' own; events are points of the monotonic clock.

#include <cstdint>
#include <memory>

#include "agent/backend/kit_gemm.h"
#include "agent/backends/cpu/kernel.h"

struct param_ctx {
  const param_host* host = nullptr;
  int threads = 1;
  unsigned char* flush = nullptr;  // made at the first flush
  std::size_t flush_bytes = 0;
};

struct param_buffer {
  unsigned char* data = nullptr;
  std::size_t bytes = 0;
};

struct param_stream {};

struct param_event {
  std::int64_t at_ns = -1;  // -1: never recorded
};

struct param_op {
  bool is_copy = false;
  std::size_t copy_bytes = 0;
  param::kit::Gemm gemm;
  std::unique_ptr<param::cpu::GemmKernel> kernel;
  std::string trial;  // what was tried to choose the kernel, else ""
};

namespace param::cpu {

std::int64_t MonotonicNs();
// The libraries' threads belong to the calling thread (OpenMP) or the process (OpenBLAS): before
// work, from whichever thread it comes.
void UseThreads(int threads);

std::int32_t OpCreate(param_ctx*, const param_op_desc*, param_op**, param_error*);
void OpDestroy(param_ctx*, param_op*);
std::size_t OpWorkspaceBytes(param_ctx*, param_op*);
std::int32_t OpEnqueue(param_ctx*, param_op*, param_stream*, const param_operand*, std::size_t,
                       param_buffer*, param_error*);
std::int32_t OpInfo(param_ctx*, param_op*, char*, std::size_t, param_error*);

const param_device_v1* DeviceTable();

std::int32_t PeakFlops(param_ctx*, param_dtype, double* out, char* how, std::size_t capacity,
                       param_error*);

}  // namespace param::cpu
