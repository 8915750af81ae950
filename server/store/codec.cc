#include "server/store/codec.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"

namespace param {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "samples are stored as they lie");

constexpr int kZstdLevel = 1;  // samples are noise in their low bits: more effort gains nothing

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Calls `read` with the parsed document; what the library throws ends here.
template <typename T, typename Read>
absl::StatusOr<T> Parse(absl::string_view text, absl::string_view what, Read read) {
  try {
    return read(Json::parse(text.begin(), text.end()));
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat(what, ": ", error.what()));
  }
}

void AppendEscaped(absl::string_view text, std::string* out) {
  for (const char c : text) {
    if (c == ',' || c == '=' || c == '%') {
      absl::StrAppend(out, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      out->push_back(c);
    }
  }
}

absl::StatusOr<std::string> Unescape(absl::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    if (digits.size() != 2 || !absl::ascii_isxdigit(static_cast<unsigned char>(digits[0])) ||
        !absl::ascii_isxdigit(static_cast<unsigned char>(digits[1]))) {
      return absl::DataLossError(absl::StrCat("labels: bad escape in ", text));
    }
    out += absl::HexStringToBytes(digits);
    i += 2;
  }
  return out;
}

}  // namespace

std::string LabelsText(const line::Labels& labels) {
  std::string out;
  for (const auto& [key, value] : labels) {
    if (!out.empty()) out.push_back(',');
    AppendEscaped(key, &out);
    out.push_back('=');
    AppendEscaped(value, &out);
  }
  return out;
}

absl::StatusOr<line::Labels> ParseLabels(absl::string_view text) {
  line::Labels labels;
  if (text.empty()) return labels;
  for (const absl::string_view pair : absl::StrSplit(text, ',')) {
    const std::size_t equals = pair.find('=');
    if (equals == absl::string_view::npos) {
      return absl::DataLossError(absl::StrCat("labels: no = in ", pair));
    }
    PARAM_ASSIGN_OR_RETURN(std::string key, Unescape(pair.substr(0, equals)));
    PARAM_ASSIGN_OR_RETURN(std::string value, Unescape(pair.substr(equals + 1)));
    labels.emplace(std::move(key), std::move(value));
  }
  return labels;
}

std::string SpecJson(const JobSpec& spec) {
  return Dump(
      {{"benchmark", spec.benchmark},
       {"params", std::map<std::string, std::string>(spec.params.begin(), spec.params.end())},
       {"nodes", spec.nodes},
       {"ranks_per_node", spec.ranks_per_node},
       {"backend", spec.backend},
       {"node_names", spec.node_names},
       {"selector", spec.selector},
       {"priority", spec.priority},
       {"timeout_ns", spec.timeout_ns},
       {"retries", spec.retries},
       {"name", spec.name},
       {"no_wait", spec.no_wait},
       {"phase_deadlines_ns", spec.phase_deadlines_ns},
       {"fake_script", spec.fake_script},
       {"source", spec.source},
       {"interface", spec.interface}});
}

absl::StatusOr<JobSpec> ParseSpec(absl::string_view json) {
  return Parse<JobSpec>(json, "job specification", [](const Json& in) {
    JobSpec spec;
    spec.benchmark = in.at("benchmark").get<std::string>();
    for (const auto& [name, text] : in.at("params").items()) {
      spec.params.emplace(name, text.get<std::string>());
    }
    spec.nodes = in.at("nodes").get<int>();
    spec.ranks_per_node = in.at("ranks_per_node").get<int>();
    spec.backend = in.at("backend").get<std::string>();
    spec.node_names = in.at("node_names").get<std::vector<std::string>>();
    spec.selector = in.at("selector").get<std::map<std::string, std::string>>();
    spec.priority = in.at("priority").get<int>();
    spec.timeout_ns = in.at("timeout_ns").get<std::int64_t>();
    spec.retries = in.at("retries").get<int>();
    spec.name = in.at("name").get<std::string>();
    spec.no_wait = in.at("no_wait").get<bool>();
    spec.phase_deadlines_ns =
        in.at("phase_deadlines_ns").get<std::map<std::string, std::int64_t>>();
    spec.fake_script = in.at("fake_script").get<std::string>();
    spec.source = in.at("source").get<std::string>();
    spec.interface = in.value("interface", "");  // later than the first jobs
    return spec;
  });
}

