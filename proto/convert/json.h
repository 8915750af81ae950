#pragma once
// THE JSON view of jobs, cases, nodes and results: the only encoder, used by paramctl's -o json and
// jsonl, by exports and by any later web API. snake_case, every key present, base units, integers
// as numbers, non-finite numbers as null, bare enum names. Keys may be added, never changed. Thread
// safe; the values are plain data.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "param/v1/job.pb.h"
#include "param/v1/node.pb.h"
#include "param/v1/result.pb.h"
#include "proto/catalog/spec.h"

namespace param {

using Json = nlohmann::ordered_json;

// The object under "job".
Json JobJson(const v1::Job& job);

// One case: "metrics" over all ranks, "breakdown" by labels, "ranks" one by one.
Json CaseJson(const v1::CaseResult& result);

// {"job": ..., "cases": [...], "environment": [...]}.
Json JobDocument(const v1::GetJobResponse& response);

// A node with its inventory and the three states of each backend.
Json NodeJson(const v1::Node& node);

// A case of a finished job together with the job it belongs to: {"job": {...}, "case": ...}.
Json ResultJson(const v1::ResultRow& row);

// All samples of one metric of one rank, base unit.
Json SamplesJson(const v1::SampleBlob& blob);

Json LogRowJson(const v1::LogRow& row);

// What the coordinator says about itself.
Json ServerJson(const v1::InfoResponse& info);

// A descriptor: parameters, metrics, sets.
Json BenchmarkJson(const BenchmarkSpec& bench);

// Text of a value: two spaces of indentation, or one line. Bytes that are not UTF-8 are replaced.
std::string JsonText(const Json& value);
std::string JsonLine(const Json& value);

}  // namespace param
