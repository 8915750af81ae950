#include "server/core/attempt_state.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "proto/base/status.h"

namespace param {
namespace {

// What a rank may report of one case; the agent has the same bounds.
constexpr std::size_t kMaxSamplesPerSeries = 1'000'000;
constexpr std::size_t kMaxSeriesPerCase = 1024;

}  // namespace

AttemptState::AttemptState(const BenchmarkSpec& bench, AttemptKey key,
                           std::vector<std::string> nodes, std::vector<CaseRecord> cases)
    : bench_(bench),
      key_(std::move(key)),
      nodes_(std::move(nodes)),
      cases_(std::move(cases)),
      ranks_(nodes_.size()) {
  for (Rank& rank : ranks_) rank.reports.resize(cases_.size());
  for (CaseRecord& record : cases_) {  // a retry measures every case again
    record.ended = false;
    record.reason.clear();
    record.measurements.clear();
    record.ranks.clear();
    record.info.clear();
  }
}

std::uint64_t AttemptState::NextSeq(int rank) const {
  if (rank < 0 || static_cast<std::size_t>(rank) >= ranks_.size()) return 0;
  return ranks_[static_cast<std::size_t>(rank)].seq + 1;
}

absl::StatusOr<AttemptState::Effects> AttemptState::Apply(const RankEvent& event) {
  Effects effects;
  if (event.rank < 0 || static_cast<std::size_t>(event.rank) >= ranks_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", event.rank, " is not one of the attempt's ", ranks_.size()));
  }
  Rank& rank = ranks_[static_cast<std::size_t>(event.rank)];
  if (event.seq != rank.seq + 1) {
    effects.duplicate = true;
    return effects;
  }
  rank.seq = event.seq;
  PARAM_ASSIGN_OR_RETURN(const line::FromWorker message, line::DecodeFromWorker(event.line),
                         "rank ", event.rank, " event ", event.seq);
  absl::Status status;
  if (const auto* log = std::get_if<line::LogLine>(&message)) {
    effects.log =
        LogRow{key_.attempt, event.rank, event.seq, event.received_ns, log->level, log->text};
  } else if (rank.ended) {
    // Its failure was taken over (the node was lost, say); late words change nothing.
    effects.duplicate = true;
  } else if (const auto* begin = std::get_if<line::PhaseBegin>(&message)) {
    status = OnPhase(event.rank, begin->phase, true, begin->case_index, event.received_ns, effects);
  } else if (const auto* end = std::get_if<line::PhaseEnd>(&message)) {
    status = OnPhase(event.rank, end->phase, false, end->case_index, event.received_ns, effects);
  } else if (const auto* case_begin = std::get_if<line::CaseBegin>(&message)) {
    status = CheckCase(case_begin->case_index);
  } else if (const auto* samples = std::get_if<line::Samples>(&message)) {
    status = OnSamples(event.rank, *samples, effects);
  } else if (const auto* case_end = std::get_if<line::CaseEnd>(&message)) {
    status = OnCaseEnd(event.rank, *case_end, effects);
  } else if (const auto* environment = std::get_if<line::Environment>(&message)) {
    effects.environment = RankEnvironment{event.rank, environment->facts};
  } else if (const auto* failure = std::get_if<line::Failure>(&message)) {
    OnFailure(event.rank, *failure, effects);
  } else if (std::holds_alternative<line::Done>(message)) {
    rank.ended = true;
    effects.rank_ended = true;
  }
  PARAM_RETURN_IF_ERROR(status, "rank ", event.rank, " event ", event.seq);
  return effects;
}

absl::Status AttemptState::CheckCase(std::int64_t case_index) const {
  if (case_index < 0 || static_cast<std::size_t>(case_index) >= cases_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("case ", case_index, " is not one of the job's ", cases_.size()));
  }
  return absl::OkStatus();
}

bool AttemptState::AllRanks(bool Rank::*flag) const {
  return std::all_of(ranks_.begin(), ranks_.end(), [flag](const Rank& rank) { return rank.*flag; });
}

absl::Status AttemptState::OnPhase(int rank_number, line::Phase phase, bool begin,
                                   std::int64_t case_index, std::int64_t at_ns, Effects& effects) {
  if (case_index >= 0) PARAM_RETURN_IF_ERROR(CheckCase(case_index));
  Rank& rank = ranks_[static_cast<std::size_t>(rank_number)];
  const Timeline before = timeline_;
  if (begin && phase != line::Phase::kSpawn) rank.spawned = true;
  if (!begin && phase == line::Phase::kRendezvous) rank.rendezvous = true;
  if (!begin && phase == line::Phase::kCommInit) rank.comm_init = true;
  const auto mark = [at_ns](std::int64_t& at, bool reached) {
    if (at == 0 && reached) at = at_ns;
  };
  mark(timeline_.spawned, AllRanks(&Rank::spawned));
  mark(timeline_.rendezvous, AllRanks(&Rank::rendezvous));
  mark(timeline_.comm_init, AllRanks(&Rank::comm_init));
  mark(timeline_.warmup, begin && phase == line::Phase::kWarmup);
  mark(timeline_.first_timed, begin && phase == line::Phase::kTimed);
  effects.timeline_changed = !(before == timeline_);
  if (begin) {
    const std::string name(line::PhaseName(phase));
    if (name != phase_ || case_index != case_index_) {
      if (case_index != case_index_) samples_ = 0;
      phase_ = name;
      case_index_ = static_cast<int>(case_index);
      effects.progress = true;
    }
  }
  return absl::OkStatus();
}

