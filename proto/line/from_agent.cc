// Lines of an agent to its workers. A worker trusts its agent; reading is total all the same.

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/catalog/cases.h"
#include "proto/line/fields.h"

namespace param::line {
namespace {

constexpr ShapeLimits kShape = {.depth = 6, .separators = kMaxAgentLineBytes};

Json ParamsToJson(const Params& params) {
  Json object = Json::object();
  for (const auto& [name, value] : params) {
    object[name] = std::visit([](const auto& held) { return Json(held); }, value);
  }
  return object;
}

Json CasesToJson(const std::vector<AssignedCase>& cases) {
  Json array = Json::array();
  for (const AssignedCase& one : cases) {
    array.push_back({{"case", one.index}, {"id", one.id}, {"params", ParamsToJson(one.params)}});
  }
  return array;
}

Json DataToJson(const std::vector<std::string>& data) {
  Json array = Json::array();
  for (const std::string& bytes : data) array.push_back(ToBase64(bytes));
  return array;
}

// Json(container), so that empty ones become [] and {} whatever they hold.
Json ListToJson(const std::vector<std::string>& list) {
  Json array = Json::array();
  for (const std::string& text : list) array.push_back(text);
  return array;
}

Json CpusToJson(const std::vector<int>& cpus) {
  Json array = Json::array();
  for (const int cpu : cpus) array.push_back(cpu);
  return array;
}

Json MapToJson(const std::map<std::string, std::string>& map) {
  Json object = Json::object();
  for (const auto& [key, text] : map) object[key] = text;
  return object;
}

struct ToJson {
  Json operator()(const Assignment& m) const {
    return {{"type", "assignment"},
            {"job", m.job_id},
            {"attempt", m.attempt},
            {"benchmark", m.benchmark},
            {"benchmark_version", m.benchmark_version},
            {"rank", m.rank},
            {"ranks", m.ranks},
            {"local_rank", m.local_rank},
            {"local_ranks", m.local_ranks},
            {"rank_nodes", ListToJson(m.rank_nodes)},
            {"device_backend", m.device_backend},
            {"device_backend_path", m.device_backend_path},
            {"comm_backend_paths", ListToJson(m.comm_backend_paths)},
            {"device_index", m.device_index},
            {"cpus", CpusToJson(m.cpus)},
            {"threads", m.threads},
            {"attachments", MapToJson(m.attachments)},
            {"fake_script", m.fake_script},
            {"cases", CasesToJson(m.cases)}};
  }
  Json operator()(const ExchangeReply& m) const {
    return {{"type", "exchange_reply"}, {"round", m.round}, {"data", DataToJson(m.data)}};
  }
  Json operator()(const Cancel& m) const {
    return {{"type", "cancel"}, {"reason", Clip(m.reason, kMaxTextBytes)}};
  }
  Json operator()(const Abort& m) const {
    return {{"type", "abort"}, {"reason", Clip(m.reason, kMaxTextBytes)}};
  }
  Json operator()(const Ack& m) const { return {{"type", "ack"}, {"lines", m.lines}}; }
};

std::vector<AssignedCase> ReadCases(Fields& fields) {
  std::vector<AssignedCase> cases;
  const Json* array = fields.Array("cases");
  if (array == nullptr) return cases;
  if (array->size() > kMaxCases) {
    fields.Fail("cases", "too many");
    return cases;
  }
  for (const Json& json : *array) {
    if (!json.is_object()) {
      fields.Fail("cases", "an entry is not an object");
      return {};
    }
    Fields one(json);
    cases.push_back({.index = one.CaseIndex(0),
                     .id = one.Text("id", kMaxTextBytes),
                     .params = one.ParamMap("params")});
    if (!one.status().ok()) {
      fields.Fail("cases", absl::StrCat(one.status().message()));
      return {};
    }
  }
  return cases;
}

FromAgent ReadAssignment(Fields& fields) {
  Assignment m;
  m.job_id = fields.Text("job", kMaxTextBytes);
  m.attempt = fields.Int32("attempt", 0);
  m.benchmark = fields.Text("benchmark", kMaxTextBytes);
  m.benchmark_version = fields.Int32("benchmark_version", 0);
  m.ranks = fields.Int32("ranks", 1);
  m.rank = fields.Int32("rank", 0, m.ranks - 1);
  m.local_ranks = fields.Int32("local_ranks", 1, m.ranks);
  m.local_rank = fields.Int32("local_rank", 0, m.local_ranks - 1);
  m.rank_nodes = fields.TextList("rank_nodes");
  m.device_backend = fields.Text("device_backend", kMaxTextBytes);
  m.device_backend_path = fields.Text("device_backend_path", kMaxTextBytes);
  m.comm_backend_paths = fields.TextList("comm_backend_paths");
  m.device_index = fields.Int32("device_index", 0);
  m.cpus = fields.IntList("cpus", 0);
  m.threads = fields.Int32("threads", 1);
  m.attachments = fields.TextMap("attachments", kMaxEntries);
  m.fake_script = fields.Text("fake_script", kMaxTextBytes);
  m.cases = ReadCases(fields);
  return m;
}
FromAgent ReadExchangeReply(Fields& fields) {
  return ExchangeReply{.round = fields.Unsigned("round"),
                       .data = fields.BytesList("data", kMaxExchangeBytes)};
}
FromAgent ReadCancel(Fields& fields) {
  return Cancel{.reason = fields.Text("reason", kMaxTextBytes)};
}
FromAgent ReadAbort(Fields& fields) {
  return Abort{.reason = fields.Text("reason", kMaxTextBytes)};
}
FromAgent ReadAck(Fields& fields) { return Ack{.lines = fields.Unsigned("lines")}; }

struct Kind {
  absl::string_view type;
  FromAgent (*read)(Fields& fields);
};
constexpr Kind kKinds[] = {
    {"assignment", ReadAssignment},
    {"exchange_reply", ReadExchangeReply},
    {"cancel", ReadCancel},
    {"abort", ReadAbort},
    {"ack", ReadAck},
};

}  // namespace

std::string Encode(const FromAgent& message) {
  const Json json = std::visit(ToJson(), message);
  return absl::StrCat(json.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::StatusOr<FromAgent> DecodeFromAgent(absl::string_view line) {
  if (line.size() > kMaxAgentLineBytes) return absl::InvalidArgumentError("line too long");
  PARAM_ASSIGN_OR_RETURN(const Json json, ParseObject(line, kShape));
  Fields fields(json);
  const std::string type = fields.Text("type", kMaxNameBytes);
  PARAM_RETURN_IF_ERROR(fields.status());
  for (const Kind& kind : kKinds) {
    if (kind.type != type) continue;
    FromAgent message = kind.read(fields);
    PARAM_RETURN_IF_ERROR(fields.status(), type);
    return message;
  }
  return absl::InvalidArgumentError("type: unknown");
}

}  // namespace param::line
