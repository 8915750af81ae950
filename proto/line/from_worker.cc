// Lines of a worker: written by it, judged by its agent.

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/line/fields.h"

namespace param::line {
namespace {

// Enough for the largest honest message (labels, facts); memory stays within a few times the line.
constexpr ShapeLimits kShape = {.depth = 4, .separators = 4 * kMaxEntries + 64};

constexpr std::array<absl::string_view, 4> kLevels = {"debug", "info", "warn", "error"};

// Entries beyond the bound are left out: notes are not worth a failed rank.
Json TextMapToJson(const std::map<std::string, std::string>& texts) {
  Json object = Json::object();
  for (const auto& [key, text] : texts) {
    if (object.size() == kMaxEntries) break;
    object[Clip(key, kMaxNameBytes)] = Clip(text, kMaxTextBytes);
  }
  return object;
}

Json ScalarsToJson(const Scalars& scalars) {
  Json object = Json::object();
  for (const auto& [key, value] : scalars) {
    if (object.size() == kMaxEntries) break;
    object[Clip(key, kMaxNameBytes)] = ScalarToJson(value);
  }
  return object;
}

Json LabelsToJson(const Labels& labels) {
  Json object = Json::object();
  for (const auto& [key, value] : labels) object[key] = value;
  return object;
}

std::string NameOf(absl::string_view name) { return std::string(name); }

struct ToJson {
  Json operator()(const Hello& m) const {
    return {{"type", "hello"},
            {"token", Clip(m.token, kMaxTextBytes)},
            {"pid", m.pid},
            {"protocol", m.protocol},
            {"version", Clip(m.version, kMaxTextBytes)}};
  }
  Json operator()(const PhaseBegin& m) const {
    return {{"type", "phase_begin"}, {"phase", NameOf(PhaseName(m.phase))}, {"case", m.case_index}};
  }
  Json operator()(const PhaseEnd& m) const {
    return {{"type", "phase_end"}, {"phase", NameOf(PhaseName(m.phase))}, {"case", m.case_index}};
  }
  Json operator()(const Exchange& m) const {
    return {{"type", "exchange"}, {"round", m.round}, {"data", ToBase64(m.data)}};
  }
  Json operator()(const CaseBegin& m) const {
    return {{"type", "case_begin"}, {"case", m.case_index}};
  }
  Json operator()(const Samples& m) const {
    return {{"type", "samples"},
            {"case", m.case_index},
            {"metric", m.metric},
            {"unit", m.unit},
            {"labels", LabelsToJson(m.labels)},
            {"values", SamplesToBase64(m.values)}};
  }
  Json operator()(const CaseEnd& m) const {
    return {{"type", "case_end"},
            {"case", m.case_index},
            {"status", NameOf(CaseStatusName(m.status))},
            {"reason", Clip(m.reason, kMaxTextBytes)},
            {"scalars", ScalarsToJson(m.scalars)},
            {"info", TextMapToJson(m.info)}};
  }
  Json operator()(const Environment& m) const {
    return {{"type", "environment"}, {"facts", TextMapToJson(m.facts)}};
  }
  Json operator()(const Failure& m) const {
    return {{"type", "failure"},
            {"code", Clip(m.code, kMaxNameBytes)},
            {"phase", NameOf(PhaseName(m.phase))},
            {"cause", Clip(m.cause, kMaxTextBytes)},
            {"address", Clip(m.address, kMaxTextBytes)},
            {"errno", m.error_number},
            {"case", m.case_index}};
  }
  Json operator()(const LogLine& m) const {
    return {{"type", "log"},
            {"level", Clip(m.level, kMaxNameBytes)},
            {"text", Clip(m.text, kMaxLogBytes)}};
  }
  Json operator()(const Done&) const { return {{"type", "done"}}; }
};

Phase ReadPhase(Fields& fields) {
  const absl::StatusOr<Phase> phase = PhaseFromName(fields.Text("phase", kMaxNameBytes));
  if (!phase.ok()) fields.Fail("phase", "unknown");
  return phase.value_or(Phase::kSpawn);
}

CaseStatus ReadCaseStatus(Fields& fields) {
  const absl::StatusOr<CaseStatus> status =
      CaseStatusFromName(fields.Text("status", kMaxNameBytes));
  if (!status.ok()) fields.Fail("status", "unknown");
  return status.value_or(CaseStatus::kFailed);
}

FromWorker ReadHello(Fields& fields) {
  return Hello{.token = fields.Text("token", kMaxTextBytes),
               .pid = fields.Int("pid", 0, std::numeric_limits<int>::max()),
               .protocol = fields.Int32("protocol", 0),
               .version = fields.Text("version", kMaxTextBytes)};
}
FromWorker ReadPhaseBegin(Fields& fields) {
  return PhaseBegin{.phase = ReadPhase(fields), .case_index = fields.CaseIndex(-1)};
}
FromWorker ReadPhaseEnd(Fields& fields) {
  return PhaseEnd{.phase = ReadPhase(fields), .case_index = fields.CaseIndex(-1)};
}
FromWorker ReadExchange(Fields& fields) {
  return Exchange{.round = fields.Unsigned("round"),
                  .data = fields.Bytes("data", kMaxExchangeBytes)};
}
FromWorker ReadCaseBegin(Fields& fields) { return CaseBegin{.case_index = fields.CaseIndex(0)}; }
FromWorker ReadSamples(Fields& fields) {
  return Samples{.case_index = fields.CaseIndex(0),
                 .metric = fields.Name("metric"),
                 .unit = fields.Name("unit"),
                 .labels = fields.LabelMap("labels"),
                 .values = fields.Samples("values")};
}
FromWorker ReadCaseEnd(Fields& fields) {
  return CaseEnd{.case_index = fields.CaseIndex(0),
                 .status = ReadCaseStatus(fields),
                 .reason = fields.Text("reason", kMaxTextBytes),
                 .scalars = fields.ScalarMap("scalars"),
                 .info = fields.TextMap("info", kMaxEntries)};
}
FromWorker ReadEnvironment(Fields& fields) {
  return Environment{.facts = fields.TextMap("facts", kMaxEntries)};
}
FromWorker ReadFailure(Fields& fields) {
  return Failure{.code = fields.Text("code", kMaxNameBytes),
                 .phase = ReadPhase(fields),
                 .cause = fields.Text("cause", kMaxTextBytes),
                 .address = fields.Text("address", kMaxTextBytes),
                 .error_number = fields.Int32("errno", std::numeric_limits<int>::min()),
                 .case_index = fields.CaseIndex(-1)};
}
FromWorker ReadLog(Fields& fields) {
  LogLine log = {.level = fields.Text("level", kMaxNameBytes),
                 .text = fields.Text("text", kMaxLogBytes)};
  if (std::find(kLevels.begin(), kLevels.end(), log.level) == kLevels.end()) {
    fields.Fail("level", "unknown");
  }
  return log;
}
FromWorker ReadDone(Fields&) { return Done{}; }

struct Kind {
  absl::string_view type;
  FromWorker (*read)(Fields& fields);
};
constexpr Kind kKinds[] = {
    {"hello", ReadHello},
    {"phase_begin", ReadPhaseBegin},
    {"phase_end", ReadPhaseEnd},
    {"exchange", ReadExchange},
    {"case_begin", ReadCaseBegin},
    {"samples", ReadSamples},
    {"case_end", ReadCaseEnd},
    {"environment", ReadEnvironment},
    {"failure", ReadFailure},
    {"log", ReadLog},
    {"done", ReadDone},
};

}  // namespace

std::string Encode(const FromWorker& message) {
  const Json json = std::visit(ToJson(), message);
  return absl::StrCat(json.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::StatusOr<FromWorker> DecodeFromWorker(absl::string_view line) {
  if (line.size() > kMaxLineBytes) return absl::InvalidArgumentError("line too long");
  PARAM_ASSIGN_OR_RETURN(const Json json, ParseObject(line, kShape));
  Fields fields(json);
  const std::string type = fields.Text("type", kMaxNameBytes);
  PARAM_RETURN_IF_ERROR(fields.status());
  for (const Kind& kind : kKinds) {
    if (kind.type != type) continue;
    FromWorker message = kind.read(fields);
    PARAM_RETURN_IF_ERROR(fields.status(), type);
    return message;
  }
  return absl::InvalidArgumentError("type: unknown");
}

}  // namespace param::line
