#pragma once
// Parts of the checker: each takes an open device and adds rows to the table.

#include <string>
#include <vector>

#include "agent/backend/device.h"
#include "agent/backend/load_backend.h"
#include "agent/bench/verify_gemm.h"
#include "tests/gpu/bare_gemm.h"

namespace param::gpu_check {

struct Row {
  std::string what;     // "f32 512x512x512"
  std::string verdict;  // "ok", "WRONG", "SLOW", "skipped", "FAILED"
  std::string detail;
  bool failed() const { return verdict != "ok" && verdict != "skipped"; }
};

// The types of gemm, in the order of the table.
std::vector<param_dtype> AllTypes();

// A prepared gemm with its operands on the device, inputs filled with seeded normal values.
class DeviceGemm {
 public:
  static absl::StatusOr<DeviceGemm> Create(const Device& device, const GemmShape& shape,
                                           const std::string& library);
  absl::Status Enqueue(const Stream& stream) {
    return op_.Enqueue(stream, {a_.At(0), b_.At(0), c_.At(0)}, workspace_ ? &workspace_ : nullptr);
  }
  // Against a reference in extended precision, after a run on that stream. Puts C back to what it
  // was first.
  absl::StatusOr<GemmCheck> Verify(Stream& stream);
  const Op& op() const { return op_; }
  // The operands, for the bare loop.
  bare_gemm Bare() const;

 private:
  GemmShape shape_;
  Op op_;
  Buffer a_, b_, c_, workspace_;
  std::vector<char> host_a_, host_b_, host_c_;
};

// Every type, both libraries, square and odd shapes, batches, all transposes, alpha and beta.
std::vector<Row> CheckNumerics(const Device& device);

// Every type against the bare loop on the same operands, in turns.
std::vector<Row> CheckSpeed(const Device& device, bare_gemm_run_fn bare);

// The nccl backend on all GPUs of the machine, a thread for each.
std::vector<Row> CheckNccl(const LoadedBackend& cuda, const LoadedBackend& nccl, int devices);

}  // namespace param::gpu_check
