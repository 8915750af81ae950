#include "proto/line/fields.h"

#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/catalog/cases.h"

namespace param::line {
namespace {

bool IsName(absl::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  for (const char c : text) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c)) || c == ',' || c == '=') return false;
  }
  return true;
}

// Keys of facts and notes may hold blanks.
bool IsKey(absl::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes) return false;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

absl::Status CheckShape(absl::string_view line, ShapeLimits limits) {
  int depth = 0;
  std::size_t separators = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == ',' || c == ':' || c == '[' || c == '{') ++separators;
    if (depth > limits.depth) return absl::InvalidArgumentError("nested too deeply");
    if (separators > limits.separators) return absl::InvalidArgumentError("too many values");
  }
  return absl::OkStatus();
}

bool ScalarFromJson(const Json& json, double* value) {
  if (json.is_number()) {
    *value = json.get<double>();
    return true;
  }
  const auto* text = json.get_ptr<const std::string*>();
  if (text == nullptr) return false;
  if (*text == "nan") {
    *value = std::numeric_limits<double>::quiet_NaN();
  } else if (*text == "inf") {
    *value = std::numeric_limits<double>::infinity();
  } else if (*text == "-inf") {
    *value = -std::numeric_limits<double>::infinity();
  } else {
    return false;
  }
  return true;
}

bool ParamFromJson(const Json& json, Value* value) {
  if (json.is_boolean()) {
    *value = json.get<bool>();
  } else if (json.is_number_float()) {
    *value = json.get<double>();
  } else if (json.is_number_unsigned() &&
             json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return false;
  } else if (json.is_number_integer()) {
    *value = json.get<std::int64_t>();
  } else if (json.is_string()) {
    *value = json.get<std::string>();
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<Json> ParseObject(absl::string_view line, ShapeLimits limits) {
  if (const absl::Status shape = CheckShape(line, limits); !shape.ok()) return shape;
  Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("not JSON");
  if (!json.is_object()) return absl::InvalidArgumentError("not a JSON object");
  return json;
}

std::string Clip(absl::string_view text, std::size_t limit) {
  if (text.size() > limit) {
    // A sequence has at most three bytes after its first.
    std::size_t end = limit;
    for (int i = 0; i < 3 && end > 0; ++i) {
      if ((static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U) break;
      --end;
    }
    text = text.substr(0, end);
  }
  return std::string(text);
}

std::string ToBase64(absl::string_view bytes) { return absl::Base64Escape(bytes); }

std::string SamplesToBase64(const std::vector<double>& values) {
  std::string bytes;
  bytes.reserve(values.size() * sizeof(double));
  for (const double value : values) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) {
      bytes.push_back(static_cast<char>(static_cast<unsigned char>(bits >> shift)));
    }
  }
  return ToBase64(bytes);
}

Json ScalarToJson(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

void Fields::Fail(absl::string_view key, absl::string_view what) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(key, ": ", what));
}

const Json* Fields::Find(const char* key) {
  const auto it = object_.find(key);
  if (it != object_.end()) return &*it;
  Fail(key, "missing");
  return nullptr;
}

const Json* Fields::Array(const char* key) {
  const Json* value = Find(key);
  if (value == nullptr || value->is_array()) return value;
  Fail(key, "not a list");
  return nullptr;
}

const Json* Fields::Object(const char* key, std::size_t max_entries) {
  const Json* value = Find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) {
    Fail(key, "not an object");
    return nullptr;
  }
  if (value->size() > max_entries) {
    Fail(key, absl::StrCat(value->size(), " entries, at most ", max_entries));
    return nullptr;
  }
  return value;
}

const std::string* Fields::String(const char* key) {
  const Json* value = Find(key);
  if (value == nullptr) return nullptr;
  const auto* text = value->get_ptr<const std::string*>();
  if (text == nullptr) Fail(key, "not a string");
  return text;
}

std::int64_t Fields::Int(const char* key, std::int64_t min, std::int64_t max) {
  const Json* json = Find(key);
  Value value;
  if (json == nullptr) return min;
  const auto* number = ParamFromJson(*json, &value) ? std::get_if<std::int64_t>(&value) : nullptr;
  if (number == nullptr) {
    Fail(key, "not a whole number");
    return min;
  }
  if (*number < min || *number > max) {
    Fail(key, absl::StrCat(*number, " is outside ", min, "..", max));
    return min;
  }
  return *number;
}

int Fields::Int32(const char* key, int min, int max) {
  return static_cast<int>(Int(key, min, max));
}

std::uint64_t Fields::Unsigned(const char* key) {
  const Json* json = Find(key);
  if (json == nullptr) return 0;
  if (json->is_number_unsigned()) return json->get<std::uint64_t>();
  Fail(key, "not a whole number of at least 0");
  return 0;
}

