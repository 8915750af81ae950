#include "agent/bench/measure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "agent/bench/noise.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param {
namespace {

constexpr double kChunkSeconds = 0.05;    // between two decisions: long against an exchange
constexpr std::int64_t kChunkGrowth = 8;  // the first estimates may be far off
constexpr std::int64_t kMaxChunk = 1 << 17;
constexpr double kBatchSeconds = 0.0005;  // long against the timer's own cost
constexpr std::int64_t kMaxBatch = 100'000;
constexpr std::int64_t kCalibrationBatch = 16;
constexpr std::int64_t kHeldIterations = 32;  // device queues are finite: let go of them in time
constexpr int kOverheadPairs = 101;
constexpr double kTrustFactor = 100;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::int64_t ToCount(double value, std::int64_t low, std::int64_t high) {
  if (!(value > static_cast<double>(low))) return low;
  return value < static_cast<double>(high) ? static_cast<std::int64_t>(value) : high;
}

// Where a rank stands after a chunk, and the same over all ranks: for each member there is one way
// to combine, the careful one. Doubles, so that the bytes on the wire are an array.
struct Standing {
  double slowest_s = 0;  // wall time per sample: the largest
  double fastest_s = 0;  // measured time per iteration: the smallest; of a team's one: the largest
  double timed_s = 0;    // measured time: the same
  double wall_s = 0;     // wall time of sampling: the largest
  double quiet = 0;      // 1: noise below the limit, on all
  double calm = 0;       // 1: quiet or settled, on all
  double cancelled = 0;  // 1: the job is cancelled, on any

  void Combine(const Standing& other, bool together) {
    slowest_s = std::max(slowest_s, other.slowest_s);
    fastest_s =
        together ? std::max(fastest_s, other.fastest_s) : std::min(fastest_s, other.fastest_s);
    timed_s = together ? std::max(timed_s, other.timed_s) : std::min(timed_s, other.timed_s);
    wall_s = std::max(wall_s, other.wall_s);
    quiet = std::min(quiet, other.quiet);
    calm = std::min(calm, other.calm);
    cancelled = std::max(cancelled, other.cancelled);
  }
};

class Loop {
 public:
  Loop(Team& team, Timer& timer, Operation& operation, const MeasureOptions& options,
       const Clock& clock, CaseReporter& reporter)
      : team_(team),
        timer_(timer),
        operation_(operation),
        options_(options),
        clock_(clock),
        reporter_(reporter) {}

  absl::StatusOr<Measurement> Run() {
    reporter_.WarmupBegins();
    PARAM_RETURN_IF_ERROR(MeasureOverhead(), "measuring the timer");
    PARAM_RETURN_IF_ERROR(WarmUp(), "warm-up");
    if (options_.mode == "pipelined") PARAM_RETURN_IF_ERROR(ChooseBatch(), "warm-up");
    reporter_.TimedBegins();
    PARAM_RETURN_IF_ERROR(TakeSamples());
    Judge();
    if (operation_.idle()) {
      out_.samples.clear();
    } else {
      reporter_.Samples("time", "s", {}, out_.samples);
    }
    return std::move(out_);
  }

 private:
  absl::Status MeasureOverhead() {
    std::vector<double> empty;
    empty.reserve(kOverheadPairs);
    for (int i = 0; i < kOverheadPairs; ++i) {
      PARAM_RETURN_IF_ERROR(timer_.Begin());
      PARAM_ASSIGN_OR_RETURN(const double seconds, timer_.End());
      empty.push_back(seconds);
    }
    out_.timer_overhead_s = Median(std::move(empty));
    return absl::OkStatus();
  }

  absl::Status WarmUp() {
    Standing mine = Here();
    for (std::int64_t i = 0; i < options_.warmup; ++i) {
      const absl::Duration from = clock_.Monotonic();
      PARAM_ASSIGN_OR_RETURN(mine.fastest_s, IsolatedSample());
      mine.slowest_s = absl::ToDoubleSeconds(clock_.Monotonic() - from);
      // Ranks that work together must all do the same number of iterations.
      if (team_.size() == 1 && reporter_.Cancelled()) break;
    }
    mine.cancelled = reporter_.Cancelled() ? 1 : 0;
    return Meet(mine);
  }

