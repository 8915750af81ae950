#pragma once
// What a benchmark driver is: written once over the backend's primitives, for every backend.
//
// A driver is made by `const BenchmarkDriver& GemmDriver()` in agent/bench/gemm.cc and listed by
// the same line of CMake as its descriptor.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agent/backend/param_backend.h"
#include "proto/catalog/cases.h"
#include "proto/catalog/spec.h"

namespace param {

// The ranks of an attempt, never the measured communicator. Every call is collective: all ranks
// make the same calls in the same order. Errors: ABORTED when another rank failed or the job was
// cancelled, DEADLINE_EXCEEDED.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Every rank gives some bytes and gets those of all, by rank. The primitive under the rest.
  virtual absl::StatusOr<std::vector<std::string>> Exchange(absl::string_view mine) = 0;

  absl::Status Barrier();
  absl::StatusOr<std::string> Broadcast(int root, absl::string_view from_root);
  // All ranks' texts on every rank; `mine` is this rank's.
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine);
  // The first rank's non-empty objection ("" when all agree): how SKIPPED is agreed on before any
  // rank starts.
  absl::StatusOr<std::string> Agree(absl::string_view objection);
};

// Outcome of one case on this rank.
enum class Outcome { kPassed, kWrong, kSkipped, kFailed };
struct CaseResult {
  Outcome outcome = Outcome::kPassed;
  std::string reason;  // with all but kPassed
  Scalars scalars;
  std::map<std::string, std::string> info;
};

// Where a driver reports while it runs a case.
class CaseReporter {
 public:
  virtual ~CaseReporter() = default;
  virtual void VerifyBegins() = 0;
  virtual void WarmupBegins() = 0;
  virtual void TimedBegins() = 0;
  // Never called inside a timed region.
  virtual void Samples(absl::string_view metric, absl::string_view unit,
                       const std::map<std::string, std::string>& labels,
                       absl::Span<const double> values) = 0;
  // True once the job is cancelled: finish the chunk and return CANCELLED.
  virtual bool Cancelled() const = 0;
};

class PeakCache;  // peak_cache.h
struct CommView;  // agent/backend/comm.h

// What a driver has to work with. Everything is borrowed for the duration of the call.
struct CaseContext {
  Team& team;
  const param_device_v1& device;
  param_ctx* device_ctx;
  const Params& params;
  const MeasureOptions& measure;
  CaseReporter& reporter;
  // Peak rates already known of this device; null: ask the device.
  PeakCache* peaks = nullptr;
  // The communicator of all ranks of the job; null where the job has no comm backend.
  const CommView* comm = nullptr;
};

struct BenchmarkDriver {
  absl::string_view id;  // the descriptor's
  // Runs one case. A non-OK status fails the rank (device lost, team broken) and ends the attempt;
  // what the backend cannot do is kSkipped, wrong data is kWrong, and what concerns only this case
  // (no memory for it, an impossible request) is kFailed: agreed on over the team before warm-up
  // (agreement.h), and the ranks go on with the next case.
  absl::StatusOr<CaseResult> (*run)(CaseContext& context);
};

// All drivers, in the order of param_add_benchmark(). The file is generated.
const std::vector<const BenchmarkDriver*>& AllDrivers();

}  // namespace param
