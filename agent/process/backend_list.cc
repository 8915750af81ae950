#include "agent/process/backend_list.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace param::agent {
namespace {

using Json = nlohmann::json;

// The string at `key`, or "".
std::string TextAt(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

absl::StatusOr<BackendFilter> ParseBackendFilter(absl::string_view text) {
  BackendFilter filter;
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    if (word.size() < 2 || (word[0] != '+' && word[0] != '-')) {
      return absl::InvalidArgumentError(
          absl::StrCat("--backends: \"", word, "\" is neither +NAME nor -NAME"));
    }
    (word[0] == '+' ? filter.only : filter.without).insert(std::string(word.substr(1)));
  }
  return filter;
}

BackendList::BackendList(std::vector<std::string> folders, BackendFilter filter, Parts parts)
    : folders_(std::move(folders)), filter_(std::move(filter)), parts_(parts) {}

void BackendList::ReadManifests() {
  entries_.clear();
  const InstalledBackends installed = FindBackends(folders_);
  for (const Manifest& manifest : installed.backends) {
    Entry entry;
    entry.status.name = manifest.name;
    entry.status.installed = true;
    entry.status.tables = manifest.tables;
    entry.status.benchmarks = manifest.benchmarks;
    entry.status.streams = manifest.streams;
    entry.status.preference = manifest.preference;
    entry.status.rank_per_device = manifest.rank_per_device;
    entry.path = manifest.object_path;
    entry.is_allowed = filter_.Allows(manifest.name);
    if (!entry.is_allowed) entry.status.reason = "switched off by --backends";
    entries_[manifest.name] = std::move(entry);
  }
  for (const ManifestProblem& problem : installed.problems) {
    parts_.log->Warn("malformed manifest", {F("path", problem.path), F("reason", problem.reason)});
    Entry entry;
    entry.status.name = problem.path;
    entry.status.reason = problem.reason;
    entry.is_allowed = false;
    entries_[problem.path] = std::move(entry);
  }
}

void BackendList::ProbeAll(std::function<void()> done) {
  ReadManifests();
  auto left = std::make_shared<std::size_t>(1);  // one for this loop
  const auto finish = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (auto& [name, entry] : entries_) {
    if (!entry.is_allowed) continue;
    ++*left;
    parts_.prober->Probe(entry.status, entry.path, [this, finish](BackendStatus status) {
      parts_.log->Info("backend probed",
                       {F("backend", status.name), F("usable", status.usable ? "yes" : "no"),
                        F("devices", status.devices), F("reason", status.reason)});
      entries_[status.name].status = std::move(status);
      finish();
    });
  }
  parts_.reactor->Post(finish);
}

std::vector<BackendStatus> BackendList::statuses() const {
  std::vector<BackendStatus> all;
  for (const auto& [name, entry] : entries_) all.push_back(entry.status);
  return all;
}

std::map<std::string, std::string> BackendList::libraries() const {
  std::map<std::string, std::string> all;
  for (const auto& [name, entry] : entries_) {
    const Json describe = Json::parse(entry.status.describe_json, nullptr, false);
    if (!describe.is_object() || !describe.contains("libraries")) continue;
    const Json& libraries = describe["libraries"];
    if (!libraries.is_object()) continue;
    for (const auto& [library, version] : libraries.items()) {
      if (version.is_string() && all.size() < 256) all[library] = version.get<std::string>();
    }
  }
  return all;
}

std::map<std::string, std::string> BackendList::accelerator() const {
  for (const auto& [name, entry] : entries_) {
    if (!entry.status.rank_per_device || !entry.status.usable) continue;
    const Json describe = Json::parse(entry.status.describe_json, nullptr, false);
    if (!describe.is_object() || !describe.contains("devices")) continue;
    const Json& devices = describe["devices"];
    if (!devices.is_array() || devices.empty()) continue;
    const std::map<std::string, std::string> known = libraries();
    const auto driver = known.find("driver");
    return {{"name", TextAt(devices[0], "name")},
            {"driver", driver == known.end() ? "" : driver->second}};
  }
  return {};
}

absl::StatusOr<std::string> BackendList::Path(const std::string& name) const {
  const auto entry = entries_.find(name);
  if (entry == entries_.end() || !entry->second.status.installed) {
    return absl::NotFoundError(absl::StrCat("backend ", name, " is not installed on this node"));
  }
  if (!entry->second.status.usable) {
    return absl::FailedPreconditionError(
        absl::StrCat("backend ", name, " is not usable here: ", entry->second.status.reason));
  }
  return entry->second.path;
}

int BackendList::Devices(const std::string& name) const {
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? 1 : std::max(entry->second.status.devices, 1);
}

void BackendList::Suspect(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.is_pending || !found->second.is_allowed) return;
  found->second.is_pending = true;
  // The failed ranks leave their devices first.
  parts_.reactor->After(kProbeDelay, [this, name] {
    Entry& entry = entries_.at(name);
    parts_.prober->Probe(entry.status, entry.path, [this, name](BackendStatus status) {
      Entry& probed = entries_.at(name);
      const bool is_changed = !(probed.status == status);
      probed.status = std::move(status);
      if (is_changed) {
        parts_.log->Warn("a backend has changed",
                         {F("backend", name), F("usable", probed.status.usable ? "yes" : "no"),
                          F("reason", probed.status.reason)});
      }
      parts_.reactor->After(kProbeAgainEvery,
                            [this, name] { entries_.at(name).is_pending = false; });
      if (is_changed && changed_) changed_();
    });
  });
}

}  // namespace param::agent
