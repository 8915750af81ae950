#pragma once
// One attempt as the fold of what its ranks reported: Apply() the same events in the same order and
// the same state comes out, which is how a restarted coordinator gets it back. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/core/job.h"
#include "server/core/results.h"

namespace param {

class AttemptState {
 public:
  // `nodes` names each rank's node; `cases` is the job's plan. `bench` outlives this.
  AttemptState(const BenchmarkSpec& bench, AttemptKey key, std::vector<std::string> nodes,
               std::vector<CaseRecord> cases);

  // What an event changed.
  struct Effects {
    bool duplicate = false;          // seen before: nothing changed
    std::vector<int> concluded;      // cases that ended with it; see record()
    std::optional<Failure> failure;  // the attempt's first failure, when this is it
    std::optional<RankEnvironment> environment;
    std::optional<LogRow> log;
    bool timeline_changed = false;
    bool progress = false;  // phase or sample count moved
    bool rank_ended = false;
  };

  // The next expected sequence number of `rank`; others are duplicates or gaps.
  std::uint64_t NextSeq(int rank) const;
  // INVALID_ARGUMENT when the line is not what a rank may say (the caller fails the attempt).
  absl::StatusOr<Effects> Apply(const RankEvent& event);

  // Fails ranks that have not ended (their node or process is gone). The first failure of the
  // attempt stays its failure.
  void FailUnfinished(const Failure& failure);
  // What a stored attempt says it failed of, before its events are folded again.
  void AdoptFailure(const Failure& failure) { failure_ = failure; }
  // Ends every case that has not: FAILED with `reason`. Returns their indexes.
  std::vector<int> ConcludeRest(const std::string& reason);

  bool AllRanksEnded() const;
  bool RanksEndedOn(const std::string& node) const;
  // Not one event of its ranks was taken.
  bool NothingFrom(const std::string& node) const;
  bool failed() const { return !failure_.empty(); }
  const Failure& failure() const { return failure_; }
  const Timeline& timeline() const { return timeline_; }  // submitted, placed, finished stay 0
  const std::vector<CaseRecord>& cases() const { return cases_; }
  // Samples of a concluded case; they are released by TakeSamples.
  std::vector<SampleBlob> TakeSamples(int case_index);
  int cases_done() const;
  const AttemptKey& key() const { return key_; }
  const std::vector<std::string>& nodes() const { return nodes_; }
  std::string current_phase() const { return phase_; }
  int current_case() const { return case_index_; }
  std::int64_t samples_of_current_case() const { return samples_; }

 private:
  struct Rank {
    std::uint64_t seq = 0;  // last applied
    bool ended = false;
    bool spawned = false, rendezvous = false, comm_init = false;
    std::vector<RankReport> reports;  // by case
  };

  absl::Status OnPhase(int rank, line::Phase phase, bool begin, std::int64_t case_index,
                       std::int64_t at_ns, Effects& effects);
  absl::Status CheckSamples(const line::Samples& samples) const;
  absl::Status OnSamples(int rank, const line::Samples& samples, Effects& effects);
  absl::Status OnCaseEnd(int rank, const line::CaseEnd& end, Effects& effects);
  void OnFailure(int rank, const line::Failure& failure, Effects& effects);
  absl::Status CheckCase(std::int64_t case_index) const;
  bool AllRanks(bool Rank::*flag) const;
  void ConcludeCase(int index, const std::string& missing_reason);

  const BenchmarkSpec& bench_;
  const AttemptKey key_;
  const std::vector<std::string> nodes_;
  std::vector<CaseRecord> cases_;
  std::vector<Rank> ranks_;
  Failure failure_;
  Timeline timeline_;
  std::string phase_ = "spawn";
  int case_index_ = -1;
  std::int64_t samples_ = 0;
};

}  // namespace param
