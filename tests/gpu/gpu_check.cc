// Checks the CUDA backend on this machine's first GPU, and with NCCL_SO the nccl backend on all of
// them: gpu_check CUDA_SO BARE_SO [NCCL_SO]
//
// One table on stdout, or "skipped: REASON" where there is no usable GPU. Exit code 1 when a row is
// wrong, slow or failed; 2 on bad usage or when a file cannot be loaded.

#include "tests/gpu/gpu_check.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/backend/kit.h"
#include "agent/backend/load_backend.h"

namespace param::gpu_check {
namespace {

void NoLog(void* /*user*/, std::int32_t level, const char* text) {
  if (level >= 2) std::cerr << text << "\n";
}
std::int32_t NeverCancelled(void* /*user*/) { return 0; }
std::int32_t Alone(void* /*user*/, const void* mine, std::size_t bytes, void* all,
                   param_error* /*err*/) {
  std::copy_n(static_cast<const char*>(mine), bytes, static_cast<char*>(all));
  return 0;
}
void NoProgress(void* /*user*/, const char* /*phase*/) {}

param_host SoleHost() {
  param_host host = {};
  host.struct_size = sizeof(host);
  host.log = NoLog;
  host.cancelled = NeverCancelled;
  host.size = host.local_size = 1;
  host.exchange = Alone;
  host.progress = NoProgress;
  host.script = "";
  host.threads = 1;
  return host;
}

void AddPeaks(const Device& device, std::vector<Row>* rows) {
  for (const param_dtype dtype : AllTypes()) {
    Row row{absl::StrCat(kit::DtypeName(dtype), " peak"), "ok", ""};
    const absl::StatusOr<PeakRate> peak = device.PeakFlops(dtype);
    if (peak.ok()) {
      row.detail = absl::StrFormat("%.2f TFLOP/s, %s", peak->flops * 1e-12, peak->how);
    } else {
      const bool skipped = peak.status().code() == absl::StatusCode::kUnimplemented;
      row.verdict = skipped ? "skipped" : "FAILED";
      row.detail = std::string(peak.status().message());
    }
    rows->push_back(std::move(row));
  }
}

void Print(const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.what.size());
  for (const Row& row : rows) {
    std::cout << absl::StrFormat("%-*s  %-7s  %s\n", static_cast<int>(width), row.what, row.verdict,
                                 row.detail);
  }
}

void AddNccl(const LoadedBackend& cuda, const char* path, int devices, std::vector<Row>* rows) {
  const absl::StatusOr<LoadedBackend> nccl = LoadBackend(path);
  if (!nccl.ok() || !nccl->comm.has_value()) {
    // As CUDA's libraries, NCCL is not part of the tree.
    const bool absent = nccl.status().code() == absl::StatusCode::kUnavailable;
    rows->push_back({"nccl", absent ? "skipped" : "FAILED", std::string(nccl.status().message())});
    return;
  }
  param_error why = {};
  if (nccl->comm->probe(&why) < 0) {
    rows->push_back({"nccl", "FAILED", why.message});
    return;
  }
  for (Row& row : CheckNccl(cuda, *nccl, devices)) rows->push_back(std::move(row));
}

int Main(const char* backend_path, const char* bare_path, const char* nccl_path) {
  const absl::StatusOr<LoadedBackend> backend = LoadBackend(backend_path);
  if (!backend.ok() || !backend->device.has_value()) {
    // CUDA's libraries are not part of the tree: a machine without them has no GPU to check.
    std::cout << "skipped: " << backend.status().message() << "\n";
    return backend.status().code() == absl::StatusCode::kUnavailable ? 0 : 2;
  }
  param_error why = {};
  const std::int32_t devices = backend->device->probe(&why);
  if (devices <= 0) {
    std::cout << "skipped: " << (devices < 0 ? why.message : "no CUDA device found") << "\n";
    return 0;
  }
  void* const bare = dlopen(bare_path, RTLD_NOW | RTLD_LOCAL);
  if (bare == nullptr) {
    std::cerr << dlerror() << "\n";
    return 2;
  }
  const auto run = reinterpret_cast<bare_gemm_run_fn>(dlsym(bare, BARE_GEMM_RUN));
  if (run == nullptr) {
    std::cerr << bare_path << ": no " << BARE_GEMM_RUN << "\n";
    return 2;
  }
  const param_host host = SoleHost();
  const absl::StatusOr<Device> device = Device::Open(*backend->device, host, 0);
  if (!device.ok()) {
    std::cerr << device.status() << "\n";
    return 1;
  }
  std::vector<Row> rows = CheckNumerics(*device);
  for (Row& row : CheckSpeed(*device, run)) rows.push_back(std::move(row));
  AddPeaks(*device, &rows);
  const absl::StatusOr<std::string> clocks = device->Clocks();
  rows.push_back({"clocks", clocks.ok() ? "ok" : "FAILED",
                  clocks.ok() ? *clocks : std::string(clocks.status().message())});
  if (nccl_path != nullptr) AddNccl(*backend, nccl_path, devices, &rows);
  Print(rows);
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.failed(); }) ? 1 : 0;
}

}  // namespace
}  // namespace param::gpu_check

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: gpu_check CUDA_SO BARE_SO [NCCL_SO]\n";
    return 2;
  }
  return param::gpu_check::Main(argv[1], argv[2], argc == 4 ? argv[3] : nullptr);
}
