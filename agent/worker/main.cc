// One rank of an attempt, or a throw-away probe of a backend.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/backend/probe.h"
#include "agent/worker/channel.h"
#include "agent/worker/launch_helper.h"
#include "agent/worker/runner.h"
#include "proto/base/version.h"

namespace param {
namespace {

constexpr char kHelp[] =
    R"(param-worker: one rank of a job, started by param-agent

  param-worker                 run as a rank; PARAM_WORKER_SOCKET names the agent's socket and
                               PARAM_WORKER_TOKEN proves who this is
  param-worker --probe FILE    load the backend FILE and print one JSON line about it
  param-worker --follow PROGRAM NAME [ARGUMENT]...
                               become PROGRAM, called NAME, and die with the agent
  param-worker --launch-rank VARIABLE
  param-worker --launch-daemon HOST COMMAND...
                               started by mpirun: have the agent run the rank that VARIABLE says,
                               or start the daemon on HOST, and wait; PARAM_LAUNCH_SOCKET and
                               PARAM_LAUNCH_TOKEN lead to the agent
  param-worker --version
  param-worker --help

Exit status: 0 all cases ended, 1 failed (and told the agent why), 2 called in a wrong way,
3 the agent is gone or stopped the job.
)";

// Dies with the agent, also when it is killed; false when that happened already.
bool FollowParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;
}

// A backend that runs wild neither fills the disk nor leaves a core file: a write past the limit
// fails with EFBIG, which the backend reports.
void LimitFiles() {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::uint64_t bytes = 0;
  if (!absl::SimpleAtoi(TakeVariable("PARAM_WORKER_FILE_LIMIT"), &bytes) || bytes == 0) return;
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_IGN);  // NOLINT(cert-err33-c): there is nothing else to do
}

[[noreturn]] void Exit(int code) {
  std::fflush(nullptr);
  // Not exit(): destructors of loaded backends and of the reader's thread have nothing to add.
  _exit(code);
}

int RunRank() {
  LimitFiles();
  const std::string path = TakeVariable("PARAM_WORKER_SOCKET");
  const std::string token = TakeVariable("PARAM_WORKER_TOKEN");
  if (path.empty() || token.empty()) {
    std::fputs("param-worker: PARAM_WORKER_SOCKET and PARAM_WORKER_TOKEN must be set\n", stderr);
    return kWorkerUsage;
  }
  absl::StatusOr<Fd> socket = ConnectUnix(path);
  if (!socket.ok()) {
    std::fprintf(stderr, "param-worker: %s\n", std::string(socket.status().message()).c_str());
    return kWorkerOrphan;
  }
  setenv("PARAM_WORKER_SOCKET_FD", absl::StrCat(socket->get()).c_str(), 1);
  Channel channel(*std::move(socket), [](const std::string& why) {
    std::fprintf(stderr, "param-worker: %s\n", why.c_str());
    Exit(kWorkerOrphan);
  });
  channel.Send(line::Hello{token, getpid(), kProtocolVersion, std::string(Version())});
  Exit(RunWorker(channel));
}

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "param-worker: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kWorkerUsage : kWorkerOrphan;
}

// A helper ends as what it stood for did.
int EndLike(const absl::StatusOr<line::LaunchEnd>& end) {
  if (!end.ok()) return Complain(end.status());
  if (!end->text.empty()) std::fprintf(stderr, "%s\n", end->text.c_str());
  std::fflush(nullptr);
  if (end->signal == 0) return end->exit_code;
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(end->signal, SIG_DFL);  // NOLINT(cert-err33-c): the exit status says it then
  std::raise(end->signal);            // NOLINT(cert-err33-c): the same
  return 128 + end->signal;
}

int Main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const std::vector<std::string> rest(argv + std::min(argc, 2), argv + argc);
  // Their parent is a launcher, which may start them on a thread that ends before them.
  if (argc == 3 && first == "--launch-rank") return EndLike(HelpRank(rest[0]));
  if (first == "--launch-daemon") return EndLike(HelpDaemon(rest));
  if (!FollowParent()) return kWorkerOrphan;
  if (first == "--follow") return Complain(BecomeProgram(rest));
  if (argc == 1) return RunRank();
  if (argc == 2 && first == "--version") {
    std::printf("param-worker %s (%s, %s)\n", std::string(Version()).c_str(),
                std::string(Revision()).c_str(), std::string(Compiler()).c_str());
    return 0;
  }
  if (argc == 2 && first == "--help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (argc == 3 && first == "--probe") {
    std::printf("%s\n", RunProbe(argv[2]).c_str());
    Exit(0);
  }
  std::fprintf(stderr, "param-worker: wrong arguments; see param-worker --help\n");
  return kWorkerUsage;
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) { return param::Main(argc, argv); }