std::string FailureJson(const Failure& failure) {
  if (failure == Failure()) return "{}";
  return Dump({{"code", failure.code},
               {"phase", failure.phase},
               {"node", failure.node},
               {"rank", failure.rank},
               {"cause", failure.cause},
               {"address", failure.address},
               {"errno", failure.error_number}});
}

absl::StatusOr<Failure> ParseFailure(absl::string_view json) {
  return Parse<Failure>(json, "failure", [](const Json& in) {
    Failure failure;
    if (in.empty()) return failure;
    failure.code = in.at("code").get<std::string>();
    failure.phase = in.at("phase").get<std::string>();
    failure.node = in.at("node").get<std::string>();
    failure.rank = in.at("rank").get<int>();
    failure.cause = in.at("cause").get<std::string>();
    failure.address = in.at("address").get<std::string>();
    failure.error_number = in.at("errno").get<int>();
    return failure;
  });
}

std::string RanksJson(const std::vector<RankPlace>& ranks) {
  Json out = Json::array();
  for (const RankPlace& place : ranks) {
    out.push_back({{"rank", place.rank}, {"node", place.node}, {"local_rank", place.local_rank}});
  }
  return Dump(out);
}

absl::StatusOr<std::vector<RankPlace>> ParseRanks(absl::string_view json) {
  return Parse<std::vector<RankPlace>>(json, "ranks", [](const Json& in) {
    std::vector<RankPlace> ranks;
    for (const Json& item : in) {
      ranks.push_back({item.at("rank").get<int>(), item.at("node").get<std::string>(),
                       item.at("local_rank").get<int>()});
    }
    return ranks;
  });
}

std::string NamesJson(const std::vector<std::string>& names) { return Dump(names); }

absl::StatusOr<std::vector<std::string>> ParseNames(absl::string_view json) {
  return Parse<std::vector<std::string>>(
      json, "names", [](const Json& in) { return in.get<std::vector<std::string>>(); });
}

std::string MapJson(const std::map<std::string, std::string>& map) { return Dump(Json(map)); }

absl::StatusOr<std::map<std::string, std::string>> ParseMap(absl::string_view json) {
  using Map = std::map<std::string, std::string>;
  return Parse<Map>(json, "map", [](const Json& in) { return in.get<Map>(); });
}

absl::StatusOr<std::string> PackDoubles(const std::vector<double>& values) {
  const std::size_t bytes = values.size() * sizeof(double);
  std::string out(ZSTD_compressBound(bytes), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), values.data(), bytes, kZstdLevel);
  if (ZSTD_isError(size) != 0) {
    return absl::InternalError(absl::StrCat("samples: ", ZSTD_getErrorName(size)));
  }
  out.resize(size);
  return out;
}

absl::StatusOr<std::vector<double>> UnpackDoubles(absl::string_view packed, std::int64_t count) {
  // The frame's own size is checked first, so that a damaged row cannot ask for any memory.
  const auto bytes = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (count < 0 || bytes != static_cast<std::uint64_t>(count) * sizeof(double)) {
    return absl::DataLossError(
        absl::StrCat("samples: the row says ", count, " values, its data does not hold as many"));
  }
  std::vector<double> values(static_cast<std::size_t>(count));
  const std::size_t size =
      ZSTD_decompress(values.data(), values.size() * sizeof(double), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0 || size != bytes) {
    return absl::DataLossError("samples: the data is damaged");
  }
  return values;
}

}  // namespace param
