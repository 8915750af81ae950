#pragma once
// A reactor on the test's own thread, a folder of its own, and waiting without sleeping.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "agent/process/children.h"
#include "agent/process/reactor.h"
#include "proto/base/clock.h"
#include "tests/unit/agent/core/agent_fakes.h"

namespace param::agent {

class ProcessTest : public ::testing::Test {
 protected:
  ProcessTest() {
    std::string pattern = "/tmp/param-test-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    reactor_ = *Reactor::Make(clock_);
  }
  ~ProcessTest() override { std::filesystem::remove_all(folder_); }

  // Runs the event loop until `is_done` says so after a round; false after the deadline.
  [[nodiscard]] bool RunUntil(const std::function<bool()>& is_done,
                              absl::Duration deadline = absl::Seconds(30)) {
    const absl::Duration end = clock_.Monotonic() + deadline;
    bool done = false;
    reactor_->SetHook([&] {
      done = is_done();
      if (done || clock_.Monotonic() >= end) reactor_->Quit();
      return clock_.Monotonic() + absl::Milliseconds(20);
    });
    reactor_->Run();
    reactor_->SetHook({});
    return done;
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // An executable script of /bin/sh.
  std::string Script(const std::string& name, const std::string& body) const {
    const std::string path = Path(name);
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string ReadFile(const std::string& path) const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // True when no process of that number runs; a zombie does not.
  static bool IsGone(pid_t pid) {
    const ProcessStat stat = ReadProcessStat(pid);
    return stat.pid == 0 || stat.state == 'Z';
  }

  const SystemClock clock_;
  LogLines log_;
  std::string folder_;
  std::unique_ptr<Reactor> reactor_;
};

}  // namespace param::agent
