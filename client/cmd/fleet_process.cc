#include "client/cmd/fleet_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proto/base/status.h"
#include "proto/convert/json.h"

namespace param {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(10);

struct ProcStat {
  char state = '\0';
  std::uint64_t start_time = 0;
};

// Fields of /proc/PID/stat after the name, which may hold anything: state is the first of them, the
// start time the twentieth.
absl::StatusOr<ProcStat> ReadStat(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  // read() and not an iterator: a process that ends meanwhile makes the file fail, and only the
  // stream's own functions report that without an exception.
  std::string text(4096, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return absl::NotFoundError(absl::StrCat("no process ", pid));
  const std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 2), ' ');
  ProcStat stat;
  if (fields.size() < 20 || fields[0].empty() || !absl::SimpleAtoi(fields[19], &stat.start_time)) {
    return absl::InternalError(absl::StrCat("/proc/", pid, "/stat: cannot be read"));
  }
  stat.state = fields[0][0];
  return stat;
}

Json RecordJson(const FleetRecord& record) {
  Json processes = Json::array();
  for (const FleetProcess& process : record.processes) {
    processes.push_back(
        {{"name", process.name}, {"pid", process.pid}, {"start_time", process.start_time}});
  }
  return {{"nodes", record.nodes},
          {"listen", record.listen},
          {"http", record.http},
          {"processes", std::move(processes)}};
}

// What posix_spawn needs, freed on every path.
struct SpawnSettings {
  posix_spawn_file_actions_t actions = {};
  posix_spawnattr_t attributes = {};
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

void Fill(SpawnSettings& settings, const std::string& folder, const std::string& log) {
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&settings.actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                   0644);
  posix_spawn_file_actions_adddup2(&settings.actions, 1, 2);
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, 3);
  posix_spawn_file_actions_addchdir_np(&settings.actions, folder.c_str());
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

void Signal(const FleetProcess& process, int signal) {
  if (IsRunning(process)) kill(process.pid, signal);
}

bool WaitUntilGone(const std::vector<FleetProcess>& processes, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  for (;;) {
    if (std::none_of(processes.begin(), processes.end(), IsRunning)) return true;
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(kPoll);
  }
}

}  // namespace

absl::Status ReplaceFile(const std::string& path, const std::string& text) {
  const std::string temporary = absl::StrCat(path, ".new");
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  if (!file.good()) return absl::InternalError(absl::StrCat("cannot write ", temporary));
  file.close();
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rename ", path));
  }
  return absl::OkStatus();
}

absl::StatusOr<FleetRecord> ReadFleet(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/fleet.json");
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("no ", path));
  const Json json = Json::parse(file, nullptr, false);
  FleetRecord record;
  if (!json.is_object() || !json.contains("processes") || !json["processes"].is_array()) {
    return absl::DataLossError(absl::StrCat(path, ": not a record of a fleet; remove it"));
  }
  record.nodes = json.value("nodes", 0);
  record.listen = json.value("listen", "");
  record.http = json.value("http", "");
  for (const Json& process : json["processes"]) {
    if (!process.is_object()) continue;
    record.processes.push_back({process.value("name", ""), process.value("pid", pid_t{0}),
                                process.value("start_time", std::uint64_t{0})});
  }
  return record;
}

absl::Status WriteFleet(const std::string& folder, const FleetRecord& record) {
  return ReplaceFile(absl::StrCat(folder, "/fleet.json"), JsonText(RecordJson(record)));
}

absl::StatusOr<FleetProcess> StartDetached(const std::string& name,
                                           const std::vector<std::string>& argv,
                                           const std::string& folder, const std::string& log) {
  SpawnSettings settings;
  Fill(settings, folder, log);
  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  FleetProcess process = {.name = name};
  const int error = posix_spawn(&process.pid, words[0].c_str(), &settings.actions,
                                &settings.attributes, pointers.data(), environ);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("start ", words[0]));
  PARAM_ASSIGN_OR_RETURN(const ProcStat stat, ReadStat(process.pid));
  process.start_time = stat.start_time;
  return process;
}

bool IsRunning(const FleetProcess& process) {
  if (process.pid <= 0) return false;
  // Reaps it if it is our child; another's is none of our business.
  waitpid(process.pid, nullptr, WNOHANG);
  const absl::StatusOr<ProcStat> stat = ReadStat(process.pid);
  return stat.ok() && stat->start_time == process.start_time && stat->state != 'Z' &&
         stat->state != 'X';
}

std::vector<std::string> StopAll(const std::vector<FleetProcess>& processes, absl::Duration grace) {
  std::vector<std::string> killed;
  for (const FleetProcess& process : processes) Signal(process, SIGTERM);
  if (WaitUntilGone(processes, grace)) return killed;
  for (const FleetProcess& process : processes) {
    if (!IsRunning(process)) continue;
    Signal(process, SIGKILL);
    killed.push_back(process.name);
  }
  WaitUntilGone(processes, absl::Seconds(10));
  return killed;
}

std::string LogTail(const std::string& path, int lines) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back(line.substr(0, 500));
    if (last.size() > static_cast<std::size_t>(lines)) last.pop_front();
  }
  std::string text;
  for (const std::string& line : last) absl::StrAppend(&text, "  ", line, "\n");
  return text;
}

absl::StatusOr<FolderLock> FolderLock::Take(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/lock");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  FolderLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another \"paramctl up\" or \"down\" is at work in ", folder));
  }
  return lock;
}

FolderLock::FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FolderLock::~FolderLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace param
