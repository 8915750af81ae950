#pragma once
// Jobs of `collective` with fixed numbers for golden files.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/catalog/collective_math.h"
#include "tests/unit/client/samples.h"

namespace param {

inline void AddConstant(v1::CaseResult* result, const std::string& metric, double value) {
  AddMeasurement(result, -1, metric, "B", value);
  v1::Summary* s = result->mutable_measurements(result->measurements_size() - 1)->mutable_summary();
  s->set_min(value);
  s->set_p75(value);
  s->set_p95(value);
  s->set_p99(value);
  s->set_max(value);
  s->set_stdev(0);
  s->set_ci95_low(value);
  s->set_ci95_high(value);
}

// A case over 4 ranks, two on each of n1 and n2; rank r takes time_s * (1 + r / 16).
inline v1::CaseResult CollectiveCase(int index, const GivenParams& given, double time_s) {
  constexpr int kRanks = 4;
  const Case planned = ExpandCases(**FindBenchmark("collective"), given)->front();
  v1::CaseResult result;
  result.set_case_index(index);
  result.set_case_id(planned.id);
  ParamsToProto(planned.params, result.mutable_params());
  result.set_status(v1::PASSED);
  (*result.mutable_info())["library"] = "fake";
  CollectiveRequest request;
  request.op = *CollectiveOpFromName(std::get<std::string>(planned.params.at("op")));
  request.size = std::get<std::int64_t>(planned.params.at("size"));
  const std::string dtype = std::get<std::string>(planned.params.at("dtype"));
  request.element_bytes = dtype == "f64" ? 8 : dtype == "bf16" ? 2 : 4;
  request.ranks = kRanks;
  const CollectiveLayout layout = *LayOut(request, 0);
  const double slowest = time_s * (1 + 3.0 / 16);
  AddMeasurement(&result, -1, "time", "s", slowest, 3);
  if (request.op != CollectiveOp::kBarrier) {
    const auto bytes = static_cast<double>(layout.bytes);
    AddMeasurement(&result, -1, "algbw", "B/s", bytes / slowest);
    AddMeasurement(&result, -1, "busbw", "B/s", bytes / slowest * BusFactor(request.op, kRanks));
    AddConstant(&result, "bytes_total", bytes);
    AddConstant(&result, "bytes_per_rank", static_cast<double>(layout.bytes_per_rank));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    AddMeasurement(&result, rank, "time", "s", time_s * (1 + rank / 16.0));
    v1::RankStatus* at = result.add_ranks();
    at->set_rank(rank);
    at->set_node(rank < 2 ? "n1" : "n2");
    at->set_status(v1::PASSED);
  }
  return result;
}

inline v1::GetJobResponse CollectiveJob(std::vector<v1::CaseResult> cases) {
  v1::GetJobResponse response = SampleResponse(v1::SUCCEEDED, v1::PASSED);
  v1::Job* job = response.mutable_job();
  job->mutable_spec()->set_benchmark("collective");
  job->mutable_spec()->clear_params();
  (*job->mutable_spec()->mutable_params())["size"] = "8,1M";
  job->set_ranks(4);
  job->set_backend("fake");
  job->set_cases_total(static_cast<int>(cases.size()));
  job->set_cases_done(static_cast<int>(cases.size()));
  response.clear_cases();
  for (v1::CaseResult& result : cases) *response.add_cases() = std::move(result);
  return response;
}

// all_reduce of f32 over three sizes.
inline v1::GetJobResponse SweepJob(double scale = 1) {
  return CollectiveJob({CollectiveCase(0, {{"size", "8"}}, 10e-6 * scale),
                        CollectiveCase(1, {{"size", "64K"}}, 40e-6 * scale),
                        CollectiveCase(2, {{"size", "16M"}}, 9e-3 * scale)});
}

}  // namespace param
