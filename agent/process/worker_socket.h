#pragma once
// The socket that an attempt's workers connect to, and their connections.

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "agent/process/reactor.h"
#include "proto/base/handle.h"
#include "proto/base/log.h"
#include "proto/line/messages.h"

namespace param::agent {

// Of one attempt, on the reactor's thread. Only processes of our own user (or root) are heard; the
// first line must satisfy the greeting and come in time. Callbacks may call Send() and Close().
class WorkerSocket {
 public:
  // What connections that have not greeted may cost.
  struct Limits {
    absl::Duration greeting = absl::Seconds(30);  // then it is closed; by the reactor's clock
    // Further ones wait in the kernel's queue, so that as many ranks at once are only slower.
    std::size_t strangers = 256;
  };
  struct Callbacks {
    // The rank that the first line of a connection belongs to, or why it is closed.
    std::function<absl::StatusOr<int>(pid_t peer, absl::string_view line)> greeting;
    // It may be sent to from now on.
    std::function<void(int rank)> connected;
    std::function<void(int rank, const std::vector<std::string>& lines)> lines;
    std::function<void(int rank, const absl::Status& why)> bad_stream;
  };
  // Listens at `path`. `reactor` and `log` outlive this.
  static absl::StatusOr<std::unique_ptr<WorkerSocket>> Listen(Reactor& reactor, const Log& log,
                                                              const std::string& path,
                                                              Callbacks callbacks, Limits limits);
  static absl::StatusOr<std::unique_ptr<WorkerSocket>> Listen(Reactor& reactor, const Log& log,
                                                              const std::string& path,
                                                              Callbacks callbacks) {
    return Listen(reactor, log, path, std::move(callbacks), Limits());
  }
  ~WorkerSocket();
  WorkerSocket(const WorkerSocket&) = delete;
  WorkerSocket& operator=(const WorkerSocket&) = delete;

  // Dropped when the rank is not connected. A rank that does not read what it is sent is cut off
  // once kMaxUnsent bytes wait for it.
  void Send(int rank, absl::string_view line);
  // Reads what is left of a rank that has exited, and closes.
  void Finish(int rank);

 private:
  static constexpr std::size_t kMaxUnsent = 16 << 20;
  static constexpr std::size_t kMaxConnections = 4096;
  static constexpr std::size_t kReadBytes = 64 << 10;
  static constexpr int kReadsPerRound = 4;  // then the others get their turn

  struct Connection {
    Fd fd;
    pid_t peer = 0;
    int rank = -1;                  // -1 before the greeting
    Reactor::TimerId deadline = 0;  // of the greeting
    line::LineReader reader;
    std::string unsent;
    bool is_closed = false;
  };
  WorkerSocket(Reactor& reactor, const Log& log, Callbacks callbacks, Limits limits)
      : reactor_(reactor), log_(log), callbacks_(std::move(callbacks)), limits_(limits) {}
  void Accept();
  void Welcome(Fd fd, pid_t peer);
  // It has greeted, or is closed.
  void NoStranger(Connection& connection);
  void OnEvents(const std::shared_ptr<Connection>& connection, std::uint32_t events);
  // False once there is nothing more to read for now.
  bool Read(const std::shared_ptr<Connection>& connection);
  void Deliver(const std::shared_ptr<Connection>& connection);
  void Flush(const std::shared_ptr<Connection>& connection);
  void Close(const std::shared_ptr<Connection>& connection);
  std::shared_ptr<Connection> Find(int rank) const;

  Reactor& reactor_;
  const Log& log_;
  const Callbacks callbacks_;
  const Limits limits_;
  Fd listener_;
  std::size_t strangers_ = 0;                               // connections that have not greeted
  bool is_paused_ = false;                                  // too many of them: nobody is let in
  std::map<int, std::shared_ptr<Connection>> connections_;  // by descriptor
};

}  // namespace param::agent
