#include "proto/convert/json_read.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/convert/json.h"
#include "proto/convert/names.h"

namespace param {
namespace {

// Reads the values of one object; the first wrong type is kept as the error, later reads give
// defaults. nlohmann::json throws on wrong types, so every type is asked for first.
class Reader {
 public:
  Reader(const Json& object, std::string where, absl::Status* status)
      : object_(object), where_(std::move(where)), status_(status) {
    if (!object_.is_object()) Wrong("", "an object");
  }

  std::string Text(const char* key) const {
    const Json* value = Find(key);
    if (value == nullptr) return "";
    if (value->is_string()) return value->get<std::string>();
    Wrong(key, "a text");
    return "";
  }
  std::int64_t Int(const char* key) const {
    const Json* value = Find(key);
    if (value == nullptr) return 0;
    if (value->is_number_integer()) return value->get<std::int64_t>();
    Wrong(key, "a whole number");
    return 0;
  }
  int SmallInt(const char* key) const {
    const std::int64_t value = Int(key);
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
      Wrong(key, "a number of 32 bits");
      return 0;
    }
    return static_cast<int>(value);
  }
  bool Bool(const char* key) const {
    const Json* value = Find(key);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    Wrong(key, "true or false");
    return false;
  }
  double Number(const char* key) const { return NumberOf(Find(key), key); }
  double NumberOf(const Json* value, const char* key) const {
    if (value == nullptr || value->is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (value->is_number()) return value->get<double>();
    Wrong(key, "a number or null");
    return 0;
  }
  // Null when missing or null.
  const Json* Object(const char* key) const { return Nested(key, &Json::is_object, "an object"); }
  const Json* List(const char* key) const { return Nested(key, &Json::is_array, "a list"); }

  template <typename Repeated>
  void Texts(const char* key, Repeated* out) const {
    const Json* list = List(key);
    if (list == nullptr) return;
    for (const Json& item : *list) {
      if (item.is_string()) {
        *out->Add() = item.get<std::string>();
      } else {
        Wrong(key, "a list of texts");
      }
    }
  }
  template <typename Map>
  void TextMap(const char* key, Map* out) const {
    const Json* object = Object(key);
    if (object == nullptr) return;
    for (const auto& [name, value] : object->items()) {
      if (value.is_string()) {
        (*out)[name] = value.template get<std::string>();
      } else {
        Wrong(key, "an object of texts");
      }
    }
  }

  const std::string& where() const { return where_; }
  absl::Status* status() const { return status_; }
  void Wrong(absl::string_view key, absl::string_view what) const {
    if (!status_->ok()) return;
    *status_ = absl::InvalidArgumentError(
        absl::StrCat(where_, key.empty() ? "" : ".", key, " is not ", what));
  }

 private:
  const Json* Find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto it = object_.find(key);
    return it == object_.end() ? nullptr : &*it;
  }
  const Json* Nested(const char* key, bool (Json::*is)() const noexcept, const char* what) const {
    const Json* value = Find(key);
    if (value == nullptr || value->is_null()) return nullptr;
    if ((value->*is)()) return value;
    Wrong(key, what);
    return nullptr;
  }

