#pragma once
// Everything of the outside world that paramctl touches, handed in by main() or by a test.

#include <ostream>
#include <string>
#include <vector>

#include "client/output/terminal.h"
#include "client/rpc/address.h"
#include "client/rpc/connection.h"
#include "proto/base/clock.h"
#include "proto/base/random.h"

namespace param {

// Ctrl-C, as a question that a loop asks.
class Interrupts {
 public:
  virtual ~Interrupts() = default;
  // From now on the first interrupt is reported here; a second one ends the program as usual.
  virtual void Arm() = 0;
  virtual bool Raised() = 0;
};

// The references must outlive the call of RunParamctl.
struct Io {
  std::ostream& out;  // the answer, and nothing else
  std::ostream& err;
  TerminalFacts out_facts, err_facts;
  EnvironmentVariables env;
  const Clock& clock;
  Random& random;
  Interrupts& interrupts;
  std::string program_folder;  // where paramctl and the other programs lie
  ConnectionOptions connection;
};

// Runs one command line, without the program's name. Returns the exit code. Throws nothing.
int RunParamctl(const std::vector<std::string>& args, Io& io);

}  // namespace param
