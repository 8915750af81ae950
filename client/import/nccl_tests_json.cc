// The file that nccl-tests writes with -J (versions 2 and 3): config.devices, then results with
// out_of_place and in_place, and with -I every iteration.

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/import/collective_cases.h"
#include "client/import/formats.h"
#include "proto/base/status.h"

namespace param {
namespace {

using Json = nlohmann::json;

bool Recognises(absl::string_view text) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{") &&
         absl::StrContains(text, "\"nccl_version\"") && absl::StrContains(text, "\"results\"");
}

absl::StatusOr<Json> Parse(absl::string_view text) {
  try {  // the library has no other way to say where the text is wrong
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    const absl::string_view before = text.substr(0, error.byte);
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", 1 + std::count(before.begin(), before.end(), '\n'), ": it is no JSON"));
  }
}

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string TextOf(const Json& object, const char* key) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

absl::StatusOr<double> NumberOf(const Json& object, const char* key, const std::string& where) {
  const Json* value = Find(object, key);
  if (value != nullptr && value->is_number()) return value->get<double>();
  return absl::InvalidArgumentError(absl::StrCat(where, ".", key, " is no number"));
}

struct Fleet {
  std::set<std::int64_t> ranks;  // of the first group
  std::vector<std::string> hosts;
};

Fleet FleetOf(const Json& document) {
  Fleet fleet;
  const Json* config = Find(document, "config");
  const Json* devices = config == nullptr ? nullptr : Find(*config, "devices");
  if (devices == nullptr || !devices->is_array()) return fleet;
  std::optional<std::int64_t> group;
  for (const Json& device : *devices) {
    const Json* rank = Find(device, "rank");
    if (rank == nullptr || !rank->is_number_integer()) continue;
    const Json* in = Find(device, "group");
    const std::int64_t mine =
        in != nullptr && in->is_number_integer() ? in->get<std::int64_t>() : 0;
    if (!group.has_value()) group = mine;
    if (mine != *group) continue;
    fleet.ranks.insert(rank->get<std::int64_t>());
    const std::string host = TextOf(device, "hostname");
    if (!host.empty() &&
        std::find(fleet.hosts.begin(), fleet.hosts.end(), host) == fleet.hosts.end()) {
      fleet.hosts.push_back(host);
    }
  }
  return fleet;
}

absl::StatusOr<CollectiveOp> OperationOf(const Json& document, const ImportHints& hints) {
  PARAM_ASSIGN_OR_RETURN(const std::optional<CollectiveOp> hinted, HintedOperation(hints));
  if (hinted.has_value()) return *hinted;
  const Json* args = Find(document, "args");
  if (args != nullptr && args->is_array() && !args->empty() && args->front().is_string()) {
    return NcclTestsOperation(args->front().get<std::string>());
  }
  return absl::InvalidArgumentError(
      "it does not say which operation it is of; give --op, as --op all_reduce");
}

// All iterations of one placement, s; empty without -I.
absl::StatusOr<std::vector<double>> Iterations(const Json& result, const std::string& half,
                                               const std::string& where) {
  std::vector<double> times;
  const Json* details = Find(result, absl::StrCat(half, "_per_iter").c_str());
  const Json* list = details == nullptr ? nullptr : Find(*details, "times_us");
  if (list == nullptr || !list->is_array()) return times;
  for (const Json& time : *list) {
    if (!time.is_number() || !(time.get<double>() > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ".", half, "_per_iter.times_us has something that is no time"));
    }
    times.push_back(time.get<double>() * 1e-6);
  }
  return times;
}

absl::Status AddHalf(const Json& result, const char* half, int ranks, MeasuredCase measured,
                     CollectiveCases* cases) {
  const Json* body = Find(result, half);
  if (body == nullptr) return absl::OkStatus();
  if (measured.in_place && !TakesInPlace(measured.op)) return absl::OkStatus();  // one buffer
  const std::string where = absl::StrCat(measured.where, ".", half);
  const char* time = Find(*body, "time") == nullptr ? "cpu_time" : "time";
  PARAM_ASSIGN_OR_RETURN(const double time_us, NumberOf(*body, time, where));
  measured.time_s = time_us * 1e-6;
  if (Find(*body, "nwrong") != nullptr) {
    PARAM_ASSIGN_OR_RETURN(const double wrong, NumberOf(*body, "nwrong", where));
    measured.wrong = wrong >= 0 && wrong < 1e18 ? static_cast<std::int64_t>(wrong) : 1;
  }
  PARAM_ASSIGN_OR_RETURN(measured.times_s, Iterations(result, half, measured.where));
  return cases->Add(measured, ranks);
}

absl::Status AddResult(const Json& result, const std::string& where, CollectiveOp op, int ranks,
                       const std::string& iterations, CollectiveCases* cases) {
  MeasuredCase measured;
  measured.where = where;
  measured.op = op;
  PARAM_ASSIGN_OR_RETURN(const double size, NumberOf(result, "size", where));
  measured.size = size >= 0 && size < 9e18 ? static_cast<std::int64_t>(size) : 0;
  PARAM_ASSIGN_OR_RETURN(measured.dtype, NcclTestsType(TextOf(result, "type")), where);
  if (Reduces(op)) measured.redop = TextOf(result, "redop");
  // A number in a text, padded with blanks.
  if (!absl::SimpleAtoi(TextOf(result, "root"), &measured.root) || measured.root < 0) {
    measured.root = 0;
  }
  measured.statistic = absl::StrCat("mean of ", iterations, " iterations");
  PARAM_RETURN_IF_ERROR(AddHalf(result, "out_of_place", ranks, measured, cases));
  measured.in_place = true;
  return AddHalf(result, "in_place", ranks, measured, cases);
}

absl::StatusOr<Imported> Read(absl::string_view text, const ImportHints& hints) {
  PARAM_ASSIGN_OR_RETURN(const Json document, Parse(text));
  const Json* results = Find(document, "results");
  if (results == nullptr || !results->is_array()) {
    return absl::InvalidArgumentError("it has no list \"results\"");
  }
  PARAM_ASSIGN_OR_RETURN(const CollectiveOp op, OperationOf(document, hints));
  const Fleet fleet = FleetOf(document);
  const int ranks = hints.ranks > 0 ? hints.ranks : static_cast<int>(fleet.ranks.size());
  if (ranks < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("config.devices names ", ranks, " ranks; give --ranks N, 2 at least"));
  }
  const Json* config = Find(document, "config");
  const Json* count = config == nullptr ? nullptr : Find(*config, "iterations");
  const std::string iterations = count != nullptr && count->is_number_integer()
                                     ? absl::StrCat(count->get<std::int64_t>())
                                     : "all";
  CollectiveCases cases;
  std::size_t index = 0;
  for (const Json& result : *results) {
    PARAM_RETURN_IF_ERROR(
        AddResult(result, absl::StrCat("results[", index++, "]"), op, ranks, iterations, &cases));
  }
  // Not its "env": that is the whole environment of a user, tokens and all.
  std::map<std::string, std::string> environment;
  const Json* version = Find(document, "nccl_version");
  if (version != nullptr && version->is_number_integer()) {
    environment["library.nccl"] = absl::StrCat(version->get<std::int64_t>());
  }
  return std::move(cases).Finish(ranks, fleet.hosts, "cuda+nccl", environment);
}

}  // namespace

Importer NcclTestsJsonImporter() {
  return {"nccl-tests-json", "the file that nccl-tests writes with -J", Recognises, Read};
}

}  // namespace param