// The agent checked this too; but whoever reaches the port can call itself an agent.
absl::Status AttemptState::CheckSamples(const line::Samples& samples) const {
  const auto spec =
      std::find_if(bench_.metrics.begin(), bench_.metrics.end(),
                   [&samples](const MetricSpec& each) { return each.name == samples.metric; });
  if (spec == bench_.metrics.end() || spec->derive != nullptr || spec->unit != samples.unit) {
    return absl::InvalidArgumentError(absl::StrCat("\"", samples.metric, "\" in \"", samples.unit,
                                                   "\" is not what ", bench_.id, " samples"));
  }
  for (const double value : samples.values) {
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a sample of ", samples.metric, " is not a finite number"));
    }
  }
  return absl::OkStatus();
}

absl::Status AttemptState::OnSamples(int rank_number, const line::Samples& samples,
                                     Effects& effects) {
  PARAM_RETURN_IF_ERROR(CheckCase(samples.case_index));
  Rank& rank = ranks_[static_cast<std::size_t>(rank_number)];
  RankReport& report = rank.reports[static_cast<std::size_t>(samples.case_index)];
  if (report.ended) {
    return absl::InvalidArgumentError(
        absl::StrCat("samples for case ", samples.case_index, ", which ended"));
  }
  PARAM_RETURN_IF_ERROR(CheckSamples(samples));
  RankReport::Series& series = report.series[{samples.metric, samples.labels}];
  if (report.series.size() > kMaxSeriesPerCase ||
      series.values.size() + samples.values.size() > kMaxSamplesPerSeries) {
    return absl::ResourceExhaustedError(
        absl::StrCat("case ", samples.case_index, ": more than ", kMaxSamplesPerSeries,
                     " samples of ", samples.metric, " or ", kMaxSeriesPerCase, " sets of labels"));
  }
  series.unit = samples.unit;
  series.values.insert(series.values.end(), samples.values.begin(), samples.values.end());
  samples_ += static_cast<std::int64_t>(samples.values.size());
  effects.progress = true;
  return absl::OkStatus();
}

absl::Status AttemptState::OnCaseEnd(int rank_number, const line::CaseEnd& end, Effects& effects) {
  PARAM_RETURN_IF_ERROR(CheckCase(end.case_index));
  const auto index = static_cast<std::size_t>(end.case_index);
  RankReport& report = ranks_[static_cast<std::size_t>(rank_number)].reports[index];
  if (report.ended) {
    return absl::InvalidArgumentError(absl::StrCat("case ", end.case_index, " ended twice"));
  }
  report.ended = true;
  report.status = end.status;
  report.reason = end.reason;
  report.scalars = end.scalars;
  report.info = end.info;
  const bool all = std::all_of(ranks_.begin(), ranks_.end(),
                               [index](const Rank& rank) { return rank.reports[index].ended; });
  if (all && !cases_[index].ended) {
    ConcludeCase(static_cast<int>(index), "");
    effects.concluded.push_back(static_cast<int>(index));
  }
  return absl::OkStatus();
}

void AttemptState::OnFailure(int rank_number, const line::Failure& failure, Effects& effects) {
  ranks_[static_cast<std::size_t>(rank_number)].ended = true;
  effects.rank_ended = true;
  if (failed()) return;  // what came first is the cause, the rest follows from it
  failure_ = Failure{failure.code,
                     std::string(line::PhaseName(failure.phase)),
                     nodes_[static_cast<std::size_t>(rank_number)],
                     rank_number,
                     failure.cause,
                     failure.address,
                     failure.error_number};
  effects.failure = failure_;
}

void AttemptState::FailUnfinished(const Failure& failure) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (failure.node.empty() || nodes_[i] == failure.node) ranks_[i].ended = true;
  }
  if (!failed()) failure_ = failure;
}

void AttemptState::ConcludeCase(int index, const std::string& missing_reason) {
  const auto at = static_cast<std::size_t>(index);
  std::vector<RankReport> reports;
  reports.reserve(ranks_.size());
  for (const Rank& rank : ranks_) reports.push_back(rank.reports[at]);
  Conclude(bench_, reports, nodes_, missing_reason, cases_[at]);
}

std::vector<int> AttemptState::ConcludeRest(const std::string& reason) {
  std::vector<int> concluded;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    if (cases_[i].ended) continue;
    ConcludeCase(static_cast<int>(i), reason);
    concluded.push_back(static_cast<int>(i));
  }
  return concluded;
}

bool AttemptState::AllRanksEnded() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended; });
}

bool AttemptState::RanksEndedOn(const std::string& node) const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (nodes_[i] == node && !ranks_[i].ended) return false;
  }
  return true;
}

bool AttemptState::NothingFrom(const std::string& node) const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (nodes_[i] == node && ranks_[i].seq > 0) return false;
  }
  return true;
}

std::vector<SampleBlob> AttemptState::TakeSamples(int case_index) {
  std::vector<SampleBlob> blobs;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    RankReport& report = ranks_[i].reports[static_cast<std::size_t>(case_index)];
    for (auto& [key, series] : report.series) {
      blobs.push_back(SampleBlob{case_index, static_cast<int>(i), key.first, key.second,
                                 std::move(series.values)});
    }
    report.series.clear();
  }
  return blobs;
}

int AttemptState::cases_done() const {
  return static_cast<int>(std::count_if(cases_.begin(), cases_.end(),
                                        [](const CaseRecord& record) { return record.ended; }));
}

}  // namespace param