  const Json& object_;
  const std::string where_;
  absl::Status* const status_;
};

void ReadFailure(const Reader& in, v1::Failure* out) {
  out->set_code(in.Text("code"));
  out->set_phase(in.Text("phase"));
  out->set_node(in.Text("node"));
  out->set_rank(in.SmallInt("rank"));
  out->set_cause(in.Text("cause"));
  out->set_address(in.Text("address"));
  out->set_error_number(in.SmallInt("errno"));
}

void ReadTimeline(const Reader& in, v1::Timeline* out) {
  out->set_submitted(in.Int("submitted"));
  out->set_placed(in.Int("placed"));
  out->set_spawned(in.Int("spawned"));
  out->set_rendezvous(in.Int("rendezvous"));
  out->set_comm_init(in.Int("comm_init"));
  out->set_warmup(in.Int("warmup"));
  out->set_first_timed(in.Int("first_timed"));
  out->set_finished(in.Int("finished"));
}

void ReadRequest(const Reader& in, v1::JobSpec* out) {
  in.TextMap("params", out->mutable_params());
  out->set_nodes(in.SmallInt("nodes"));
  out->set_ranks_per_node(in.SmallInt("ranks_per_node"));
  out->set_backend(in.Text("backend"));
  in.Texts("node_names", out->mutable_node_names());
}

void ReadJob(const Reader& in, v1::Job* out) {
  out->set_job_id(in.Text("id"));
  out->mutable_spec()->set_name(in.Text("name"));
  out->mutable_spec()->set_benchmark(in.Text("benchmark"));
  out->mutable_spec()->set_source(in.Text("source"));
  out->set_benchmark_version(in.SmallInt("benchmark_version"));
  const absl::StatusOr<v1::JobState> state = WireJobStateFromName(in.Text("state"));
  if (state.ok()) {
    out->set_state(*state);
  } else {
    in.Wrong("state", "a state of a job");
  }
  out->set_reason(in.Text("reason"));
  out->set_owner(in.Text("owner"));
  in.Texts("nodes", out->mutable_nodes());
  out->set_ranks(in.SmallInt("ranks"));
  out->set_backend(in.Text("backend"));
  out->set_attempt(in.SmallInt("attempt"));
  out->set_cases_total(in.SmallInt("cases_total"));
  out->set_cases_done(in.SmallInt("cases_done"));
  out->set_oversubscribed(in.Bool("oversubscribed"));
  if (const Json* failure = in.Object("failure")) {
    ReadFailure(Reader(*failure, "job.failure", in.status()), out->mutable_failure());
  }
  if (const Json* timeline = in.Object("timeline")) {
    ReadTimeline(Reader(*timeline, "job.timeline", in.status()), out->mutable_timeline());
  }
  if (const Json* request = in.Object("request")) {
    ReadRequest(Reader(*request, "job.request", in.status()), out->mutable_spec());
  }
}

void ReadSummary(const Reader& in, v1::Measurement* out) {
  out->set_unit(in.Text("unit"));
  v1::Summary* summary = out->mutable_summary();
  summary->set_n(in.Int("n"));
  summary->set_min(in.Number("min"));
  summary->set_p50(in.Number("p50"));
  summary->set_p75(in.Number("p75"));
  summary->set_p95(in.Number("p95"));
  summary->set_p99(in.Number("p99"));
  summary->set_max(in.Number("max"));
  summary->set_mean(in.Number("mean"));
  summary->set_stdev(in.Number("stdev"));
  summary->set_slowest_rank(in.SmallInt("slowest_rank"));
  const Json* interval = in.List("ci95");
  if (interval == nullptr) return;
  if (interval->size() != 2) return in.Wrong("ci95", "a list of two numbers");
  summary->set_ci95_low(in.NumberOf(&(*interval)[0], "ci95"));
  summary->set_ci95_high(in.NumberOf(&(*interval)[1], "ci95"));
}

void ReadMeasurements(const Reader& in, int rank, v1::CaseResult* out) {
  if (const Json* metrics = in.Object("metrics")) {
    for (const auto& [name, value] : metrics->items()) {
      v1::Measurement* m = out->add_measurements();
      m->set_rank(rank);
      m->set_metric(name);
      ReadSummary(Reader(value, absl::StrCat(in.where(), ".metrics.", name), in.status()), m);
    }
  }
  const Json* breakdown = in.List("breakdown");
  if (breakdown == nullptr) return;
  for (const Json& item : *breakdown) {
    const Reader reader(item, absl::StrCat(in.where(), ".breakdown"), in.status());
    v1::Measurement* m = out->add_measurements();
    m->set_rank(rank);
    m->set_metric(reader.Text("metric"));
    reader.TextMap("labels", m->mutable_labels());
    ReadSummary(reader, m);
  }
}

v1::CaseStatus StatusOf(const Reader& in) {
  const std::string name = in.Text("status");
  if (name.empty()) return v1::CASE_STATUS_UNSPECIFIED;
  const absl::StatusOr<v1::CaseStatus> status = WireCaseStatusFromName(name);
  if (!status.ok()) in.Wrong("status", "a status of a case");
  return status.ok() ? *status : v1::CASE_STATUS_UNSPECIFIED;
}

void ReadParams(const Reader& in, v1::CaseResult* out) {
  const Json* params = in.Object("params");
  if (params == nullptr) return;
  for (const auto& [name, value] : params->items()) {
    v1::ParamValue& param = (*out->mutable_params())[name];
    if (value.is_number_integer()) {
      param.set_integer(value.get<std::int64_t>());
    } else if (value.is_number()) {
      param.set_number(value.get<double>());
    } else if (value.is_boolean()) {
      param.set_boolean(value.get<bool>());
    } else if (value.is_string()) {
      param.set_text(value.get<std::string>());
    } else {
      in.Wrong("params", "an object of plain values");
    }
  }
}

void ReadCase(const Reader& in, v1::CaseResult* out) {
  out->set_case_id(in.Text("case"));
  out->set_case_index(in.SmallInt("index"));
  ReadParams(in, out);
  out->set_set_row(in.Text("set_row"));
  out->set_application(in.Text("application"));
  out->set_status(StatusOf(in));
  out->set_reason(in.Text("reason"));
  in.TextMap("info", out->mutable_info());
  ReadMeasurements(in, -1, out);
  const Json* ranks = in.List("ranks");
  if (ranks == nullptr) return;
  for (const Json& item : *ranks) {
    const Reader reader(item, absl::StrCat(in.where(), ".ranks"), in.status());
    v1::RankStatus* rank = out->add_ranks();
    rank->set_rank(reader.SmallInt("rank"));
    rank->set_node(reader.Text("node"));
    rank->set_status(StatusOf(reader));
    rank->set_reason(reader.Text("reason"));
    ReadMeasurements(reader, rank->rank(), out);
  }
}

}  // namespace

absl::StatusOr<v1::GetJobResponse> ReadJobDocument(absl::string_view text) {
  const Json document = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return absl::InvalidArgumentError("it is no JSON document");
  absl::Status status;
  const Reader top(document, "document", &status);
  v1::GetJobResponse out;
  const Json* job = top.Object("job");
  if (job == nullptr && status.ok()) {
    return absl::InvalidArgumentError("it has no \"job\": it is no job that -o json wrote");
  }
  if (job != nullptr) ReadJob(Reader(*job, "job", &status), out.mutable_job());
  if (const Json* cases = top.List("cases")) {
    for (const Json& item : *cases) {
      const std::string where = absl::StrCat("cases[", out.cases_size(), "]");
      ReadCase(Reader(item, where, &status), out.add_cases());
    }
  }
  if (const Json* environment = top.List("environment")) {
    for (const Json& item : *environment) {
      const Reader reader(item, "environment", &status);
      v1::RankEnvironment* rank = out.add_environment();
      rank->set_rank(reader.SmallInt("rank"));
      rank->set_node(reader.Text("node"));
      reader.TextMap("facts", rank->mutable_facts());
    }
  }
  if (!status.ok()) return status;
  return out;
}

}  // namespace param
