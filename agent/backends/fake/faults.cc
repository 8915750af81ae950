#include "agent/backends/fake/faults.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace param::fake {
namespace {

// Under a sanitizer's handler the process would exit instead of dying of the signal.
[[noreturn]] void Crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
  std::abort();
}

[[noreturn]] void Hang() {
  for (;;) ::pause();
}

// False with errno set when not all could be written.
bool WriteAll(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

std::int32_t WriteGarbage(const std::string& text, param_error* err) {
  const char* const number = std::getenv("PARAM_WORKER_SOCKET_FD");
  if (number == nullptr) {
    return kit::Fail(err, kit::kFailedPrecondition, "PARAM_WORKER_SOCKET_FD is not set");
  }
  const std::string bytes =
      text.empty() ? std::string("\x01\xff{\"type\": \"hello\" \x00}} garbage\n", 31) : text;
  if (!WriteAll(std::atoi(number), bytes.data(), bytes.size())) {
    return kit::Fail(err, kit::kUnavailable, "write to the worker's socket: errno %d", errno);
  }
  return kit::kOk;
}

std::int32_t FillDisk(std::int64_t bytes, param_error* err) {
  const int fd = ::open("fake-fill.bin", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return kit::Fail(err, kit::kResourceExhausted, "open fake-fill.bin: errno %d", errno);
  const std::vector<char> block(1 << 20, 'x');
  bool good = true;
  for (std::int64_t left = bytes; good && left > 0;) {
    const std::int64_t now = std::min<std::int64_t>(left, 1 << 20);
    good = WriteAll(fd, block.data(), static_cast<std::size_t>(now));
    left -= now;
  }
  const int error = errno;
  ::close(fd);
  if (good) return kit::kOk;
  return kit::Fail(err, kit::kResourceExhausted, "write fake-fill.bin: errno %d", error);
}

}  // namespace

Faults::Faults(const param_host* host, std::vector<Fault> faults)
    : host_(host), faults_(std::move(faults)) {
  std::erase_if(faults_,
                [&](const Fault& fault) { return fault.rank >= 0 && fault.rank != host_->rank; });
}

std::int32_t Faults::Reach(const char* point, param_error* err) {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (faults_[i].at != point || faults_[i].after-- > 0) continue;
    const Fault due = faults_[i];
    faults_.erase(faults_.begin() + static_cast<std::ptrdiff_t>(i));
    return Strike(due, err);
  }
  return kit::kOk;
}

std::int32_t Faults::Strike(const Fault& fault, param_error* err) {
  if (fault.kind == "crash") Crash();
  if (fault.kind == "hang") Hang();
  if (fault.kind == "exit") std::_Exit(3);
  if (fault.kind == "wrong") wrong_ = true;
  if (fault.kind == "garbage") return WriteGarbage(fault.text, err);
  if (fault.kind == "flood") Flood(fault.count);
  if (fault.kind == "fill_disk") return FillDisk(fault.bytes, err);
  if (fault.kind == "error") {
    return kit::Fail(err, static_cast<kit::Code>(fault.code), "%s",
                     fault.text.empty() ? "scripted error" : fault.text.c_str());
  }
  return kit::kOk;
}

void Faults::Flood(std::int64_t lines) {
  const std::string line = "scripted flood " + std::string(180, '.');
  for (std::int64_t i = 0; i < lines; ++i) {
    if (host_->log != nullptr) host_->log(host_->user, 1, line.c_str());
    const std::string out = line + "\n";
    if (!WriteAll(STDERR_FILENO, out.data(), out.size())) break;  // nobody reads any more
  }
}

}  // namespace param::fake
