#include "agent/process/watched_program.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"

namespace param::agent {
namespace {

constexpr absl::Duration kTermGrace = absl::Seconds(2);
constexpr std::size_t kPieceBytes = 16 << 10;
constexpr int kPiecesPerEvent =
    4;                            // one that never ceases to talk does not keep the others waiting
constexpr int kLastPieces = 128;  // more than a pipe holds

}  // namespace

WatchedProgram::WatchedProgram(Parts parts, Events events)
    : parts_(parts), events_(std::move(events)) {}

WatchedProgram::~WatchedProgram() {
  parts_.reactor->Cancel(kill_timer_);
  StopReading();
}

absl::Status WatchedProgram::Start(Command command) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  output_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  command.output_fd = write_end.get();
  PARAM_RETURN_IF_ERROR(parts_.reactor->Add(output_.get(), EPOLLIN,
                                            [this](std::uint32_t) { Read(kPiecesPerEvent); }));
  const absl::StatusOr<pid_t> pid =
      parts_.children->Spawn(command, [this](int status) { OnExit(status); });
  if (!pid.ok()) {
    StopReading();
    return pid.status();
  }
  pid_ = *pid;
  parts_.run_file->Add({pid_}, "");
  return absl::OkStatus();
}

void WatchedProgram::Read(int pieces) {
  std::string piece(kPieceBytes, '\0');
  const auto deliver = [this](absl::string_view line) {
    line = absl::StripAsciiWhitespace(line);
    // Frames of boxed messages are not words.
    if (line.find_first_not_of("-=*") == absl::string_view::npos) return;
    if (events_.line(line)) last_.Push(line);
  };
  for (int i = 0; i < pieces && output_; ++i) {
    const ssize_t got = ::read(output_.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) {
      splitter_.Feed(absl::string_view(piece.data(), static_cast<std::size_t>(got)), deliver);
      continue;
    }
    splitter_.Finish(deliver);
    StopReading();
  }
}

void WatchedProgram::StopReading() {
  if (!output_) return;
  parts_.reactor->Remove(output_.get());
  output_.reset();
}

void WatchedProgram::OnExit(int wait_status) {
  Read(kLastPieces);
  StopReading();  // open still: something that survived SIGKILL holds the other end
  parts_.reactor->Cancel(std::exchange(kill_timer_, 0));
  parts_.run_file->Remove(std::exchange(pid_, 0));
  events_.exited(wait_status);
}

void WatchedProgram::End() {
  if (pid_ == 0 || kill_timer_ != 0) return;
  parts_.children->Signal(pid_, SIGTERM);
  kill_timer_ = parts_.reactor->After(kTermGrace, [this] {
    kill_timer_ = 0;
    parts_.children->Signal(pid_, SIGKILL);
  });
}

std::string WatchedProgram::LastWords() const { return absl::StrJoin(last_.lines(), " "); }

std::string ExitText(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const char* const name = sigabbrev_np(WTERMSIG(wait_status));
    return name == nullptr ? absl::StrCat("killed by signal ", WTERMSIG(wait_status))
                           : absl::StrCat("killed by SIG", name);
  }
  return absl::StrCat("exited with ", WEXITSTATUS(wait_status));
}

}  // namespace param::agent
