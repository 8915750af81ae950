// paramctl: streams, terminal facts, the environment; the rest is in client/cmd.

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "client/cmd/interrupts.h"
#include "client/cmd/io.h"
#include "client/output/terminal.h"
#include "client/rpc/exit_code.h"
#include "proto/base/clock.h"
#include "proto/base/random.h"

namespace param {
namespace {

EnvironmentVariables ReadEnvironment() {
  EnvironmentVariables env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return env;
}

TerminalFacts FactsOf(int fd, const EnvironmentVariables& env) {
  const auto get = [&env](const char* name) {
    const auto it = env.find(name);
    return it == env.end() ? std::string() : it->second;
  };
  winsize size = {};
  const bool sized = isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0;
  return {.is_tty = isatty(fd) == 1,
          .no_color = get("NO_COLOR"),
          .term = get("TERM"),
          .columns = sized ? size.ws_col : 0,
          .utf8 = IsUtf8Locale(get("LC_ALL"), get("LC_CTYPE"), get("LANG"))};
}

std::string ProgramFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : self.parent_path().string();
}

int Main(int argc, char** argv) {
  // A closed pipe is an error of the write, not the end of the program.
  signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  FdBuffer out_buffer(STDOUT_FILENO);
  std::ostream out(&out_buffer);
  const EnvironmentVariables env = ReadEnvironment();
  const SystemClock clock;
  SystemRandom random;
  SignalInterrupts interrupts;
  Io io = {.out = out,
           .err = std::cerr,
           .out_facts = FactsOf(STDOUT_FILENO, env),
           .err_facts = FactsOf(STDERR_FILENO, env),
           .env = env,
           .clock = clock,
           .random = random,
           .interrupts = interrupts,
           .program_folder = ProgramFolder(),
           .connection = {}};
  const int code = RunParamctl(args, io);
  out << std::flush;
  // Whoever read our output had enough: no reason to complain. A full disk is one.
  if (out_buffer.error() == 0 || out_buffer.error() == EPIPE) return code;
  std::cerr << "error: writing standard output: " << std::strerror(out_buffer.error()) << "\n";
  return code == 0 ? static_cast<int>(ExitCode::kFailed) : code;
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) { return param::Main(argc, argv); }
