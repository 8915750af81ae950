#pragma once
// An operation and a timer on a clock that moves only when they work.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/bench/measure.h"
#include "tests/fakes/fake_clock.h"

namespace param {

// One rank's machine: iteration i takes what `seconds` says.
class ScriptedMachine final : public Operation, public Timer {
 public:
  using Seconds = std::function<double(std::int64_t iteration)>;
  explicit ScriptedMachine(Seconds seconds) : seconds_(std::move(seconds)) {}

  absl::Status Prepare() override {
    ++prepared;
    clock.Advance(absl::Seconds(prepare_s));
    return absl::OkStatus();
  }
  absl::Status Enqueue() override {
    if (iterations == fail_at) return absl::DataLossError("device lost");
    clock.Advance(absl::Seconds(seconds_(iterations++)));
    return absl::OkStatus();
  }
  absl::StatusOr<std::uint64_t> FlushCache() override {
    ++flushes;
    clock.Advance(absl::Milliseconds(1));
    return 4096;
  }
  absl::Status Begin() override {
    begun_ = clock.Monotonic();
    return absl::OkStatus();
  }
  absl::StatusOr<double> End() override {
    clock.Advance(absl::Seconds(overhead_s));
    return absl::ToDoubleSeconds(clock.Monotonic() - begun_);
  }

  absl::Status Meet() override {
    ++met;
    return absl::OkStatus();
  }
  bool idle() const override { return looks_on; }
  bool together() const override { return one_for_all; }

  FakeClock clock;
  bool looks_on = false;
  bool one_for_all = false;
  int met = 0;
  double overhead_s = 1e-9;
  double prepare_s = 0;
  std::int64_t fail_at = -1;
  std::int64_t iterations = 0;
  int prepared = 0;
  int flushes = 0;

 private:
  Seconds seconds_;
  absl::Duration begun_;
};

// Keeps what was reported.
class RecordingReporter final : public CaseReporter {
 public:
  void VerifyBegins() override { events.push_back("verify"); }
  void WarmupBegins() override { events.push_back("warmup"); }
  void TimedBegins() override { events.push_back("timed"); }
  void Samples(absl::string_view metric, absl::string_view unit,
               const std::map<std::string, std::string>&,
               absl::Span<const double> values) override {
    events.push_back(std::string(metric) + " in " + std::string(unit));
    samples.assign(values.begin(), values.end());
  }
  bool Cancelled() const override { return cancelled && cancelled(); }

  std::vector<std::string> events;
  std::vector<double> samples;
  std::function<bool()> cancelled;
};

// Options as the catalogue's defaults have them.
inline MeasureOptions DefaultOptions() {
  MeasureOptions options;
  options.min_time_s = 0.5;
  options.max_time_s = 2;
  options.noise = 0.01;
  options.fill = "normal";
  options.mode = "isolated";
  return options;
}

}  // namespace param