std::int64_t Fields::CaseIndex(std::int64_t min) {
  return Int("case", min, static_cast<std::int64_t>(kMaxCases) - 1);
}

std::string Fields::Text(const char* key, std::size_t limit) {
  const std::string* text = String(key);
  return text == nullptr ? "" : Clip(*text, limit);
}

std::string Fields::Name(const char* key) {
  const std::string* text = String(key);
  if (text == nullptr) return "";
  if (!IsName(*text)) {
    Fail(key, "not a name");
    return "";
  }
  return *text;
}

bool Fields::DecodeBytes(const char* key, const Json& value, std::size_t limit,
                         std::string* bytes) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr || !absl::Base64Unescape(*text, bytes)) {
    Fail(key, "not base64");
    return false;
  }
  if (bytes->size() > limit) {
    Fail(key, absl::StrCat(bytes->size(), " bytes, at most ", limit));
    return false;
  }
  return true;
}

std::string Fields::Bytes(const char* key, std::size_t limit) {
  const Json* value = Find(key);
  std::string bytes;
  if (value == nullptr || !DecodeBytes(key, *value, limit, &bytes)) return "";
  return bytes;
}

std::vector<double> Fields::Samples(const char* key) {
  const std::string bytes = Bytes(key, kMaxSamplesPerLine * sizeof(double));
  std::vector<double> values;
  if (bytes.size() % sizeof(double) != 0) {
    Fail(key, "not a whole number of samples");
    return values;
  }
  values.reserve(bytes.size() / sizeof(double));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(double)) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(double); ++i) {
      bits |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    values.push_back(std::bit_cast<double>(bits));
  }
  return values;
}

Labels Fields::LabelMap(const char* key) {
  Labels labels;
  const Json* object = Object(key, kMaxLabels);
  if (object == nullptr) return labels;
  for (const auto& [name, json] : object->items()) {
    const auto* text = json.get_ptr<const std::string*>();
    if (!IsName(name) || text == nullptr || !IsName(*text)) {
      Fail(key, "a label is not a pair of names");
      return {};
    }
    labels.emplace(name, *text);
  }
  return labels;
}

Scalars Fields::ScalarMap(const char* key) {
  Scalars scalars;
  const Json* object = Object(key, kMaxEntries);
  if (object == nullptr) return scalars;
  for (const auto& [name, json] : object->items()) {
    double value = 0;
    if (!IsName(name) || !ScalarFromJson(json, &value)) {
      Fail(key, "an entry is not a name and a number");
      return {};
    }
    scalars.emplace(name, value);
  }
  return scalars;
}

std::map<std::string, std::string> Fields::TextMap(const char* key, std::size_t max_entries) {
  std::map<std::string, std::string> texts;
  const Json* object = Object(key, max_entries);
  if (object == nullptr) return texts;
  for (const auto& [name, json] : object->items()) {
    const auto* text = json.get_ptr<const std::string*>();
    if (!IsKey(name) || text == nullptr) {
      Fail(key, "an entry is not a short key and a string");
      return {};
    }
    texts.emplace(name, Clip(*text, kMaxTextBytes));
  }
  return texts;
}

std::vector<std::string> Fields::TextList(const char* key) {
  std::vector<std::string> list;
  const Json* array = Array(key);
  if (array == nullptr) return list;
  for (const Json& json : *array) {
    const auto* text = json.get_ptr<const std::string*>();
    if (text == nullptr) {
      Fail(key, "an entry is not a string");
      return {};
    }
    list.push_back(Clip(*text, kMaxTextBytes));
  }
  return list;
}

std::vector<std::string> Fields::BytesList(const char* key, std::size_t limit) {
  std::vector<std::string> list;
  const Json* array = Array(key);
  if (array == nullptr) return list;
  for (const Json& json : *array) {
    list.emplace_back();
    if (!DecodeBytes(key, json, limit, &list.back())) return {};
  }
  return list;
}

std::vector<int> Fields::IntList(const char* key, int min) {
  std::vector<int> list;
  const Json* array = Array(key);
  if (array == nullptr) return list;
  for (const Json& json : *array) {
    Value value;
    const auto* number = ParamFromJson(json, &value) ? std::get_if<std::int64_t>(&value) : nullptr;
    if (number == nullptr || *number < min || *number > std::numeric_limits<int>::max()) {
      Fail(key, "an entry is out of range");
      return {};
    }
    list.push_back(static_cast<int>(*number));
  }
  return list;
}

Params Fields::ParamMap(const char* key) {
  Params params;
  const Json* object = Object(key, kMaxEntries);
  if (object == nullptr) return params;
  for (const auto& [name, json] : object->items()) {
    Value value;
    if (!ParamFromJson(json, &value)) {
      Fail(key, "an entry is not a number, a switch or a string");
      return {};
    }
    params.emplace(name, std::move(value));
  }
  return params;
}

}  // namespace param::line
