#pragma once
// What is going on, for a person who waits: one redrawn line on a terminal; elsewhere a plain line
// when what is going on changed, at most one in ten seconds; nothing when silent.

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/output/terminal.h"
#include "proto/base/clock.h"

namespace param {

// Writes to standard error only. Not thread safe. The streams and the clock must outlive it; the
// destructor removes the line.
class Progress {
 public:
  Progress(std::ostream& err, const TerminalFacts& facts, bool silent, const Clock& clock)
      : err_(err), redraw_(facts.is_tty && facts.term != "dumb"), silent_(silent), clock_(clock) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Clear(); }

  // `counters` changes often and is shown on a terminal only.
  void Show(absl::string_view what, absl::string_view counters = "");

  // A line that stays.
  void Note(absl::string_view line);

  // Call before anything else is written to the same terminal; Show draws anew.
  void Clear();

 private:
  std::ostream& err_;
  const bool redraw_;
  const bool silent_;
  const Clock& clock_;
  std::string shown_;  // the redrawn line
  std::string plain_;  // the last plain line
  absl::Duration plain_at_ = -absl::InfiniteDuration();
};

}  // namespace param
