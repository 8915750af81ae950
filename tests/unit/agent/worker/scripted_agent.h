#pragma once
// An agent under a test's control: starts real workers and talks their protocol.

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "agent/bench/driver.h"
#include "proto/base/handle.h"
#include "proto/base/status.h"
#include "proto/catalog/cases.h"
#include "proto/line/messages.h"

namespace param {

// One end of a connection, as an agent sees it. Blocking calls give up after 30 s.
class LineConnection {
 public:
  explicit LineConnection(Fd socket) : socket_(std::move(socket)) {}

  void Send(const line::FromAgent& message) {
    const std::string text = line::Encode(message);
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t sent =
          send(socket_.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return;
      done += static_cast<std::size_t>(sent);
    }
  }

  // OUT_OF_RANGE at end of file.
  absl::StatusOr<line::FromWorker> Next() {
    std::string text;
    while (!lines_.Next(&text)) {
      pollfd ready = {socket_.get(), POLLIN, 0};
      if (poll(&ready, 1, 30'000) != 1) return absl::DeadlineExceededError("silence");
      char buffer[65536];
      const ssize_t got = recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (got <= 0) return absl::OutOfRangeError("end of file");
      PARAM_RETURN_IF_ERROR(lines_.Feed(absl::string_view(buffer, static_cast<std::size_t>(got))));
    }
    return line::DecodeFromWorker(text);
  }

  // The next message of a type; others before it are dropped.
  template <typename T>
  absl::StatusOr<T> Await() {
    while (true) {
      PARAM_ASSIGN_OR_RETURN(line::FromWorker message, Next());
      if (auto* wanted = std::get_if<T>(&message)) return std::move(*wanted);
    }
  }

  void Close() { socket_.reset(); }
  int fd() const { return socket_.get(); }

 private:
  Fd socket_;
  line::LineReader lines_;
};

// Everything a rank said, and how it left.
struct Transcript {
  std::vector<line::FromWorker> messages;
  int exit_code = -1;  // -1: died of a signal

  template <typename T>
  std::vector<T> All() const {
    std::vector<T> found;
    for (const line::FromWorker& message : messages) {
      if (const auto* one = std::get_if<T>(&message)) found.push_back(*one);
    }
    return found;
  }
};

inline std::string WorkerPath() { return std::string(PARAM_BINARY_DIR) + "/bin/param-worker"; }
inline std::string FakePath() {
  return std::string(PARAM_BINARY_DIR) + "/lib/param/backends/fake/fake.so";
}

// Owns a folder, a listening socket and the workers started from it.
class ScriptedAgent {
 public:
  ScriptedAgent() {
    char folder[] = "/tmp/param-worker-test-XXXXXX";
    folder_ = mkdtemp(folder);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path().c_str(), sizeof(address.sun_path) - 1);
    listener_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(listener_.get(), 8) != 0) {
      std::abort();
    }
  }
  ~ScriptedAgent() {
    for (const pid_t pid : running_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    for (const std::string& file : files_) unlink(file.c_str());
    unlink(socket_path().c_str());
    rmdir(folder_.c_str());
  }
  ScriptedAgent(const ScriptedAgent&) = delete;
  ScriptedAgent& operator=(const ScriptedAgent&) = delete;

  std::string socket_path() const { return folder_ + "/s"; }

  // The path of a file with that text.
  std::string WriteFile(const std::string& name, const std::string& text) {
    files_.push_back(folder_ + "/" + name);
    std::ofstream(files_.back()) << text;
    return files_.back();
  }

  pid_t Start(const std::string& token) {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    environment.push_back("PARAM_WORKER_SOCKET=" + socket_path());
    environment.push_back("PARAM_WORKER_TOKEN=" + token);
    std::vector<char*> envp;
    for (std::string& entry : environment) envp.push_back(entry.data());
    envp.push_back(nullptr);
    std::string path = WorkerPath();
    char* argv[] = {path.data(), nullptr};
    pid_t pid = -1;
    if (posix_spawn(&pid, path.c_str(), nullptr, nullptr, argv, envp.data()) != 0) return -1;
    running_.push_back(pid);
    return pid;
  }

  absl::StatusOr<LineConnection> Accept() {
    pollfd ready = {listener_.get(), POLLIN, 0};
    if (poll(&ready, 1, 30'000) != 1) return absl::DeadlineExceededError("nobody connects");
    return LineConnection(Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }

  // Exit code, or -1 when it died of a signal.
  int Wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    std::erase(running_, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string folder_;
  Fd listener_;
  std::vector<std::string> files_;
  std::vector<pid_t> running_;
};

// gemm on the fake backend, with the cases that `given` expands to.
inline line::Assignment GemmAssignment(GivenParams given) {
  const BenchmarkSpec& spec = **FindBenchmark("gemm");
  given.try_emplace("m", "8");
  given.try_emplace("n", "8");
  given.try_emplace("k", "8");
  line::Assignment assignment;
  assignment.job_id = "j-test";
  assignment.attempt = 1;
  assignment.benchmark = "gemm";
  assignment.benchmark_version = spec.version;
  assignment.rank_nodes = {"n1"};
  assignment.device_backend = "fake";
  assignment.device_backend_path = FakePath();
  const std::vector<Case> cases = ExpandCases(spec, given).value();
  for (const Case& one : cases) {
    const auto index = static_cast<std::int64_t>(assignment.cases.size());
    assignment.cases.push_back({index, one.id, one.params});
  }
  return assignment;
}

}  // namespace param