  // Long enough on the fastest rank; the same length on all.
  absl::Status ChooseBatch() {
    if (all_.fastest_s >= kBatchSeconds) return absl::OkStatus();
    PARAM_RETURN_IF_ERROR(Reheat());
    Standing mine = Here();
    const absl::Duration from = clock_.Monotonic();
    PARAM_ASSIGN_OR_RETURN(const double seconds, BatchSample(kCalibrationBatch));
    mine.fastest_s = seconds / static_cast<double>(kCalibrationBatch);
    mine.slowest_s =
        absl::ToDoubleSeconds(clock_.Monotonic() - from) / static_cast<double>(kCalibrationBatch);
    PARAM_RETURN_IF_ERROR(Meet(mine));
    out_.batch = ToCount(std::ceil(kBatchSeconds / all_.fastest_s), 1, kMaxBatch);
    all_.slowest_s *= static_cast<double>(out_.batch);  // from here on: per sample
    return absl::OkStatus();
  }

  absl::Status TakeSamples() {
    std::int64_t chunk = 1;
    while (true) {
      chunk = NextChunk(chunk);
      PARAM_RETURN_IF_ERROR(TakeChunk(chunk));
      Standing mine = Here();
      mine.slowest_s = chunk_wall_s_ / static_cast<double>(chunk);
      PARAM_RETURN_IF_ERROR(Meet(mine));
      const std::optional<StopReason> stop = Decide();
      if (stop.has_value()) {
        out_.stopped_by = *stop;
        return absl::OkStatus();
      }
    }
  }

  std::int64_t Taken() const { return static_cast<std::int64_t>(out_.samples.size()); }
  std::int64_t Limit() const { return options_.iters > 0 ? options_.iters : kMaxSamples; }

  // From what all ranks know alike.
  std::int64_t NextChunk(std::int64_t last) const {
    double seconds = kChunkSeconds;
    if (options_.iters == 0) {
      seconds = std::min(seconds, std::max(0.0, options_.max_time_s - all_.wall_s));
    }
    std::int64_t chunk = 1;
    if (all_.slowest_s > 0) chunk = ToCount(seconds / all_.slowest_s, 1, kMaxChunk);
    if (Taken() > 0) chunk = std::min(chunk, last * kChunkGrowth);
    return std::min(chunk, Limit() - Taken());
  }

  absl::Status TakeChunk(std::int64_t count) {
    const std::size_t first = out_.samples.size();
    out_.samples.reserve(first + static_cast<std::size_t>(count));
    PARAM_RETURN_IF_ERROR(Reheat());
    const absl::Duration from = clock_.Monotonic();
    if (options_.mode == "pipelined") {
      const double length = static_cast<double>(out_.batch);
      for (std::int64_t i = 0; i < count; ++i) {
        PARAM_ASSIGN_OR_RETURN(const double seconds, BatchSample(out_.batch));
        out_.samples.push_back(seconds / length);
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        PARAM_ASSIGN_OR_RETURN(const double seconds, IsolatedSample());
        out_.samples.push_back(seconds);
      }
    }
    chunk_wall_s_ = absl::ToDoubleSeconds(clock_.Monotonic() - from);
    wall_s_ += chunk_wall_s_;
    for (std::size_t i = first; i < out_.samples.size(); ++i) {
      noise_.Add(out_.samples[i]);
      timed_s_ += out_.samples[i] * static_cast<double>(out_.batch);
    }
    return absl::OkStatus();
  }

  // During an exchange the device idles and the caches cool down: without this, the first sample
  // after it would be slower than the others.
  absl::Status Reheat() {
    if (team_.size() == 1 || options_.flush_cache) return absl::OkStatus();
    const absl::Duration from = clock_.Monotonic();
    PARAM_RETURN_IF_ERROR(IsolatedSample().status());
    wall_s_ += absl::ToDoubleSeconds(clock_.Monotonic() - from);
    return absl::OkStatus();
  }

  absl::Status BeforeSample() {
    PARAM_RETURN_IF_ERROR(operation_.Prepare());
    if (options_.flush_cache) {
      PARAM_ASSIGN_OR_RETURN(out_.flushed_bytes, timer_.FlushCache());
    }
    return operation_.Meet();
  }

  absl::StatusOr<double> IsolatedSample() {
    PARAM_RETURN_IF_ERROR(BeforeSample());
    PARAM_RETURN_IF_ERROR(timer_.Begin());
    PARAM_RETURN_IF_ERROR(operation_.Enqueue());
    return timer_.End();
  }

