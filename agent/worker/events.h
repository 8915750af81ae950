#pragma once
// What a rank tells its agent on its way: phases, cases, samples.

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "agent/bench/driver.h"
#include "agent/worker/channel.h"
#include "proto/base/clock.h"

namespace param {

// Keeps the phase a rank is in. One thread calls; phase() may be asked by any.
class PhaseTracker {
 public:
  explicit PhaseTracker(Channel& channel) : channel_(channel) {}

  // Ends the current phase and begins the next; nothing when it is the same of the same case.
  void Enter(line::Phase phase, std::int64_t case_index);
  // Begins the current phase once more: the agent takes it as progress, a log line it would not.
  void SayAgain();
  // Ends the current phase without a next.
  void End();

  line::Phase phase() const { return phase_; }
  std::int64_t case_index() const { return case_index_; }

 private:
  Channel& channel_;
  std::atomic<line::Phase> phase_ = line::Phase::kSpawn;
  std::atomic<std::int64_t> case_index_ = -1;
  // The agent began "spawn" when it started this process.
  bool open_ = true;
};

// The reporter of one case.
class LineReporter final : public CaseReporter {
 public:
  LineReporter(Channel& channel, PhaseTracker& phases, const Clock& clock, std::int64_t case_index);

  void VerifyBegins() override { Enter(line::Phase::kVerify); }
  void WarmupBegins() override { Enter(line::Phase::kWarmup); }
  void TimedBegins() override { Enter(line::Phase::kTimed); }
  // Cut into lines of at most kMaxSamplesPerLine.
  void Samples(absl::string_view metric, absl::string_view unit,
               const std::map<std::string, std::string>& labels,
               absl::Span<const double> values) override;
  // Asked between chunks, never inside the timed region: the place for a sign of life, so that a
  // long but sound measurement is not taken for a hang.
  bool Cancelled() const override;

 private:
  void Enter(line::Phase phase);

  Channel& channel_;
  PhaseTracker& phases_;
  const Clock& clock_;
  const std::int64_t case_index_;
  mutable absl::Duration last_sign_;
};

}  // namespace param
