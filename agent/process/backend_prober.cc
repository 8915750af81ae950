#include "agent/process/backend_prober.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "agent/core/deadlines.h"
#include "agent/core/worker_exit.h"
#include "proto/base/status.h"

namespace param::agent {
namespace {

using Json = nlohmann::json;

void SetUnusable(BackendStatus* status, std::string reason) {
  status->loadable = status->usable = false;
  status->devices = 0;
  status->reason = std::move(reason);
}

// The last line that is not blank, short: what a loader or an assertion said.
std::string LastWords(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const std::size_t newline = text.rfind('\n');
  if (newline != absl::string_view::npos) text.remove_prefix(newline + 1);
  return text.empty() ? "" : absl::StrCat(": ", absl::CHexEscape(text.substr(0, 300)));
}

struct Pipe {
  Fd read_end, write_end;
};
absl::StatusOr<Pipe> MakePipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  ::fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

// True while there may be more. What goes beyond the limit is read and thrown away.
bool ReadPiece(const Fd& fd, std::size_t limit, std::string* text) {
  std::array<char, 16 << 10> piece;
  const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
  if (got < 0) return errno == EINTR;
  const std::size_t room = limit - std::min(limit, text->size());
  text->append(piece.data(), std::min(room, static_cast<std::size_t>(got)));
  return got > 0;
}

// Of the devices that say how much they have; 0 when none does.
std::int64_t SmallestMemory(const Json& describe) {
  std::int64_t smallest = 0;
  const Json devices = describe.value("devices", Json());
  if (!devices.is_array()) return 0;
  for (const Json& device : devices) {
    const Json bytes = device.is_object() ? device.value("memory_bytes", Json()) : Json();
    if (!bytes.is_number_integer() || bytes.get<std::int64_t>() <= 0) continue;
    const auto memory = bytes.get<std::int64_t>();
    smallest = smallest == 0 ? memory : std::min(smallest, memory);
  }
  return smallest;
}

}  // namespace

void ReadProbeAnswer(absl::string_view output, BackendStatus* status) {
  const Json json = Json::parse(output.begin(), output.end(), nullptr, false);
  if (!json.is_object()) {
    SetUnusable(status, "its probe gave no answer that can be read");
    return;
  }
  const auto flag = [&json](const char* key) {
    const Json value = json.value(key, Json());
    return value.is_boolean() && value.get<bool>();
  };
  const auto text = [&json](const char* key) {
    const Json value = json.value(key, Json());
    return value.is_string() ? value.get<std::string>().substr(0, 1024) : std::string();
  };
  status->loadable = flag("loadable");
  status->usable = status->loadable && flag("usable");
  status->reason = text("reason");
  status->version = text("version");
  const Json devices = json.value("devices", Json());
  if (devices.is_number_integer()) {
    status->devices =
        static_cast<int>(std::clamp<std::int64_t>(devices.get<std::int64_t>(), 0, 4096));
  }
  const Json describe = json.value("describe", Json());
  if (describe.is_object()) {
    status->describe_json = describe.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (status->rank_per_device) status->device_memory_bytes = SmallestMemory(describe);
  }
  if (!status->usable && status->reason.empty()) status->reason = "it gives no reason";
}

BackendProber::BackendProber(Options options, Reactor& reactor, Children& children)
    : options_(std::move(options)), reactor_(reactor), children_(children) {}

BackendProber::~BackendProber() {
  for (auto& [id, running] : running_) {
    reactor_.Cancel(running.timer);
    reactor_.Remove(running.output.get());
    reactor_.Remove(running.errors.get());
  }
}

void BackendProber::Probe(BackendStatus status, const std::string& object_path, Done done) {
  absl::StatusOr<Pipe> output = MakePipe();
  absl::StatusOr<Pipe> errors = MakePipe();
  const std::uint64_t id = next_++;
  absl::Status started = output.ok() ? errors.status() : output.status();
  absl::StatusOr<pid_t> pid = absl::InternalError("not started");
  if (started.ok()) {
    pid = children_.Spawn({.path = options_.worker_path,
                           .args = {"--probe", object_path},
                           .env = options_.env,
                           .output_fd = output->write_end.get(),
                           .error_fd = errors->write_end.get(),
                           .tag = ""},
                          [this, id](int wait_status) { OnExit(id, wait_status); });
    started = pid.status();
  }
  if (!started.ok()) {
    SetUnusable(&status, absl::StrCat("cannot be probed: ", started.message()));
    reactor_.Post([status = std::move(status), done = std::move(done)] { done(status); });
    return;
  }
  Running& running = running_[id];
  running.status = std::move(status);
  running.done = std::move(done);
  running.output = std::move(output->read_end);
  running.errors = std::move(errors->read_end);
  running.timer = reactor_.After(options_.deadline, [this, id, child = *pid] {
    running_.at(id).is_late = true;
    children_.Signal(child, SIGKILL);
  });
  for (const Fd* const fd : {&running.output, &running.errors}) {
    const absl::Status watched = reactor_.Add(fd->get(), EPOLLIN, [this, id](std::uint32_t) {
      if (const auto found = running_.find(id); found != running_.end()) ReadAll(found->second);
    });
    if (!watched.ok()) running.error_text += watched.ToString();
  }
}

void BackendProber::ReadAll(Running& running) {
  int pieces = 16;  // then the others get their turn
  while (pieces-- > 0 && ReadPiece(running.output, kMaxOutput, &running.text)) {
  }
  pieces = 16;
  while (pieces-- > 0 && ReadPiece(running.errors, kMaxOutput, &running.error_text)) {
  }
}

void BackendProber::OnExit(std::uint64_t id, int wait_status) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  Running running = std::move(found->second);
  running_.erase(found);
  ReadAll(running);
  reactor_.Cancel(running.timer);
  reactor_.Remove(running.output.get());
  reactor_.Remove(running.errors.get());
  const absl::Status exit = WorkerExit(wait_status, true);
  if (running.is_late) {
    SetUnusable(&running.status,
                absl::StrCat("its probe gave no answer for ", DurationText(options_.deadline)));
  } else if (!exit.ok()) {
    SetUnusable(&running.status,
                absl::StrCat("its probe: ", exit.message(), LastWords(running.error_text)));
  } else {
    ReadProbeAnswer(running.text, &running.status);
  }
  running.done(std::move(running.status));
}

}  // namespace param::agent
