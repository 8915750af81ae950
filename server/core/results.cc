#include "server/core/results.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "server/core/summary.h"

namespace param {
namespace {

int Badness(line::CaseStatus status) {
  switch (status) {
    case line::CaseStatus::kPassed:
      return 0;
    case line::CaseStatus::kSkipped:
      return 1;
    case line::CaseStatus::kWrong:
      return 2;
    case line::CaseStatus::kFailed:
      return 3;
  }
  return 3;
}

// One metric's samples of every rank; index = rank.
struct Pool {
  std::string metric, unit;
  line::Labels labels;
  bool higher_is_better = false;
  std::vector<std::vector<double>> by_rank;
};

bool HigherIsBetter(const BenchmarkSpec& bench, const std::string& metric) {
  for (const MetricSpec& spec : bench.metrics) {
    if (spec.name == metric) return spec.higher_is_better;
  }
  return false;
}

std::vector<Pool> SampledPools(const BenchmarkSpec& bench, const std::vector<RankReport>& reports) {
  std::map<std::pair<std::string, line::Labels>, Pool> pools;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    for (const auto& [key, series] : reports[rank].series) {
      Pool& pool = pools[key];
      pool.metric = key.first;
      pool.labels = key.second;
      pool.unit = series.unit;
      pool.higher_is_better = HigherIsBetter(bench, key.first);
      pool.by_rank.resize(reports.size());
      pool.by_rank[rank] = series.values;
    }
  }
  std::vector<Pool> out;
  out.reserve(pools.size());
  for (auto& [key, pool] : pools) out.push_back(std::move(pool));
  return out;
}

std::optional<Pool> DerivedPool(const MetricSpec& metric, const Params& params,
                                const std::vector<RankReport>& reports) {
  Pool pool;
  pool.metric = std::string(metric.name);
  pool.unit = std::string(metric.unit);
  pool.higher_is_better = metric.higher_is_better;
  pool.by_rank.resize(reports.size());
  bool any = false;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const auto it = reports[rank].series.find({"time", {}});
    if (it == reports[rank].series.end()) continue;
    for (const double time : it->second.values) {
      const double value = metric.derive(params, reports[rank].scalars, time);
      if (std::isnan(value)) continue;
      pool.by_rank[rank].push_back(value);
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return pool;
}

// All samples of all ranks; or, of ranks that work together, sample i of the slowest. A metric of
// which higher is better is worst where it is lowest. Ranks that took fewer samples (an attempt
// that broke off) shorten the pool: what only some have cannot be compared.
std::vector<double> Pooled(const Pool& pool, Pooling pooling) {
  std::vector<double> out;
  if (pooling == Pooling::kIndependent) {
    for (const auto& values : pool.by_rank) out.insert(out.end(), values.begin(), values.end());
    return out;
  }
  bool first = true;
  for (const std::vector<double>& values : pool.by_rank) {
    if (values.empty()) continue;
    if (first) {
      out = values;
      first = false;
      continue;
    }
    out.resize(std::min(out.size(), values.size()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = pool.higher_is_better ? std::min(out[i], values[i]) : std::max(out[i], values[i]);
    }
  }
  return out;
}

void AddMeasurements(const Pool& pool, Pooling pooling, CaseRecord& record) {
  int worst_rank = -1;
  double worst = 0;
  int ranks_with_samples = 0;
  std::vector<Measurement> of_ranks;
  for (std::size_t rank = 0; rank < pool.by_rank.size(); ++rank) {
    const std::vector<double>& values = pool.by_rank[rank];
    if (values.empty()) continue;
    ++ranks_with_samples;
    Measurement m{static_cast<int>(rank), pool.metric, pool.unit, pool.labels, Summarise(values)};
    const double median = m.summary.p50;
    if (worst_rank < 0 || (pool.higher_is_better ? median < worst : median > worst)) {
      worst_rank = static_cast<int>(rank);
      worst = median;
    }
    of_ranks.push_back(std::move(m));
  }
  Measurement pooled{-1, pool.metric, pool.unit, pool.labels, Summarise(Pooled(pool, pooling))};
  pooled.summary.slowest_rank = ranks_with_samples > 1 ? worst_rank : -1;
  record.measurements.push_back(std::move(pooled));
  for (Measurement& m : of_ranks) record.measurements.push_back(std::move(m));
}

void ConcludeStatus(const std::vector<RankReport>& reports, const std::vector<std::string>& nodes,
                    const std::string& missing_reason, CaseRecord& record) {
  record.ended = true;
  record.status = line::CaseStatus::kPassed;
  record.reason.clear();
  record.ranks.clear();
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const RankReport& report = reports[rank];
    RankStatus status;
    status.rank = static_cast<int>(rank);
    status.node = rank < nodes.size() ? nodes[rank] : "";
    status.status = report.ended ? report.status : line::CaseStatus::kFailed;
    status.reason = report.ended ? report.reason : missing_reason;
    if (Badness(status.status) > Badness(record.status)) {
      record.status = status.status;
      record.reason = status.reason;
    }
    record.ranks.push_back(std::move(status));
  }
}

}  // namespace

line::CaseStatus Worse(line::CaseStatus a, line::CaseStatus b) {
  return Badness(a) >= Badness(b) ? a : b;
}

void Conclude(const BenchmarkSpec& bench, const std::vector<RankReport>& reports,
              const std::vector<std::string>& nodes, const std::string& missing_reason,
              CaseRecord& record) {
  ConcludeStatus(reports, nodes, missing_reason, record);
  record.measurements.clear();
  record.info.clear();
  for (const RankReport& report : reports) {
    for (const auto& [key, value] : report.info) record.info.emplace(key, value);
  }
  for (const Pool& pool : SampledPools(bench, reports))
    AddMeasurements(pool, bench.pooling, record);
  for (const MetricSpec& metric : bench.metrics) {
    if (metric.derive == nullptr) continue;
    if (const auto pool = DerivedPool(metric, record.planned.params, reports)) {
      AddMeasurements(*pool, bench.pooling, record);
    }
  }
}

}  // namespace param
