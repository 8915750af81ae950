#include "agent/worker/channel.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include "proto/base/status.h"

namespace param {
namespace {

constexpr std::time_t kSendPatienceSeconds = 30;
constexpr std::size_t kReadBytes = 64 << 10;

}  // namespace

absl::StatusOr<Fd> ConnectUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path \"", path, "\" of ", path.size(),
                                                   " bytes; at most ", sizeof(address.sun_path) - 1,
                                                   " fit"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return ErrnoStatus(errno, "socket");
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoStatus(errno, absl::StrCat("connect ", path));
  }
  return socket;
}

Channel::Channel(Fd socket, Leave leave) : socket_(std::move(socket)), leave_(std::move(leave)) {
  const timeval patience = {kSendPatienceSeconds, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  reader_ = std::thread([this] { Read(); });
}

Channel::~Channel() {
  finishing_ = true;
  shutdown(socket_.get(), SHUT_RDWR);
  reader_.join();
}

void Channel::Send(const line::FromWorker& message) {
  const std::string text = line::Encode(message);
  MutexLock lock(send_mu_);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = send(socket_.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      const int error = errno;
      if (!finishing_) Gone(absl::StrCat("", ErrnoStatus(error, "writing to the agent").message()));
      return;
    }
    done += static_cast<std::size_t>(sent);
  }
}

absl::StatusOr<line::Assignment> Channel::WaitForAssignment() {
  MutexLock lock(mu_);
  while (!assignment_.has_value() && !gone_ && !cancelled()) changed_.Wait(mu_);
  if (gone_) return absl::AbortedError(gone_why_);
  if (cancelled()) return absl::CancelledError(cancel_reason_);
  return *assignment_;
}

absl::StatusOr<std::vector<std::string>> Channel::WaitForReply(std::uint64_t round) {
  MutexLock lock(mu_);
  auto it = replies_.find(round);
  while (it == replies_.end() && !gone_ && !cancelled()) {
    changed_.Wait(mu_);
    it = replies_.find(round);
  }
  if (it == replies_.end()) {
    if (gone_) return absl::AbortedError(gone_why_);
    return absl::CancelledError(cancel_reason_);
  }
  std::vector<std::string> data = std::move(it->second);
  replies_.erase(it);
  return data;
}

std::string Channel::cancel_reason() const {
  MutexLock lock(mu_);
  return cancel_reason_;
}

void Channel::Read() {
  line::LineReader lines(line::kMaxAgentLineBytes);
  std::string buffer(kReadBytes, '\0');
  std::string text;
  while (true) {
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Gone("the agent closed the connection");
    const absl::Status fed =
        lines.Feed(absl::string_view(buffer.data(), static_cast<std::size_t>(got)));
    while (lines.Next(&text)) {
      if (!Handle(text)) return;
    }
    if (!fed.ok()) return Gone(absl::StrCat("from the agent: ", fed.message()));
  }
}

bool Channel::Handle(const std::string& text) {
  absl::StatusOr<line::FromAgent> message = line::DecodeFromAgent(text);
  if (!message.ok()) {
    Gone(absl::StrCat("from the agent: ", message.status().message()));
    return false;
  }
  if (const auto* abort = std::get_if<line::Abort>(&*message)) {
    Gone(absl::StrCat("aborted: ", abort->reason));
    return false;
  }
  MutexLock lock(mu_);
  if (auto* assignment = std::get_if<line::Assignment>(&*message)) {
    assignment_ = std::move(*assignment);
  } else if (auto* reply = std::get_if<line::ExchangeReply>(&*message)) {
    replies_[reply->round] = std::move(reply->data);
  } else if (auto* cancel = std::get_if<line::Cancel>(&*message)) {
    cancel_reason_ = absl::StrCat("cancelled: ", cancel->reason);
    cancelled_ = true;
  }
  changed_.NotifyAll();
  return true;
}

void Channel::Gone(const std::string& why) {
  {
    MutexLock lock(mu_);
    if (gone_) return;
    gone_ = true;
    gone_why_ = why;
    changed_.NotifyAll();
  }
  if (!finishing_) leave_(why);
}

}  // namespace param
