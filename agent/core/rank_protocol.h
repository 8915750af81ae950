#pragma once
// Whether a worker's message is possible at this point. A worker loads foreign code, so that what
// it says is judged, not believed.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/catalog/spec.h"
#include "proto/line/messages.h"

namespace param::agent {

// Of one rank; Hello, Exchange and tokens are the supervisor's business. Not thread safe.
class RankProtocol {
 public:
  // `bench` outlives this.
  RankProtocol(const BenchmarkSpec& bench, std::int64_t cases) : bench_(&bench), cases_(cases) {}

  // INVALID_ARGUMENT: what is wrong with it, as it goes after "worker sent ".
  absl::Status Check(const line::FromWorker& message);

  // After this, Done is right with cases that were not run.
  void Cancelled() { cancelled_ = true; }

  line::Phase phase() const { return phase_; }
  std::int64_t case_index() const { return case_; }  // -1 outside a case
  // A Done or a Failure came: nothing but log lines counts after it.
  bool has_ended() const { return ended_; }
  bool is_done() const { return done_; }

 private:
  absl::Status Judge(const line::PhaseBegin& begin);
  absl::Status Judge(const line::PhaseEnd& end);
  absl::Status Judge(const line::CaseBegin& begin);
  absl::Status Judge(const line::Samples& samples);
  absl::Status Judge(const line::CaseEnd& end);
  absl::Status Judge(const line::Failure& failure);
  absl::Status Judge(const line::Done& done);
  // Of the open case: adds up, and bounds what one rank can make the store keep.
  absl::Status Count(const line::Samples& samples);
  // Of the open case: PASSED means that there are numbers.
  absl::Status CheckComplete() const;
  absl::Status CheckCase(absl::string_view what, std::int64_t index) const;

  const BenchmarkSpec* const bench_;
  const std::int64_t cases_;
  line::Phase phase_ = line::Phase::kSpawn;
  std::int64_t case_ = -1;
  bool open_ = false;  // between CaseBegin and CaseEnd
  std::map<line::Labels, std::map<std::string, std::int64_t>> values_;  // of the open case
  std::set<std::int64_t> finished_;
  bool cancelled_ = false, ended_ = false, done_ = false;
};

// The type of a message as it stands in its line: "case_end".
absl::string_view MessageName(const line::FromWorker& message);

}  // namespace param::agent
