#pragma once
// The measuring loop: the one piece of code by which every benchmark takes its samples, on ranks
// that work alone and on ranks that work together.
//
// One sample is the time of one iteration in seconds (mode isolated), or of a batch issued back to
// back, divided by its length (mode pipelined). Between the two marks of a sample nothing is sent,
// allocated or logged. Every rank takes the same number of samples: after each chunk the ranks
// exchange where they stand, once (and run one iteration that does not count, so that the next
// sample is as hot as the others; not with --flush-cache), and all draw the same conclusion from
// the same data, so that
// `--noise` holds for the noisiest rank and `--min-time` for the fastest.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/bench/driver.h"
#include "proto/base/clock.h"
#include "proto/catalog/cases.h"

namespace param {

// What is measured.
class Operation {
 public:
  virtual ~Operation() = default;
  // Before each sample, outside its time: restores what an iteration changes.
  virtual absl::Status Prepare() { return absl::OkStatus(); }
  // The last thing before the mark, outside the time: where ranks that work together meet.
  virtual absl::Status Meet() { return absl::OkStatus(); }
  // One iteration. Must not allocate; may return before the work is done.
  virtual absl::Status Enqueue() = 0;
  // True on a rank that only goes along with the others (barriers, the number of iterations): what
  // it times means nothing, decides nothing, and is not reported. The same for the whole
  // measurement.
  virtual bool idle() const { return false; }
  // True where an iteration is one of all ranks and ends with the last: the slowest rank's times
  // decide. Else each rank must get its own time in. The same for the whole measurement.
  virtual bool together() const { return false; }
};

// What tells the time of work: events of a device (device_timer.h), scripted in tests.
class Timer {
 public:
  virtual ~Timer() = default;
  // Evicts caches ahead of the next Begin(); the bytes written for it.
  virtual absl::StatusOr<std::uint64_t> FlushCache() = 0;
  // Marks the start.
  virtual absl::Status Begin() = 0;
  // Enough work is queued: a device that was held back so that launch cost stays out of the time
  // starts now. Optional; End() does it too.
  virtual absl::Status LetGo() { return absl::OkStatus(); }
  // Marks the end, waits for it; seconds since Begin().
  virtual absl::StatusOr<double> End() = 0;
};

// Why sampling ended.
enum class StopReason {
  kIters,       // --iters samples were taken
  kNoise,       // min_time passed and the relative stdev is below --noise on every rank
  kSettled,     // min_time passed and the noise no longer changes, though above --noise
  kMaxTime,     // max_time passed, whatever lies between samples included
  kMaxSamples,  // kMaxSamples were taken before any of these
};
absl::string_view StopReasonName(StopReason reason);  // "iters", "noise", "settled", ...

// Storage for more is not asked for unless --iters says so.
inline constexpr std::int64_t kMaxSamples = 1'000'000;

struct Measurement {
  std::vector<double> samples;  // s per iteration, in order
  StopReason stopped_by = StopReason::kIters;
  std::int64_t batch = 1;           // iterations per sample
  double timer_overhead_s = 0;      // median of an empty pair of marks; never subtracted
  std::uint64_t flushed_bytes = 0;  // per flush; 0 without --flush-cache
  std::string mistrusted;           // why a careful reader would not use the number, else ""

  // Puts it into a case's record: scalars timer_overhead, info stopped_by, batch, flushed_bytes,
  // mistrusted.
  void Describe(CaseResult& result) const;
};

// Warms up, samples by the rules of `options`, hands the samples to `reporter` as metric "time" in
// "s" when sampling is over. Collective over `team`. `iters` counts samples: in mode pipelined that
// many batches are taken. Errors: CANCELLED after the chunk in which the job was cancelled, on all
// ranks; what the timer, the operation or the team say.
absl::StatusOr<Measurement> Measure(Team& team, Timer& timer, Operation& operation,
                                    const MeasureOptions& options, const Clock& clock,
                                    CaseReporter& reporter);

}  // namespace param
