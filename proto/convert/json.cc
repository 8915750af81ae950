#include "proto/convert/json.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "proto/convert/names.h"

namespace param {
namespace {

Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// Protobuf maps have no order; JSON of ours is stable.
template <typename ProtoMap>
auto Sorted(const ProtoMap& map) {
  return std::map<typename ProtoMap::key_type, typename ProtoMap::mapped_type>(map.begin(),
                                                                               map.end());
}

template <typename ProtoMap>
Json MapJson(const ProtoMap& map) {
  Json out = Json::object();
  for (const auto& [key, value] : Sorted(map)) out[key] = value;
  return out;
}

template <typename Repeated>
Json ListJson(const Repeated& list) {
  Json out = Json::array();
  for (const auto& value : list) out.push_back(value);
  return out;
}

Json ValueJson(const v1::ParamValue& value) {
  switch (value.kind_case()) {
    case v1::ParamValue::kInteger:
      return value.integer();
    case v1::ParamValue::kNumber:
      return Number(value.number());
    case v1::ParamValue::kBoolean:
      return value.boolean();
    case v1::ParamValue::kText:
      return value.text();
    case v1::ParamValue::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

void AddSummary(const v1::Measurement& measurement, Json* out) {
  const v1::Summary& s = measurement.summary();
  (*out)["unit"] = measurement.unit();
  (*out)["n"] = s.n();
  (*out)["min"] = Number(s.min());
  (*out)["p50"] = Number(s.p50());
  (*out)["p75"] = Number(s.p75());
  (*out)["p95"] = Number(s.p95());
  (*out)["p99"] = Number(s.p99());
  (*out)["max"] = Number(s.max());
  (*out)["mean"] = Number(s.mean());
  (*out)["stdev"] = Number(s.stdev());
  (*out)["ci95"] = Json::array({Number(s.ci95_low()), Number(s.ci95_high())});
  (*out)["slowest_rank"] = s.slowest_rank();
}

// The unlabelled measurements of `rank` by name, and the labelled ones as a list.
void AddMeasurements(const v1::CaseResult& result, int rank, Json* out) {
  Json metrics = Json::object();
  Json breakdown = Json::array();
  for (const v1::Measurement& measurement : result.measurements()) {
    if (measurement.rank() != rank) continue;
    if (measurement.labels().empty()) {
      Json summary = Json::object();
      AddSummary(measurement, &summary);
      metrics[measurement.metric()] = std::move(summary);
    } else {
      Json item = {{"metric", measurement.metric()}, {"labels", MapJson(measurement.labels())}};
      AddSummary(measurement, &item);
      breakdown.push_back(std::move(item));
    }
  }
  (*out)["metrics"] = std::move(metrics);
  (*out)["breakdown"] = std::move(breakdown);
}

Json FailureJson(const v1::Job& job) {
  if (!job.has_failure() || job.failure().code().empty()) return nullptr;
  const v1::Failure& failure = job.failure();
  return {{"code", failure.code()},         {"phase", failure.phase()},
          {"node", failure.node()},         {"rank", failure.rank()},
          {"cause", failure.cause()},       {"address", failure.address()},
          {"errno", failure.error_number()}};
}

Json TimelineJson(const v1::Timeline& timeline) {
  return {{"submitted", timeline.submitted()},     {"placed", timeline.placed()},
          {"spawned", timeline.spawned()},         {"rendezvous", timeline.rendezvous()},
          {"comm_init", timeline.comm_init()},     {"warmup", timeline.warmup()},
          {"first_timed", timeline.first_timed()}, {"finished", timeline.finished()}};
}

}  // namespace

Json JobJson(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  return {{"id", job.job_id()},
          {"name", spec.name()},
          {"benchmark", spec.benchmark()},
          {"benchmark_version", job.benchmark_version()},
          {"state", WireJobStateName(job.state())},
          {"reason", job.reason()},
          {"owner", job.owner()},
          {"source", spec.source()},
          {"nodes", ListJson(job.nodes())},
          {"ranks", job.ranks()},
          {"backend", job.backend()},
          {"attempt", job.attempt()},
          {"failure", FailureJson(job)},
          {"timeline", TimelineJson(job.timeline())},
          {"cases_total", job.cases_total()},
          {"cases_done", job.cases_done()},
          {"oversubscribed", job.oversubscribed()},
          {"request",
           {{"params", MapJson(spec.params())},
            {"nodes", spec.nodes()},
            {"ranks_per_node", spec.ranks_per_node()},
            {"backend", spec.backend()},
            {"node_names", ListJson(spec.node_names())},
            {"selector", MapJson(spec.selector())},
            {"priority", spec.priority()},
            {"timeout_ns", spec.timeout_ns()},
            {"retries", spec.retries()},
            {"no_wait", spec.no_wait()},
            {"interface", spec.interface()},
            {"phase_deadlines_ns", MapJson(spec.phase_deadlines_ns())}}}};
}

Json CaseJson(const v1::CaseResult& result) {
  Json params = Json::object();
  for (const auto& [name, value] : Sorted(result.params())) params[name] = ValueJson(value);
  Json out = {{"case", result.case_id()},
              {"index", result.case_index()},
              {"params", std::move(params)},
              {"set_row", result.set_row()},
              {"application", result.application()},
              {"status", WireCaseStatusName(result.status())},
              {"reason", result.reason()},
              {"info", MapJson(result.info())}};
  AddMeasurements(result, -1, &out);
  Json ranks = Json::array();
  for (const v1::RankStatus& rank : result.ranks()) {
    Json item = {{"rank", rank.rank()},
                 {"node", rank.node()},
                 {"status", WireCaseStatusName(rank.status())},
                 {"reason", rank.reason()}};
    AddMeasurements(result, rank.rank(), &item);
    ranks.push_back(std::move(item));
  }
  out["ranks"] = std::move(ranks);
  return out;
}

Json JobDocument(const v1::GetJobResponse& response) {
  Json cases = Json::array();
  for (const v1::CaseResult& result : response.cases()) cases.push_back(CaseJson(result));
  Json environment = Json::array();
  for (const v1::RankEnvironment& rank : response.environment()) {
    environment.push_back(
        {{"rank", rank.rank()}, {"node", rank.node()}, {"facts", MapJson(rank.facts())}});
  }
  Json out = Json::object();
  out["job"] = JobJson(response.job());
  out["cases"] = std::move(cases);
  out["environment"] = std::move(environment);
  return out;
}

Json ResultJson(const v1::ResultRow& row) {
  Json out = {{"job",
               {{"id", row.job_id()},
                {"name", row.job_name()},
                {"benchmark", row.benchmark()},
                {"backend", row.backend()},
                {"nodes", ListJson(row.nodes())},
                {"ranks", row.ranks()},
                {"finished", row.finished_ns()}}}};
  out.update(CaseJson(row.result()));
  return out;
}

Json SamplesJson(const v1::SampleBlob& blob) {
  Json values = Json::array();
  for (const double value : blob.values()) values.push_back(Number(value));
  return {{"case_index", blob.case_index()},
          {"rank", blob.rank()},
          {"metric", blob.metric()},
          {"labels", MapJson(blob.labels())},
          {"values", std::move(values)}};
}

Json LogRowJson(const v1::LogRow& row) {
  return {{"attempt", row.attempt()}, {"rank", row.rank()},   {"node", row.node()},
          {"time", row.time_ns()},    {"level", row.level()}, {"text", row.text()}};
}

std::string JsonText(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string JsonLine(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace param
