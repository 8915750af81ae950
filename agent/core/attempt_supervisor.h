#pragma once
// One attempt on this node: its ranks from spawn to the last process gone.
//
// A rank ends with exactly one end event: its own Done (passed on once the process has exited with
// 0) or a Failure, its own or one made here. The first failure aborts the attempt's other ranks.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/core/deadlines.h"
#include "agent/core/exchange_router.h"
#include "agent/core/launcher.h"
#include "agent/core/log_budget.h"
#include "agent/core/log_ring.h"
#include "agent/core/messages.h"
#include "agent/core/rank_protocol.h"
#include "agent/core/spool.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/random.h"

namespace param::agent {

// What the attempt's ranks run with on this node.
struct Resources {
  std::string device_path;
  std::vector<std::string> comm_paths;
  int devices = 1;  // that the device backend has here
  std::vector<int> cpus;
};

struct SupervisionLimits {
  absl::Duration abort_grace = absl::Milliseconds(500);  // from Abort to SIGTERM
  absl::Duration term_grace = absl::Seconds(2);          // from SIGTERM to SIGKILL
  absl::Duration cancel_grace = absl::Seconds(10);       // from Cancel to Abort
  LogLimits log;
};

// One thread at a time.
class AttemptSupervisor {
 public:
  struct Parts {  // all outlive this
    const Clock* clock;
    const Log* log;
    Random* random;
    Launcher* launcher;
    Spool* spool;
    std::function<void(const ExchangePart&)> send_exchange;
    // A rank failed in a way that asks whether the device is still well.
    std::function<void(const line::Failure&)> suspect_device;
  };
  // `bench` outlives this.
  AttemptSupervisor(StartAttempt start, const BenchmarkSpec& bench, Resources resources,
                    SupervisionLimits limits, Parts parts);

  // Starts the ranks. Failures become end events.
  void Launch();
  void Stop(const StopAttempt& stop);
  // Ends every rank that has not ended, and kills: the connection's lease is over, the agent stops.
  void Fail(absl::StatusCode code, absl::string_view cause);

  absl::StatusOr<int> OnGreeting(pid_t peer, absl::string_view line);
  void OnConnected(int rank);
  void OnLines(int rank, const std::vector<std::string>& lines);
  void OnBadStream(int rank, const absl::Status& why);
  void OnOutput(int rank, absl::string_view line);
  void OnExit(int rank, int wait_status);
  void OnSpawned(int rank, pid_t pid);
  void OnLost(int rank, const absl::Status& why);
  void OnLauncherFailed(const absl::Status& why);
  void OnExchangeAll(const ExchangeAll& all);

  // Acts on what is due; due() says when to call again (monotonic, InfiniteDuration for never).
  void Tick();
  absl::Duration due() const;

  // Every process is gone.
  bool has_ended() const;
  // The rank that failed first here, as "rank 3: cause", or "".
  const std::string& first_failure() const { return first_failure_; }
  // "succeeded", "failed" or "cancelled"; of an attempt that has ended.
  absl::string_view outcome() const;
  const AttemptKey& key() const { return start_.key; }
  const ExchangeRouter& exchange() const { return exchange_; }
  int running_ranks() const;

 private:
  struct Rank {
    Rank(RankPlace where, std::string its_token, const BenchmarkSpec& bench, std::int64_t cases,
         const LogLimits& log)
        : place(where), token(std::move(its_token)), protocol(bench, cases), budget(log) {}
    RankPlace place;
    std::string token;
    RankProtocol protocol;
    LogBudget budget;
    LogRing unsent_output{20, 8 << 10};  // last lines that the budget kept back
    pid_t pid = 0;                       // 0: none yet, or not known
    bool running = false;                // has a process, or is to get one
    bool greeted = false;
    bool ended = false;  // its end event is in the spool
    std::uint64_t seq = 0;
    std::uint64_t lines = 0;  // received
    absl::Duration heard;     // when it last made progress
    absl::Duration term_at = absl::InfiniteDuration();
    absl::Duration kill_at = absl::InfiniteDuration();
  };

  RankKey KeyOf(const Rank& rank) const { return {start_.key, rank.place.rank}; }
  Rank* Find(int rank);
  void Append(Rank& rank, const line::FromWorker& message, Spool::Importance importance);
  void AppendLine(Rank& rank, std::string line, Spool::Importance importance);
  void AppendLog(Rank& rank, absl::string_view level, absl::string_view text);
  void FlushDropped(Rank& rank);
  void SpillOutput(Rank& rank);

  void SendAssignment(Rank& rank);
  line::Assignment MakeAssignment(const Rank& rank) const;
  // False: the rank was ended.
  bool OnLine(Rank& rank, const std::string& line);
  bool OnExchange(Rank& rank, line::Exchange exchange);
  void EndRank(Rank& rank, line::Failure failure);
  void EndRank(Rank& rank, const absl::Status& why);
  void Blame(Rank& rank, absl::string_view what);
  void AbortOthers(const Rank& failed, absl::string_view cause);
  void BeginKill(Rank& rank, absl::Duration delay);
  void ProcessGone(Rank& rank, const absl::Status& exit);
  void Escalate(Rank& rank, absl::Duration now);
  absl::Duration DeadlineOf(const Rank& rank) const;
  void CheckDeadline(Rank& rank, absl::Duration now);

  const StartAttempt start_;
  const BenchmarkSpec* const bench_;
  const Resources resources_;
  const SupervisionLimits limits_;
  const Parts parts_;
  const PhaseDeadlines deadlines_;
  std::vector<std::vector<int>> cpus_;  // by position in ranks_
  std::vector<Rank> ranks_;
  ExchangeRouter exchange_;
  std::string script_path_;
  std::string first_failure_, first_code_;
  std::optional<std::string> abort_reason_;  // set: what ends now does so because of this
  absl::Duration cancel_until_ = absl::InfiniteDuration();
  std::string cancel_reason_;
};

}  // namespace param::agent
