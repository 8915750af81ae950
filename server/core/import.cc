#include "server/core/import.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace param {
namespace {

constexpr std::size_t kMaxName = 200;
constexpr std::size_t kMaxFormat = 32;
constexpr std::size_t kMaxNodes = 100'000;
constexpr int kMaxRanks = 10'000'000;
constexpr std::size_t kMaxText = 4096;  // of one fact or reason
constexpr std::size_t kMaxFacts = 256;

absl::Status TooLong(absl::string_view what, std::size_t got, std::size_t most) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": ", got, " characters, at most ", most, " are kept"));
}

absl::Status CheckFacts(absl::string_view what, const std::map<std::string, std::string>& facts) {
  if (facts.size() > kMaxFacts) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", facts.size(), " entries, at most ", kMaxFacts, " are kept"));
  }
  for (const auto& [key, value] : facts) {
    if (key.size() + value.size() > kMaxText) {
      return TooLong(absl::StrCat(what, ": ", key.substr(0, 40)), key.size() + value.size(),
                     kMaxText);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFormat(const std::string& format) {
  const bool plain = !format.empty() && std::all_of(format.begin(), format.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
  });
  if (plain && format.size() <= kMaxFormat) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "format: \"", format.substr(0, 40), "\" is no name of lower-case letters, digits and -"));
}

absl::Status CheckRequest(const ImportRequest& request) {
  PARAM_RETURN_IF_ERROR(CheckFormat(request.format));
  if (request.name.size() > kMaxName) return TooLong("name", request.name.size(), kMaxName);
  if (request.backend.empty() || request.backend.size() > kMaxFormat) {
    return absl::InvalidArgumentError("backend: give the name of what ran, like \"cuda+nccl\"");
  }
  if (request.ranks < 1 || request.ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("ranks: ", request.ranks, " is outside 1..", kMaxRanks));
  }
  if (request.nodes.size() > std::min(kMaxNodes, static_cast<std::size_t>(request.ranks))) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes: ", request.nodes.size(), " names for ", request.ranks, " ranks"));
  }
  for (const std::string& node : request.nodes) {
    if (node.empty() || node.size() > kMaxName) return TooLong("node name", node.size(), kMaxName);
  }
  if (request.cases.empty() || request.cases.size() > kMaxCases) {
    return absl::InvalidArgumentError(
        absl::StrCat("cases: ", request.cases.size(), " is outside 1..", kMaxCases));
  }
  return CheckFacts("environment", request.environment);
}

