#pragma once
// The backends of this node: what is installed (manifests), what is allowed, what works (probes).

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/backend/manifest.h"
#include "agent/core/agent.h"
#include "agent/process/backend_prober.h"
#include "agent/process/reactor.h"
#include "proto/base/log.h"

namespace param::agent {

// "+x,-y": with any +NAME only those are used; -NAME takes one away.
struct BackendFilter {
  std::set<std::string> only, without;
  bool Allows(const std::string& name) const {
    return !without.contains(name) && (only.empty() || only.contains(name));
  }
};
absl::StatusOr<BackendFilter> ParseBackendFilter(absl::string_view text);

// On the reactor's thread.
class BackendList final : public BackendPaths {
 public:
  struct Parts {  // all outlive this
    Reactor* reactor;
    BackendProber* prober;
    const Log* log;
  };
  // `folders` in order of preference.
  BackendList(std::vector<std::string> folders, BackendFilter filter, Parts parts);

  // Reads the manifests and probes every allowed backend at once; `done` when all have answered.
  void ProbeAll(std::function<void()> done);
  // Called whenever a later probe has changed something.
  void SetChanged(std::function<void()> changed) { changed_ = std::move(changed); }

  // By name; malformed manifests are listed too, by their path, with the reason.
  std::vector<BackendStatus> statuses() const;

  // Name to version of the libraries that the backends found.
  std::map<std::string, std::string> libraries() const;
  // Of the first device of a kind that is no CPU: {"name", "driver"}; empty where there is none.
  std::map<std::string, std::string> accelerator() const;

  absl::StatusOr<std::string> Path(const std::string& name) const override;
  int Devices(const std::string& name) const override;
  // Probes again in a moment, at most every kProbeAgainEvery.
  void Suspect(const std::string& name) override;

 private:
  static constexpr absl::Duration kProbeDelay = absl::Seconds(1);
  static constexpr absl::Duration kProbeAgainEvery = absl::Seconds(10);

  struct Entry {
    BackendStatus status;
    std::string path;
    bool is_allowed = true;
    bool is_pending = false;  // a later probe is on its way or has just been
  };
  void ReadManifests();

  const std::vector<std::string> folders_;
  const BackendFilter filter_;
  const Parts parts_;
  std::map<std::string, Entry> entries_;
  std::function<void()> changed_;
};

}  // namespace param::agent
