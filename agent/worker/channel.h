#pragma once
// This worker's end of the socket to its agent.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/handle.h"
#include "proto/base/sync.h"
#include "proto/line/messages.h"

namespace param {

// Connects to a Unix socket. Errors name the path.
absl::StatusOr<Fd> ConnectUnix(const std::string& path);

// Sends lines, and reads them on a thread of its own, so that the end of the agent ends the worker
// whatever it is doing. Thread safe.
class Channel {
 public:
  // Called when there is nobody to work for any more, with the reason: end of file, an abort, a
  // line that makes no sense, a socket that takes nothing. In the program it exits at once. Where
  // it returns (tests), all waiting calls end with ABORTED. Called from any thread, at most once.
  using Leave = std::function<void(const std::string& why)>;

  Channel(Fd socket, Leave leave);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Blocks while the socket is full, for half a minute at most; then leaves.
  void Send(const line::FromWorker& message);

  // Each blocks until it is there. CANCELLED once the job is, ABORTED after leaving.
  absl::StatusOr<line::Assignment> WaitForAssignment();
  absl::StatusOr<std::vector<std::string>> WaitForReply(std::uint64_t round);

  // Cheap: drivers poll it.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  std::string cancel_reason() const;

  // The last messages follow: from here on the end of the socket is no reason to leave.
  void Finish() { finishing_ = true; }

  int fd() const { return socket_.get(); }

 private:
  void Read();
  // False when the reader shall end.
  bool Handle(const std::string& text);
  void Gone(const std::string& why);

  const Fd socket_;
  const Leave leave_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> finishing_ = false;
  Mutex send_mu_;

  mutable Mutex mu_;
  CondVar changed_;
  std::optional<line::Assignment> assignment_ PARAM_GUARDED_BY(mu_);
  std::map<std::uint64_t, std::vector<std::string>> replies_ PARAM_GUARDED_BY(mu_);
  std::string cancel_reason_ PARAM_GUARDED_BY(mu_);
  bool gone_ PARAM_GUARDED_BY(mu_) = false;
  std::string gone_why_ PARAM_GUARDED_BY(mu_);

  std::thread reader_;  // last: everything it uses is there when it starts
};

}  // namespace param