absl::Status CheckMeasurement(const BenchmarkSpec& bench, const Measurement& m) {
  const auto spec = std::find_if(bench.metrics.begin(), bench.metrics.end(),
                                 [&m](const MetricSpec& one) { return one.name == m.metric; });
  if (spec == bench.metrics.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(bench.id, " has no metric \"", m.metric.substr(0, 40), "\""));
  }
  if (m.unit != spec->unit) {
    return absl::InvalidArgumentError(
        absl::StrCat(m.metric, " is in ", spec->unit, ", not in \"", m.unit.substr(0, 40), "\""));
  }
  if (m.rank != -1 || !m.labels.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(m.metric, ": only numbers over all ranks and without labels are kept"));
  }
  if (m.summary.n < 1 || !std::isfinite(m.summary.p50) || m.summary.p50 < 0 ||
      (m.metric == "time" && m.summary.p50 <= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(m.metric, ": ", m.summary.p50, " of ", m.summary.n, " samples is no result"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CaseRecord> RecordOf(const BenchmarkSpec& bench, const ImportedCase& given,
                                    std::size_t index) {
  CaseRecord record;
  record.index = static_cast<int>(index);
  PARAM_ASSIGN_OR_RETURN(std::vector<Case> planned, ExpandCases(bench, given.params));
  if (planned.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("its parameters mean ", planned.size(), " cases, not one"));
  }
  record.planned = std::move(planned.front());
  if (given.status != line::CaseStatus::kPassed && given.status != line::CaseStatus::kWrong) {
    return absl::InvalidArgumentError("an imported case is PASSED or WRONG");
  }
  if (given.reason.size() > kMaxText) return TooLong("reason", given.reason.size(), kMaxText);
  PARAM_RETURN_IF_ERROR(CheckFacts("info", given.info));
  bool timed = false;
  for (const Measurement& m : given.measurements) {
    PARAM_RETURN_IF_ERROR(CheckMeasurement(bench, m));
    timed |= m.metric == "time";
  }
  if (!timed) return absl::InvalidArgumentError("it has no time");
  record.ended = true;
  record.status = given.status;
  record.reason = given.reason;
  record.info = given.info;
  record.measurements = given.measurements;
  return record;
}

// The ranks of a node follow each other, as launchers place them.
std::vector<RankPlace> Places(const ImportRequest& request) {
  std::vector<RankPlace> places;
  if (request.nodes.empty()) return places;
  const auto nodes = static_cast<std::int64_t>(request.nodes.size());
  std::int64_t node = -1;
  int local = 0;
  for (int rank = 0; rank < request.ranks; ++rank) {
    const std::int64_t at = rank * nodes / request.ranks;
    local = at == node ? local + 1 : 0;
    node = at;
    places.push_back({rank, request.nodes[static_cast<std::size_t>(at)], local});
  }
  return places;
}

Job JobOf(const ImportRequest& request, const BenchmarkSpec& bench, std::int64_t now_ns) {
  Job job;
  job.spec.benchmark = request.benchmark;
  job.spec.nodes = std::max(1, static_cast<int>(request.nodes.size()));
  job.spec.ranks_per_node = std::max(1, request.ranks / job.spec.nodes);
  job.spec.backend = request.backend;
  job.spec.name = request.name;
  job.spec.source = absl::StrCat("import:", request.format);
  job.benchmark_version = bench.version;
  job.state = JobState::kSucceeded;
  job.nodes = request.nodes;
  job.ranks = request.ranks;
  job.backend = request.backend;
  job.attempt = 1;
  job.timeline.submitted = job.timeline.finished = now_ns;
  job.cases_total = job.cases_done = static_cast<int>(request.cases.size());
  return job;
}

}  // namespace

absl::StatusOr<ImportPlan> PlanImport(const ImportRequest& request, const std::string& owner,
                                      const std::string& request_id, const std::string& job_id,
                                      std::int64_t now_ns) {
  const auto bench = FindBenchmark(request.benchmark);
  if (!bench.ok()) return absl::InvalidArgumentError(bench.status().message());
  PARAM_RETURN_IF_ERROR(CheckRequest(request));
  ImportPlan plan;
  plan.job = JobOf(request, **bench, now_ns);
  plan.job.job_id = job_id;
  plan.job.request_id = request_id;
  plan.job.owner = owner.empty() ? "local" : owner;
  std::vector<CaseRecord> records;
  std::map<std::string, std::size_t> seen;
  int wrong = 0;
  for (std::size_t i = 0; i < request.cases.size(); ++i) {
    PARAM_ASSIGN_OR_RETURN(CaseRecord record, RecordOf(**bench, request.cases[i], i), "case ", i);
    const auto [before, fresh] = seen.emplace(record.planned.id, i);
    if (!fresh) {
      return absl::InvalidArgumentError(
          absl::StrCat("case ", i, " is case ", before->second, " again: ", record.planned.id));
    }
    wrong += record.status == line::CaseStatus::kWrong ? 1 : 0;
    records.push_back(std::move(record));
  }
  if (wrong > 0) {
    plan.job.state = JobState::kFailed;
    plan.job.reason = absl::StrCat(wrong, wrong == 1 ? " case" : " cases", " wrong");
  }
  const AttemptKey key{job_id, 1};
  plan.writes = {PutJob{plan.job}, PutCases{job_id, records},
                 PutAttempt{{job_id,
                             1,
                             std::string(JobStateName(plan.job.state)),
                             Places(request),
                             {},
                             now_ns,
                             now_ns}},
                 PutEnvironment{key, {0, request.environment}}};
  for (CaseRecord& record : records) {
    plan.writes.emplace_back(PutCaseResult{key, std::move(record), {}});
  }
  return plan;
}

}  // namespace param
