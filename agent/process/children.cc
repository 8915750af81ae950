#include "agent/process/children.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proto/base/status.h"

namespace param::agent {
namespace {

constexpr absl::Duration kSweepEvery = absl::Milliseconds(20);
constexpr absl::Duration kReapEvery = absl::Seconds(1);
constexpr absl::Duration kSweepPatience = absl::Seconds(10);

struct SpawnParts {
  SpawnParts() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  ~SpawnParts() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnParts(const SpawnParts&) = delete;
  SpawnParts& operator=(const SpawnParts&) = delete;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

void SetUp(const Command& command, SpawnParts* parts) {
  ::posix_spawn_file_actions_addopen(&parts->actions, 0, "/dev/null", O_RDONLY, 0);
  if (command.output_fd >= 0) {
    ::posix_spawn_file_actions_adddup2(&parts->actions, command.output_fd, 1);
  } else {
    ::posix_spawn_file_actions_addopen(&parts->actions, 1, "/dev/null", O_WRONLY, 0);
  }
  if (!command.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&parts->actions, command.directory.c_str());
  }
  const int error_fd = command.error_fd >= 0 ? command.error_fd : 1;
  ::posix_spawn_file_actions_adddup2(&parts->actions, error_fd, 2);
  // Whatever a library opened without close-on-exec stays here.
  ::posix_spawn_file_actions_addclosefrom_np(&parts->actions, 3);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&parts->attributes, &none);
  ::posix_spawnattr_setsigdefault(&parts->attributes, &all);
  ::posix_spawnattr_setpgroup(&parts->attributes, 0);
  ::posix_spawnattr_setflags(
      &parts->attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> pointers;
  for (std::string& text : *texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Children::Children(Reactor& reactor, const Clock& clock, const Log& log)
    : reactor_(reactor), clock_(clock), log_(log) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    log_.Warn("cannot become a subreaper; what workers detach may be left behind",
              {F("reason", ErrnoStatus(errno, "prctl").message())});
  }
}

Children::~Children() {
  reactor_.Cancel(sweep_timer_);
  reactor_.Cancel(reap_timer_);
  for (auto& [pid, child] : children_) {
    ::kill(-pid, SIGKILL);
    if (child.is_dead) continue;
    reactor_.Remove(child.pidfd.get());
    ::waitpid(pid, nullptr, 0);
  }
}

absl::StatusOr<pid_t> Children::Spawn(const Command& command, Exited exited) {
  SpawnParts parts;
  SetUp(command, &parts);
  std::vector<std::string> args = command.args;
  args.insert(args.begin(), command.path);
  std::vector<std::string> env = command.env;
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, command.path.c_str(), &parts.actions, &parts.attributes,
                                  Pointers(&args).data(), Pointers(&env).data());
  if (error != 0) return ErrnoStatus(error, absl::StrCat("cannot start ", command.path));
  Child child;
  child.exited = std::move(exited);
  child.tag = command.tag;
  child.pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  absl::Status watched = child.pidfd ? absl::OkStatus() : ErrnoStatus(errno, "pidfd_open");
  if (watched.ok()) {
    watched =
        reactor_.Add(child.pidfd.get(), EPOLLIN, [this, pid](std::uint32_t) { OnPidfd(pid); });
  }
  if (!watched.ok()) {
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return watched;
  }
  children_.emplace(pid, std::move(child));
  if (reap_timer_ == 0) reap_timer_ = reactor_.After(kReapEvery, [this] { ReapStrays(); });
  return pid;
}

void Children::Signal(pid_t pid, int signal) {
  const auto child = children_.find(pid);
  // The number of a reaped leader may be someone else's by now.
  if (child == children_.end() || child->second.is_dead) return;
  if (::kill(-pid, signal) != 0) ::kill(pid, signal);
}

std::vector<pid_t> Children::pids() const {
  std::vector<pid_t> all;
  for (const auto& [pid, child] : children_) all.push_back(pid);
  return all;
}

void Children::OnPidfd(pid_t pid) {
  Child& child = children_.at(pid);
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid) {
    return;
  }
  ::kill(-pid, SIGKILL);  // while the dead leader still holds the group's number
  ::waitpid(pid, &child.wait_status, 0);
  reactor_.Remove(child.pidfd.get());
  child.pidfd.reset();
  child.is_dead = true;
  child.died = clock_.Monotonic();
  SweepAll();
}

std::vector<pid_t> Children::Strays(const Child& of) const {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return {};  // no child at all
  const bool is_alone = std::none_of(children_.begin(), children_.end(),
                                     [](const auto& each) { return !each.second.is_dead; });
  std::vector<pid_t> strays;
  const pid_t self = ::getpid();
  for (const pid_t pid : AllProcesses()) {
    if (IsKnown(pid) || ReadProcessStat(pid).parent != self) continue;
    bool is_ours = is_alone;
    if (!is_ours && !of.tag.empty()) {
      const Fd fd(::open(absl::StrCat("/proc/", pid, "/environ").c_str(), O_RDONLY | O_CLOEXEC));
      std::string env(64 << 10, '\0');
      const ssize_t got = fd ? ::read(fd.get(), env.data(), env.size()) : 0;
      env.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      is_ours = env.find(of.tag) != std::string::npos;
    }
    if (is_ours) strays.push_back(pid);
  }
  return strays;
}

bool Children::Sweep(pid_t pid, const Child& child) {
  while (::waitpid(-pid, nullptr, WNOHANG) > 0) {
  }
  bool is_clean = ::kill(-pid, 0) != 0 && errno == ESRCH;
  if (!is_clean) ::kill(-pid, SIGKILL);
  for (const pid_t stray : Strays(child)) {
    ::kill(stray, SIGKILL);
    if (::waitpid(stray, nullptr, WNOHANG) != stray) is_clean = false;
  }
  return is_clean;
}

void Children::SweepAll() {
  reactor_.Cancel(sweep_timer_);
  sweep_timer_ = 0;
  std::vector<std::pair<Exited, int>> gone;
  bool is_more = false;
  for (auto it = children_.begin(); it != children_.end();) {
    Child& child = it->second;
    if (!child.is_dead) {
      ++it;
      continue;
    }
    const bool is_clean = Sweep(it->first, child);
    const bool is_late = clock_.Monotonic() - child.died > kSweepPatience;
    if (!is_clean && !is_late) {
      is_more = true;
      ++it;
      continue;
    }
    if (!is_clean) log_.Error("processes survive SIGKILL", {F("group", it->first)});
    gone.emplace_back(std::move(child.exited), child.wait_status);
    it = children_.erase(it);
  }
  if (is_more) sweep_timer_ = reactor_.After(kSweepEvery, [this] { SweepAll(); });
  for (const auto& [exited, wait_status] : gone) exited(wait_status);  // may spawn
}

// What a live child's own children left to us, dead. Leaders are reaped in OnPidfd() only.
void Children::ReapStrays() {
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
         !IsKnown(info.si_pid)) {
    ::waitpid(info.si_pid, nullptr, WNOHANG);
    info = {};
  }
  reap_timer_ = children_.empty() ? 0 : reactor_.After(kReapEvery, [this] { ReapStrays(); });
}

}  // namespace param::agent
