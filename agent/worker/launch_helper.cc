#include "agent/worker/launch_helper.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "agent/worker/channel.h"
#include "proto/base/status.h"
#include "proto/line/messages.h"

namespace param {
namespace {

absl::StatusOr<line::LaunchEnd> WaitForEnd(int socket) {
  line::LineReader lines;
  std::string piece(4096, '\0'), text;
  while (!lines.Next(&text)) {
    const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError("the agent closed the connection");
    PARAM_RETURN_IF_ERROR(
        lines.Feed(absl::string_view(piece.data(), static_cast<std::size_t>(got))));
  }
  return line::DecodeLaunchEnd(text);
}

absl::StatusOr<line::LaunchEnd> Ask(line::LaunchHello hello) {
  const std::string path = TakeVariable(line::kLaunchSocketVariable);
  hello.token = TakeVariable(line::kLaunchTokenVariable);
  if (path.empty() || hello.token.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(line::kLaunchSocketVariable, " and ",
                                                   line::kLaunchTokenVariable, " must be set"));
  }
  PARAM_ASSIGN_OR_RETURN(const Fd socket, ConnectUnix(path));
  const std::string text = line::Encode(hello);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = send(socket.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return ErrnoStatus(errno, "writing to the agent");
    done += static_cast<std::size_t>(sent);
  }
  return WaitForEnd(socket.get());
}

}  // namespace

std::string TakeVariable(const char* name) {
  char* const value = std::getenv(name);
  if (value == nullptr) return "";
  std::string text = value;
  std::fill(value, value + text.size(), 'x');
  unsetenv(name);
  return text;
}

absl::StatusOr<line::LaunchEnd> HelpRank(const std::string& rank_variable) {
  line::LaunchHello hello;
  const char* const rank = std::getenv(rank_variable.c_str());
  if (rank == nullptr || !absl::SimpleAtoi(rank, &hello.rank) || hello.rank < 0) {
    return absl::InvalidArgumentError(absl::StrCat(rank_variable, " says no rank"));
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view each = *entry;
    // Not a variable, though a program may hand such a thing on.
    if (each.find('=') == absl::string_view::npos || each[0] == '=') continue;
    if (!absl::StartsWith(each, "PARAM_")) hello.env.emplace_back(each);
  }
  return Ask(std::move(hello));
}

absl::StatusOr<line::LaunchEnd> HelpDaemon(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    return absl::InvalidArgumentError("--launch-daemon takes HOST and a command line");
  }
  line::LaunchHello hello;
  hello.host = words[0];
  hello.args.assign(words.begin() + 1, words.end());
  return Ask(std::move(hello));
}

absl::Status BecomeProgram(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    return absl::InvalidArgumentError("--follow takes PROGRAM NAME [ARGUMENT]...");
  }
  std::vector<std::string> own(words.begin() + 1, words.end());
  std::vector<char*> argv;
  argv.reserve(own.size() + 1);
  for (std::string& word : own) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(words[0].c_str(), argv.data());
  return ErrnoStatus(errno, absl::StrCat("cannot start ", words[0]));
}

}  // namespace param
