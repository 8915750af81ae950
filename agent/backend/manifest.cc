#include "agent/backend/manifest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "proto/base/status.h"

namespace param {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxManifestBytes = 64 << 10;
constexpr std::size_t kMaxText = 1024;
constexpr std::size_t kMaxList = 256;

absl::Status Wrong(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", what));
}

absl::Status ReadText(const Json& object, const char* key, bool required, std::string* out) {
  const auto found = object.find(key);
  if (found == object.end()) return required ? Wrong(key, "is missing") : absl::OkStatus();
  if (!found->is_string()) return Wrong(key, "must be a string");
  *out = found->get<std::string>();
  if (out->size() > kMaxText) return Wrong(key, "is too long");
  return absl::OkStatus();
}

absl::Status ReadInt(const Json& object, const char* key, int* out) {
  const auto found = object.find(key);
  if (found == object.end()) return Wrong(key, "is missing");
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > 1'000'000) {
    return Wrong(key, "must be a whole number");
  }
  *out = found->get<int>();
  return absl::OkStatus();
}

absl::Status ReadFlag(const Json& object, const char* key, bool* out) {
  const auto found = object.find(key);
  if (found == object.end()) return absl::OkStatus();
  if (!found->is_boolean()) return Wrong(key, "must be true or false");
  *out = found->get<bool>();
  return absl::OkStatus();
}

absl::Status ReadList(const Json& object, const char* key, std::vector<std::string>* out) {
  const auto found = object.find(key);
  if (found == object.end()) return absl::OkStatus();
  if (!found->is_array() || found->size() > kMaxList) return Wrong(key, "must be a short list");
  for (const Json& item : *found) {
    if (!item.is_string() || item.get_ref<const std::string&>().size() > kMaxText) {
      return Wrong(key, "must be a list of short strings");
    }
    out->push_back(item.get<std::string>());
  }
  return absl::OkStatus();
}

bool IsBackendName(const std::string& name) {
  return !name.empty() && name.size() <= 32 &&
         absl::ascii_islower(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const auto u = static_cast<unsigned char>(c);
           return absl::ascii_islower(u) || absl::ascii_isdigit(u) || c == '_';
         });
}

absl::Status CheckManifest(const Manifest& m, const std::filesystem::path& folder) {
  if (!IsBackendName(m.name)) return Wrong("name", "must be lower-case letters, digits and _");
  if (m.name != folder.filename()) {
    return Wrong(
        "name", absl::StrCat("is \"", m.name, "\" in folder \"", folder.filename().string(), "\""));
  }
  if (m.tables.empty()) return Wrong("tables", "must name one table at least");
  for (const std::string& table : m.tables) {
    if (table != "device" && table != "comm" && table != "native") {
      return Wrong("tables", absl::StrCat("unknown table \"", table, "\""));
    }
  }
  if (m.launcher != "direct" && m.launcher != "mpirun") {
    return Wrong("launcher", absl::StrCat("unknown launcher \"", m.launcher, "\""));
  }
  // Only a file beside the manifest: whoever may write there may be loaded, nobody else.
  if (m.object.empty() || m.object.find('/') != std::string::npos || m.object[0] == '.') {
    return Wrong("object", "must be the name of a file beside the manifest");
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> ReadManifest(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxManifestBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.gcount() == 0 && !in.eof())) return absl::UnavailableError("cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxManifestBytes) return absl::InvalidArgumentError("is over 64 KiB");
  PARAM_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(text, path.parent_path().string()));
  std::error_code error;
  if (!std::filesystem::is_regular_file(manifest.object_path, error)) {
    return absl::NotFoundError(absl::StrCat("object: ", manifest.object_path, " is not there"));
  }
  return manifest;
}

// The manifests one level below `folder`, by path.
std::vector<std::filesystem::path> ManifestsIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;  // an entry that cannot be looked at has no manifest for us
    const std::filesystem::path path = it->path() / "manifest.json";
    if (std::filesystem::exists(path, ignored)) found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool Manifest::HasTable(absl::string_view table) const {
  return std::find(tables.begin(), tables.end(), table) != tables.end();
}

bool Manifest::Serves(absl::string_view benchmark) const {
  return std::any_of(benchmarks.begin(), benchmarks.end(),
                     [&](const std::string& one) { return one == "*" || one == benchmark; });
}

const Manifest* InstalledBackends::Find(absl::string_view name) const {
  const auto found = std::find_if(backends.begin(), backends.end(),
                                  [&](const Manifest& m) { return m.name == name; });
  return found == backends.end() ? nullptr : &*found;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text, absl::string_view folder) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("is not a JSON object");
  Manifest m;
  PARAM_RETURN_IF_ERROR(ReadText(json, "name", true, &m.name));
  PARAM_RETURN_IF_ERROR(ReadInt(json, "abi_major", &m.abi_major));
  PARAM_RETURN_IF_ERROR(ReadInt(json, "abi_minor", &m.abi_minor));
  PARAM_RETURN_IF_ERROR(ReadList(json, "tables", &m.tables));
  if (json.contains("preference")) {
    PARAM_RETURN_IF_ERROR(ReadInt(json, "preference", &m.preference));
  }
  PARAM_RETURN_IF_ERROR(ReadFlag(json, "rank_per_device", &m.rank_per_device));
  PARAM_RETURN_IF_ERROR(ReadText(json, "launcher", false, &m.launcher));
  PARAM_RETURN_IF_ERROR(ReadList(json, "benchmarks", &m.benchmarks));
  PARAM_RETURN_IF_ERROR(ReadText(json, "object", true, &m.object));
  PARAM_RETURN_IF_ERROR(ReadList(json, "libraries", &m.libraries));
  PARAM_RETURN_IF_ERROR(ReadList(json, "memory", &m.memory));
  PARAM_RETURN_IF_ERROR(ReadList(json, "streams", &m.streams));
  PARAM_RETURN_IF_ERROR(ReadText(json, "summary", false, &m.summary));
  const std::filesystem::path path{std::string(folder)};
  PARAM_RETURN_IF_ERROR(CheckManifest(m, path));
  m.object_path = (path / m.object).string();
  return m;
}

InstalledBackends FindBackends(absl::Span<const std::string> folders) {
  InstalledBackends all;
  for (const std::string& folder : folders) {
    for (const std::filesystem::path& path : ManifestsIn(folder)) {
      absl::StatusOr<Manifest> manifest = ReadManifest(path);
      if (!manifest.ok()) {
        all.problems.push_back({path.string(), std::string(manifest.status().message())});
      } else if (const Manifest* first = all.Find(manifest->name); first != nullptr) {
        all.problems.push_back(
            {path.string(), absl::StrCat("backend ", manifest->name, " is already installed as ",
                                         first->object_path)});
      } else {
        all.backends.push_back(*std::move(manifest));
      }
    }
  }
  std::sort(all.backends.begin(), all.backends.end(),
            [](const Manifest& a, const Manifest& b) { return a.name < b.name; });
  std::sort(all.problems.begin(), all.problems.end(),
            [](const ManifestProblem& a, const ManifestProblem& b) { return a.path < b.path; });
  return all;
}

}  // namespace param
