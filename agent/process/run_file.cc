#include "agent/process/run_file.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/process/children.h"
#include "proto/base/socket_folder.h"
#include "proto/base/status.h"

namespace param::agent {
namespace {

using Json = nlohmann::json;

// Kills a former agent's worker group. Its leader may be dead and the rest alive; a group keeps its
// number from being given to another process, so that members without a leader are still the old
// group, while a leader with another start time is someone else.
int KillGroup(pid_t group, std::uint64_t start_ticks) {
  const ProcessStat leader = ReadProcessStat(group);
  if (leader.pid != 0 && leader.start_ticks != start_ticks) return 0;
  int killed = 0;
  for (const pid_t pid : AllProcesses()) {
    const ProcessStat stat = ReadProcessStat(pid);
    if (stat.group != group || stat.state == 'Z') continue;
    if (::kill(pid, SIGKILL) == 0) ++killed;
  }
  return killed;
}

}  // namespace

RunFile::RunFile(std::string path, std::string boot_id)
    : path_(std::move(path)), boot_id_(std::move(boot_id)) {}

int RunFile::ClearLeftovers(const Log& log) {
  std::ifstream file(path_);
  const Json old = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  int killed = 0;
  if (old.is_object()) {
    if (old.value("boot_id", Json()) == boot_id_) {
      for (const Json& each : old.value("processes", Json::array())) {
        if (!each.is_object() || !each.value("pid", Json()).is_number_integer() ||
            !each.value("start", Json()).is_number_integer()) {
          continue;
        }
        const pid_t pid = each["pid"].get<pid_t>();
        if (pid > 1) killed += KillGroup(pid, each["start"].get<std::uint64_t>());
      }
    }
    for (const Json& each : old.value("folders", Json::array())) {
      if (!each.is_string()) continue;
      // Never a foreign path that got into the file, nor what another agent has made there since.
      RemoveDeadSocketFolder(each.get<std::string>());  // it may be gone
    }
  }
  if (killed > 0) log.Warn("killed what a former agent left behind", {F("processes", killed)});
  if (const absl::Status written = Write(); !written.ok()) {
    log.Warn("cannot note what runs", {F("reason", written.message())});
  }
  return killed;
}

void RunFile::Add(const std::vector<pid_t>& children, const std::string& folder) {
  for (const pid_t pid : children) processes_.insert({pid, ProcessStartTicks(pid)});
  if (!folder.empty()) folders_.insert(folder);
  // Without the note a crash leaves workers to the end of their socket, which they watch.
  [[maybe_unused]] const absl::Status written = Write();
}

void RunFile::Remove(pid_t child) {
  std::erase_if(processes_, [child](const Process& each) { return each.pid == child; });
}

void RunFile::RemoveFolder(const std::string& folder) {
  folders_.erase(folder);
  [[maybe_unused]] const absl::Status written = Write();
}

absl::Status RunFile::Write() const {
  Json json = {{"boot_id", boot_id_}, {"processes", Json::array()}, {"folders", folders_}};
  for (const Process& each : processes_) {
    json["processes"].push_back({{"pid", each.pid}, {"start", each.start_ticks}});
  }
  const std::string next = path_ + ".new";
  std::ofstream file(next, std::ios::trunc);
  file << json.dump() << "\n";
  file.close();
  if (!file) return ErrnoStatus(errno, absl::StrCat("write ", next));
  if (std::rename(next.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rename ", path_));
  }
  return absl::OkStatus();
}

}  // namespace param::agent
