#pragma once
// One call of paramctl in a test: arguments in, both outputs and the exit code back.

#include <atomic>
#include <sstream>
#include <string>
#include <vector>

#include "client/cmd/io.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_random.h"

namespace param {

class FakeInterrupts final : public Interrupts {
 public:
  void Arm() override { armed = true; }
  bool Raised() override { return raised; }
  std::atomic<bool> raised{false};
  bool armed = false;
};

struct Ran {
  int code = 0;
  std::string out, err;
};

// No environment, no terminal, short deadlines unless a test says otherwise.
class Harness {
 public:
  Ran Run(const std::vector<std::string>& args) {
    std::ostringstream out, err;
    Io io = {.out = out,
             .err = err,
             .out_facts = out_facts,
             .err_facts = err_facts,
             .env = env,
             .clock = clock,
             .random = random,
             .interrupts = interrupts,
             .program_folder = program_folder,
             .connection = {.call_deadline = absl::Seconds(20),
                            .bulk_deadline = absl::Seconds(20),
                            .reconnect_for = absl::Seconds(20)}};
    Ran ran;
    ran.code = RunParamctl(args, io);
    ran.out = out.str();
    ran.err = err.str();
    return ran;
  }

  EnvironmentVariables env;
  TerminalFacts out_facts, err_facts;
  FakeClock clock;
  FakeRandom random;
  FakeInterrupts interrupts;
  std::string program_folder = "/nowhere";
};

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace param
