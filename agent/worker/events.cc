#include "agent/worker/events.h"

#include <algorithm>

namespace param {
namespace {

constexpr absl::Duration kSignOfLife = absl::Seconds(2);

}  // namespace

void PhaseTracker::Enter(line::Phase phase, std::int64_t case_index) {
  if (open_ && phase == phase_ && case_index == case_index_) return;
  End();
  phase_ = phase;
  case_index_ = case_index;
  open_ = true;
  channel_.Send(line::PhaseBegin{phase, case_index});
}

void PhaseTracker::SayAgain() {
  if (open_) channel_.Send(line::PhaseBegin{phase_, case_index_});
}

void PhaseTracker::End() {
  if (!open_) return;
  open_ = false;
  channel_.Send(line::PhaseEnd{phase_, case_index_});
}

LineReporter::LineReporter(Channel& channel, PhaseTracker& phases, const Clock& clock,
                           std::int64_t case_index)
    : channel_(channel),
      phases_(phases),
      clock_(clock),
      case_index_(case_index),
      last_sign_(clock.Monotonic()) {}

void LineReporter::Enter(line::Phase phase) {
  phases_.Enter(phase, case_index_);
  last_sign_ = clock_.Monotonic();
}

void LineReporter::Samples(absl::string_view metric, absl::string_view unit,
                           const std::map<std::string, std::string>& labels,
                           absl::Span<const double> values) {
  for (std::size_t at = 0; at < values.size(); at += line::kMaxSamplesPerLine) {
    const auto piece = values.subspan(at, line::kMaxSamplesPerLine);
    channel_.Send(line::Samples{case_index_, std::string(metric), std::string(unit), labels,
                                std::vector<double>(piece.begin(), piece.end())});
  }
}

bool LineReporter::Cancelled() const {
  const absl::Duration now = clock_.Monotonic();
  if (now - last_sign_ >= kSignOfLife) {
    last_sign_ = now;
    phases_.SayAgain();
  }
  return channel_.cancelled();
}

}  // namespace param
