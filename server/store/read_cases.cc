// Cases with their parameters and results: the part of reads.h that joins four tables.
#include <limits>
#include <map>
#include <utility>

#include "proto/base/status.h"
#include "server/store/codec.h"
#include "server/store/reads.h"

namespace param {
namespace {

// Cases `first` to `last` of a job.
struct Range {
  const std::string& job_id;
  int first = 0;
  int last = std::numeric_limits<int>::max();
};

using Records = std::map<int, CaseRecord>;

Call& Bind(Call& call, const Range& range) {
  return call.Text(range.job_id).Int(range.first).Int(range.last);
}

absl::Status AddCases(Connection& db, const Range& range, Records* records) {
  Call call(db, "get_cases");
  Bind(call, range);
  while (call.Next()) {
    CaseRecord record;
    record.index = call.ReadSmallInt();
    record.planned.id = call.ReadText();
    record.planned.set_row = call.ReadText();
    record.planned.application = call.ReadText();
    record.ended = call.ReadInt() != 0;
    if (record.ended) {
      PARAM_ASSIGN_OR_RETURN(record.status, line::CaseStatusFromName(call.ReadText()));
      record.reason = call.ReadText();
      PARAM_ASSIGN_OR_RETURN(record.info, ParseMap(call.ReadText()));
    }
    const int index = record.index;
    records->emplace_hint(records->end(), index, std::move(record));
  }
  return call.status();
}

absl::Status AddParams(Connection& db, const Range& range, Records* records) {
  Call call(db, "get_case_params");
  Bind(call, range);
  while (call.Next()) {
    CaseRecord& record = (*records)[call.ReadSmallInt()];
    const std::string name = call.ReadText();
    const std::string type = call.ReadText();
    Value value;
    if (type == "int") {
      value = call.ReadInt();
    } else if (type == "real") {
      value = call.ReadReal();
    } else if (type == "bool") {
      value = call.ReadInt() != 0;
    } else {
      value = call.ReadText();
    }
    record.planned.params.emplace(name, std::move(value));
  }
  return call.status();
}

absl::Status AddRanks(Connection& db, const Range& range, Records* records) {
  Call call(db, "get_case_ranks");
  Bind(call, range);
  while (call.Next()) {
    CaseRecord& record = (*records)[call.ReadSmallInt()];
    RankStatus rank;
    rank.rank = call.ReadSmallInt();
    rank.node = call.ReadText();
    PARAM_ASSIGN_OR_RETURN(rank.status, line::CaseStatusFromName(call.ReadText()));
    rank.reason = call.ReadText();
    record.ranks.push_back(std::move(rank));
  }
  return call.status();
}

absl::Status AddMeasurements(Connection& db, const Range& range, Records* records) {
  Call call(db, "get_measurements");
  Bind(call, range);
  while (call.Next()) {
    CaseRecord& record = (*records)[call.ReadSmallInt()];
    Measurement m;
    m.rank = call.ReadSmallInt();
    m.metric = call.ReadText();
    PARAM_ASSIGN_OR_RETURN(m.labels, ParseLabels(call.ReadText()));
    m.unit = call.ReadText();
    Summary& s = m.summary;
    s.n = call.ReadInt();
    for (double* number : {&s.min, &s.p50, &s.p75, &s.p95, &s.p99, &s.max, &s.mean, &s.stdev,
                           &s.ci95_low, &s.ci95_high}) {
      *number = call.ReadReal();
    }
    s.slowest_rank = call.ReadSmallInt();
    record.measurements.push_back(std::move(m));
  }
  return call.status();
}

absl::StatusOr<Records> ReadRange(Connection& db, const Range& range) {
  Records records;
  PARAM_RETURN_IF_ERROR(AddCases(db, range, &records), "job ", range.job_id);
  PARAM_RETURN_IF_ERROR(AddParams(db, range, &records), "job ", range.job_id);
  PARAM_RETURN_IF_ERROR(AddRanks(db, range, &records), "job ", range.job_id);
  PARAM_RETURN_IF_ERROR(AddMeasurements(db, range, &records), "job ", range.job_id);
  return records;
}

}  // namespace

absl::StatusOr<std::vector<CaseRecord>> ReadCases(Connection& db, const std::string& job_id) {
  PARAM_ASSIGN_OR_RETURN(Records records, ReadRange(db, {job_id}));
  std::vector<CaseRecord> cases;
  cases.reserve(records.size());
  for (auto& [index, record] : records) cases.push_back(std::move(record));
  return cases;
}

absl::StatusOr<std::vector<ResultRow>> ReadResults(Connection& db, const ResultFilter& filter) {
  std::vector<std::pair<std::string, int>> found;
  {
    Call call(db, filter.case_id.empty() ? "list_results" : "list_results_of_case");
    call.Text(filter.benchmark).Text(filter.case_id).Text(filter.node);
    call.Int(filter.limit <= 0 ? -1 : filter.limit);
    while (call.Next()) {
      std::string job_id = call.ReadText();
      found.emplace_back(std::move(job_id), call.ReadSmallInt());
    }
    PARAM_RETURN_IF_ERROR(call.status());
  }
  std::vector<ResultRow> rows;
  rows.reserve(found.size());
  for (const auto& [job_id, index] : found) {
    ResultRow row;
    if (!rows.empty() && rows.back().job.job_id == job_id) {
      row.job = rows.back().job;
    } else {
      PARAM_ASSIGN_OR_RETURN(row.job, ReadJob(db, job_id));
    }
    PARAM_ASSIGN_OR_RETURN(Records records, ReadRange(db, {job_id, index, index}));
    row.result = std::move(records[index]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace param
