#include "agent/process/worker_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "proto/base/status.h"

namespace param::agent {

absl::StatusOr<std::unique_ptr<WorkerSocket>> WorkerSocket::Listen(Reactor& reactor, const Log& log,
                                                                   const std::string& path,
                                                                   Callbacks callbacks,
                                                                   Limits limits) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path ", path, " is longer than ",
                                                   sizeof(address.sun_path) - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  std::unique_ptr<WorkerSocket> made(new WorkerSocket(reactor, log, std::move(callbacks), limits));
  made->listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made->listener_) return ErrnoStatus(errno, "socket");
  const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(made->listener_.get(), raw, sizeof(address)) != 0) {
    return ErrnoStatus(errno, absl::StrCat("bind ", path));
  }
  if (::listen(made->listener_.get(), 1024) != 0) {
    return ErrnoStatus(errno, absl::StrCat("listen ", path));
  }
  PARAM_RETURN_IF_ERROR(reactor.Add(made->listener_.get(), EPOLLIN,
                                    [socket = made.get()](std::uint32_t) { socket->Accept(); }));
  return made;
}

WorkerSocket::~WorkerSocket() {
  if (listener_) reactor_.Remove(listener_.get());
  for (const auto& [fd, connection] : connections_) {
    reactor_.Remove(fd);
    if (connection->rank < 0) reactor_.Cancel(connection->deadline);
    connection->is_closed = true;
  }
}

void WorkerSocket::Accept() {
  while (true) {
    if (strangers_ >= limits_.strangers) {
      log_.Warn("many connections have not said hello; others wait",
                {F("connections", strangers_)});
      reactor_.Modify(listener_.get(), 0);
      is_paused_ = true;
      return;
    }
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid != ::geteuid() && peer.uid != 0)) {
      log_.Warn("connection of another user refused", {F("uid", peer.uid), F("pid", peer.pid)});
      continue;
    }
    if (connections_.size() >= kMaxConnections) {
      log_.Warn("too many connections of workers", {F("pid", peer.pid)});
      continue;
    }
    Welcome(std::move(fd), peer.pid);
  }
}

void WorkerSocket::Welcome(Fd fd, pid_t peer) {
  auto connection = std::make_shared<Connection>();
  connection->peer = peer;
  connection->fd = std::move(fd);
  const absl::Status added =
      reactor_.Add(connection->fd.get(), EPOLLIN,
                   [this, connection](std::uint32_t events) { OnEvents(connection, events); });
  if (!added.ok()) {
    log_.Error("cannot watch a connection", {F("reason", added.message())});
    return;
  }
  ++strangers_;
  connection->deadline = reactor_.After(limits_.greeting, [this, connection] {
    log_.Warn("a connection that said no hello was closed",
              {F("pid", connection->peer), F("after", absl::FormatDuration(limits_.greeting))});
    Close(connection);
  });
  connections_[connection->fd.get()] = connection;
}

void WorkerSocket::NoStranger(Connection& connection) {
  reactor_.Cancel(connection.deadline);
  --strangers_;
  if (std::exchange(is_paused_, false)) reactor_.Modify(listener_.get(), EPOLLIN);
}

void WorkerSocket::OnEvents(const std::shared_ptr<Connection>& connection, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) Flush(connection);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  for (int i = 0; i < kReadsPerRound; ++i) {
    if (!Read(connection)) return;
  }
}

bool WorkerSocket::Read(const std::shared_ptr<Connection>& connection) {
  if (connection->is_closed) return false;
  std::string piece(kReadBytes, '\0');
  const ssize_t got = ::recv(connection->fd.get(), piece.data(), piece.size(), 0);
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) return false;
  if (got <= 0) {
    Close(connection);
    return false;
  }
  piece.resize(static_cast<std::size_t>(got));
  const absl::Status fed = connection->reader.Feed(piece);
  Deliver(connection);
  if (!fed.ok() && !connection->is_closed) {
    if (connection->rank >= 0) callbacks_.bad_stream(connection->rank, fed);
    log_.Warn("a worker's stream is broken",
              {F("pid", connection->peer), F("reason", fed.message())});
    Close(connection);
  }
  return !connection->is_closed;
}

void WorkerSocket::Deliver(const std::shared_ptr<Connection>& connection) {
  std::vector<std::string> lines;
  std::string line;
  while (!connection->is_closed && connection->reader.Next(&line)) {
    if (connection->rank >= 0) {
      lines.push_back(std::move(line));
      continue;
    }
    const absl::StatusOr<int> rank = callbacks_.greeting(connection->peer, line);
    if (!rank.ok()) {
      log_.Warn("a connection was refused",
                {F("pid", connection->peer), F("reason", rank.status().message())});
      Close(connection);
      return;
    }
    connection->rank = *rank;
    NoStranger(*connection);
    callbacks_.connected(*rank);
  }
  if (!lines.empty()) callbacks_.lines(connection->rank, lines);
}

std::shared_ptr<WorkerSocket::Connection> WorkerSocket::Find(int rank) const {
  for (const auto& [fd, connection] : connections_) {
    if (connection->rank == rank) return connection;
  }
  return nullptr;
}

void WorkerSocket::Send(int rank, absl::string_view line) {
  const std::shared_ptr<Connection> connection = Find(rank);
  if (connection == nullptr) return;
  const bool was_idle = connection->unsent.empty();
  connection->unsent.append(line.data(), line.size());
  if (connection->unsent.size() > kMaxUnsent) {
    log_.Warn("a worker does not read what it is sent", {F("rank", rank)});
    Close(connection);
    return;
  }
  if (was_idle) Flush(connection);
}

void WorkerSocket::Flush(const std::shared_ptr<Connection>& connection) {
  if (connection->is_closed) return;
  std::string& unsent = connection->unsent;
  std::size_t sent = 0;
  while (sent < unsent.size()) {
    const ssize_t wrote =
        ::send(connection->fd.get(), unsent.data() + sent, unsent.size() - sent, MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) {  // it is gone; what it had sent is still to be read
      unsent.clear();
      return;
    }
    sent += static_cast<std::size_t>(wrote);
  }
  unsent.erase(0, sent);
  reactor_.Modify(connection->fd.get(),
                  unsent.empty() ? EPOLLIN : static_cast<std::uint32_t>(EPOLLIN | EPOLLOUT));
}

void WorkerSocket::Finish(int rank) {
  const std::shared_ptr<Connection> connection = Find(rank);
  if (connection == nullptr) return;
  while (Read(connection)) {
  }
  Close(connection);
}

void WorkerSocket::Close(const std::shared_ptr<Connection>& connection) {
  if (connection->is_closed) return;
  connection->is_closed = true;
  if (connection->rank < 0) NoStranger(*connection);
  const int fd = connection->fd.get();
  reactor_.Remove(fd);
  connections_.erase(fd);
  connection->fd.reset();
}

}  // namespace param::agent
