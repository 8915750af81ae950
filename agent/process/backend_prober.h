#pragma once
// Asks a backend about this machine in a throw-away process.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/core/messages.h"
#include "agent/process/children.h"
#include "agent/process/reactor.h"

namespace param::agent {

// Fills in what a probe's output says. What is no answer makes the backend not loadable, with the
// reason. Total on any bytes.
void ReadProbeAnswer(absl::string_view output, BackendStatus* status);

// On the reactor's thread; any number of probes at once.
class BackendProber {
 public:
  struct Options {
    std::string worker_path;       // runs `param-worker --probe OBJECT`
    std::vector<std::string> env;  // "K=V"
    absl::Duration deadline = absl::Seconds(20);
  };
  using Done = std::function<void(BackendStatus)>;

  // `reactor` and `children` outlive this.
  BackendProber(Options options, Reactor& reactor, Children& children);
  ~BackendProber();
  BackendProber(const BackendProber&) = delete;
  BackendProber& operator=(const BackendProber&) = delete;

  // `status` says what the manifest says; `done` gets it with the answer, once, never inline. A
  // probe that dies, hangs or talks nonsense is an answer too: not loadable, and why.
  void Probe(BackendStatus status, const std::string& object_path, Done done);

 private:
  static constexpr std::size_t kMaxOutput = 256 << 10;

  struct Running {
    BackendStatus status;
    Done done;
    Fd output, errors;
    std::string text, error_text;
    Reactor::TimerId timer = 0;
    bool is_late = false;
  };
  void ReadAll(Running& running);
  void OnExit(std::uint64_t id, int wait_status);

  const Options options_;
  Reactor& reactor_;
  Children& children_;
  std::map<std::uint64_t, Running> running_;
  std::uint64_t next_ = 1;
};

}  // namespace param::agent
