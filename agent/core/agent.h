#pragma once
// The agent: one session with the coordinator, any number of attempts, one spool.

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/core/attempt_supervisor.h"
#include "agent/core/event_pump.h"
#include "agent/core/launcher.h"
#include "agent/core/messages.h"
#include "agent/core/session.h"
#include "agent/core/spool.h"
#include "agent/core/uplink.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/random.h"

namespace param::agent {

struct AgentOptions {
  std::string node;
  std::string version;
  std::string instance;  // token of this process
  std::map<std::string, std::string> labels;
  SessionOptions session;
  SupervisionLimits limits;
};

// Where backends lie, by name; the wire never names a path. Thread compatible.
class BackendPaths {
 public:
  virtual ~BackendPaths() = default;
  // The object's path; NOT_FOUND or FAILED_PRECONDITION with the reason.
  virtual absl::StatusOr<std::string> Path(const std::string& name) const = 0;
  virtual int Devices(const std::string& name) const = 0;
  // A rank failed in a way that may be the device's fault: probe again soon.
  virtual void Suspect(const std::string& name) = 0;
};

// Told what happened; main connects it to the metrics. Never calls back.
class AgentObserver {
 public:
  virtual ~AgentObserver() = default;
  // `outcome`: "succeeded", "failed" or "cancelled".
  virtual void AttemptEnded(absl::string_view benchmark, absl::string_view outcome,
                            absl::Duration took) = 0;
  // A call to the coordinator is opened: start | lost | refused | timeout.
  virtual void Connecting(absl::string_view reason) = 0;
};

// One thread at a time: everything arrives on the agent's own thread.
class Agent final : public UplinkEvents, public WorkerEvents {
 public:
  struct Parts {  // all outlive this
    const Clock* clock;
    const Log* log;
    Random* random;
    Uplink* uplink;
    std::map<std::string, Launcher*> launchers;  // by name
    Spool* spool;
    BackendPaths* backends;
    AgentObserver* observer;
  };
  Agent(AgentOptions options, Inventory inventory, Parts parts);

  void Start() { session_.Start(); }
  // What is due; due() says when to call again (monotonic).
  void Tick();
  absl::Duration due() const;

  // Aborts all attempts; no new one is taken. is_stopped() once their processes are gone and what
  // they left was handed over as far as there is a connection.
  void Stop(absl::string_view reason);
  bool is_stopped() const;

  // Probes were repeated. Sent when it differs from before.
  void SetInventory(Inventory inventory);

  bool is_connected() const { return session_.is_connected(); }
  int running_ranks() const;
  int running_attempts() const;
  const CpuShare& share() const { return share_; }

  // UplinkEvents
  void OnMessage(DownMessage message) override;
  void OnDrained() override { pump_.Pump(); }
  void OnClosed(const absl::Status& status) override { session_.OnClosed(status); }

  // WorkerEvents
  absl::StatusOr<int> OnGreeting(const AttemptKey& key, pid_t peer,
                                 absl::string_view line) override;
  void OnConnected(const RankKey& rank) override;
  void OnLines(const RankKey& rank, const std::vector<std::string>& lines) override;
  void OnBadStream(const RankKey& rank, const absl::Status& why) override;
  void OnOutput(const RankKey& rank, absl::string_view line) override;
  void OnExit(const RankKey& rank, int wait_status) override;
  void OnSpawned(const RankKey& rank, pid_t pid) override;
  void OnLost(const RankKey& rank, const absl::Status& why) override;
  void OnLauncherFailed(const AttemptKey& key, const absl::Status& why) override;
  void OnDaemonWanted(const StartDaemon& wanted) override;
  void OnDaemonEnded(const DaemonEnded& ended) override;

 private:
  struct Attempt {
    std::unique_ptr<AttemptSupervisor> supervisor;
    std::string benchmark;
    Launcher* launcher = nullptr;
    absl::Duration started;
    bool gone = false;       // every process
    bool announced = false;  // AttemptEnded was sent on this connection
    bool forgotten = false;  // the coordinator does not want it
    // Said again on each connection: wanted here and without an answer; and ended here. By host.
    std::map<std::string, StartDaemon> wanted;
    std::map<std::string, DaemonEnded> ended;
    std::uint64_t last = 0;  // position in the spool after its last event; valid when gone
  };

  Session::Parts MakeSessionParts();
  Register Hello() const;
  void Connected(const Registered& registered);
  void Disconnected();
  void Fence(const std::string& why);
  void Handle(const Registered& registered) { session_.OnRegistered(registered); }
  void Handle(const StartAttempt& start);
  void Handle(const StopAttempt& stop);
  void Handle(const ExchangeAll& all);
  void Handle(const EventsAck& ack);
  void Handle(const StartDaemon& wanted);
  void Handle(const DaemonEnded& ended);
  void Handle(const HeartbeatReply&) {}
  void Handle(const CpuShare& share) { share_ = share; }

  // Runs the attempt, or says why this node cannot.
  absl::Status Launch(const StartAttempt& start);
  void RepeatDaemons(const Attempt& attempt);
  // Ends every rank of an attempt that cannot start here.
  void Refuse(const StartAttempt& start, const absl::Status& why);
  AttemptSupervisor* Find(const AttemptKey& key);
  void Settle();
  void SettleAttempt(const AttemptKey& key, Attempt& attempt);

  const AgentOptions options_;
  Inventory inventory_;
  const Parts parts_;
  Session session_;
  EventPump pump_;
  CpuShare share_;
  std::map<AttemptKey, Attempt> attempts_;
  std::deque<AttemptKey> past_;  // ended and taken over: a repeated start is not a new one
  bool stopping_ = false;
  absl::Duration stop_until_ = absl::InfiniteDuration();
};

}  // namespace param::agent
