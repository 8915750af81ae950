#include "agent/backends/fake/script.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace param::fake {
namespace {

using Json = nlohmann::json;

constexpr const char* kPoints[] = {"spawn",  "comm_init", "case",    "verify",
                                   "warmup", "timed",     "teardown"};
constexpr const char* kKinds[] = {"crash",   "hang",  "exit",      "wrong",
                                  "garbage", "flood", "fill_disk", "error"};

template <std::size_t N>
bool IsOneOf(const std::string& word, const char* const (&words)[N]) {
  for (const char* one : words) {
    if (word == one) return true;
  }
  return false;
}

// A wrong type throws; ParseScript catches.
Fault ReadFault(const Json& json) {
  Fault fault;
  fault.at = json.at("at").get<std::string>();
  fault.kind = json.at("kind").get<std::string>();
  fault.rank = json.value("rank", fault.rank);
  fault.after = json.value("after", fault.after);
  fault.code = json.value("code", fault.code);
  fault.text = json.value("text", fault.text);
  fault.count = json.value("count", fault.count);
  fault.bytes = json.value("bytes", fault.bytes);
  return fault;
}

Script ReadScript(const Json& json) {
  Script script;
  if (json.contains("latency_ns")) script.latency_ns = json.at("latency_ns").get<double>();
  script.jitter_ns = json.value("jitter_ns", 0.0);
  script.real_time = json.value("real_time", false);
  if (json.contains("rank_latency_ns")) {
    for (const auto& [rank, latency] : json.at("rank_latency_ns").items()) {
      script.rank_latency_ns[std::stoi(rank)] = latency.get<double>();
    }
  }
  if (json.contains("faults")) {
    for (const Json& fault : json.at("faults")) script.faults.push_back(ReadFault(fault));
  }
  return script;
}

bool IsTime(double ns) { return std::isfinite(ns) && ns >= 0 && ns <= 1e15; }

std::int32_t CheckScript(const Script& script, param_error* err) {
  bool times = IsTime(script.latency_ns.value_or(0)) && IsTime(script.jitter_ns);
  for (const auto& [rank, latency] : script.rank_latency_ns) times &= IsTime(latency);
  if (!times) return kit::Fail(err, kit::kInvalidArgument, "script: a time is out of range");
  for (const Fault& fault : script.faults) {
    if (!IsOneOf(fault.at, kPoints)) {
      return kit::Fail(err, kit::kInvalidArgument, "script: no point \"%s\"", fault.at.c_str());
    }
    if (!IsOneOf(fault.kind, kKinds)) {
      return kit::Fail(err, kit::kInvalidArgument, "script: no fault \"%s\"", fault.kind.c_str());
    }
    if (fault.code < kit::kCancelled || fault.code > kit::kDataLoss) {
      return kit::Fail(err, kit::kInvalidArgument, "script: no error code %d", fault.code);
    }
  }
  return kit::kOk;
}

}  // namespace

std::optional<double> Script::LatencyNs(int rank) const {
  const auto own = rank_latency_ns.find(rank);
  if (own != rank_latency_ns.end()) return own->second;
  // With times for some ranks only, the others still need a clock of the same kind.
  if (!latency_ns && !rank_latency_ns.empty()) return 0.0;
  return latency_ns;
}

std::int32_t ParseScript(const char* text, Script* out, param_error* err) {
  *out = Script();
  if (text == nullptr || text[0] == '\0') return kit::kOk;
  try {
    *out = ReadScript(Json::parse(text));
  } catch (const std::exception& e) {
    return kit::Fail(err, kit::kInvalidArgument, "script: %s", e.what());
  }
  return CheckScript(*out, err);
}

}  // namespace param::fake