  absl::StatusOr<double> BatchSample(std::int64_t length) {
    PARAM_RETURN_IF_ERROR(BeforeSample());
    PARAM_RETURN_IF_ERROR(timer_.Begin());
    for (std::int64_t i = 0; i < length; ++i) {
      if (i == kHeldIterations) PARAM_RETURN_IF_ERROR(timer_.LetGo());
      PARAM_RETURN_IF_ERROR(operation_.Enqueue());
    }
    return timer_.End();
  }

  Standing Here() const {
    Standing mine;
    mine.timed_s = timed_s_;
    mine.wall_s = wall_s_;
    const bool quiet = noise_.noise() < options_.noise;
    mine.quiet = quiet ? 1 : 0;
    mine.calm = quiet || noise_.settled() ? 1 : 0;
    mine.cancelled = reporter_.Cancelled() ? 1 : 0;
    return mine;
  }

  // What changes nothing when it is combined with others.
  Standing Neutral(const Standing& mine) const {
    Standing neutral;
    neutral.fastest_s = neutral.timed_s =
        operation_.together() ? 0 : std::numeric_limits<double>::infinity();
    neutral.quiet = neutral.calm = 1;
    neutral.cancelled = mine.cancelled;
    return neutral;
  }

  // Sets all_ to the same on every rank. CANCELLED when any rank is.
  absl::Status Meet(Standing mine) {
    if (operation_.idle()) mine = Neutral(mine);
    all_ = mine;
    if (team_.size() > 1) {
      std::string bytes(sizeof(Standing), '\0');
      std::memcpy(bytes.data(), &mine, sizeof(mine));
      PARAM_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, team_.Exchange(bytes));
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        Standing other;
        if (ranks[rank].size() != sizeof(other)) {
          return absl::InternalError(absl::StrCat("rank ", rank, " reported ", ranks[rank].size(),
                                                  " bytes, not ", sizeof(other),
                                                  ", where it stands"));
        }
        std::memcpy(&other, ranks[rank].data(), sizeof(other));
        all_.Combine(other, operation_.together());
      }
    }
    if (all_.cancelled > 0) return absl::CancelledError("the job was cancelled");
    return absl::OkStatus();
  }

  std::optional<StopReason> Decide() const {
    if (options_.iters > 0) {
      if (Taken() < options_.iters) return std::nullopt;
      return StopReason::kIters;
    }
    if (all_.timed_s >= options_.min_time_s) {
      if (all_.quiet > 0) return StopReason::kNoise;
      if (all_.calm > 0) return StopReason::kSettled;
    }
    if (all_.wall_s >= options_.max_time_s) return StopReason::kMaxTime;
    if (Taken() >= kMaxSamples) return StopReason::kMaxSamples;
    return std::nullopt;
  }

  void Judge() {
    if (operation_.idle()) return;
    const double measured = Median(out_.samples) * static_cast<double>(out_.batch);
    if (measured >= kTrustFactor * out_.timer_overhead_s) return;
    out_.mistrusted = absl::StrCat(
        "the median of what is timed, ", FormatSi(measured, "s"), ", is less than ", kTrustFactor,
        " times the timer's own cost of ", FormatSi(out_.timer_overhead_s, "s"));
  }

  Team& team_;
  Timer& timer_;
  Operation& operation_;
  const MeasureOptions& options_;
  const Clock& clock_;
  CaseReporter& reporter_;

  Measurement out_;
  NoiseTracker noise_;
  Standing all_;
  double timed_s_ = 0;
  double wall_s_ = 0;
  double chunk_wall_s_ = 0;
};

}  // namespace

absl::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kIters:
      return "iters";
    case StopReason::kNoise:
      return "noise";
    case StopReason::kSettled:
      return "settled";
    case StopReason::kMaxTime:
      return "max_time";
    case StopReason::kMaxSamples:
      return "max_samples";
  }
  return "?";
}

void Measurement::Describe(CaseResult& result) const {
  result.scalars["timer_overhead"] = timer_overhead_s;
  result.info["stopped_by"] = std::string(StopReasonName(stopped_by));
  result.info["batch"] = absl::StrCat(batch);
  result.info["flushed_bytes"] = absl::StrCat(flushed_bytes);
  if (!mistrusted.empty()) result.info["mistrusted"] = mistrusted;
}

absl::StatusOr<Measurement> Measure(Team& team, Timer& timer, Operation& operation,
                                    const MeasureOptions& options, const Clock& clock,
                                    CaseReporter& reporter) {
  return Loop(team, timer, operation, options, clock, reporter).Run();
}

}  // namespace param
