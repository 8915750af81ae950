#pragma once
// The coordinator: jobs, nodes and what happens to them, as one single-threaded object. Time,
// randomness, storage and transport come in; every method runs on one thread (the loop), and what
// the store answers comes back there through `post`.
//
// Outcomes: a rank fails -> its attempt FAILED, the others aborted. An agent is lost (its lease ran
// out, or it came back without the attempt) -> the attempt LOST, repeated while retries are left.
// The coordinator dies -> Recover() folds the stored events, and agents that come back within a
// lease go on.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/random.h"
#include "server/core/agent_port.h"
#include "server/core/attempt_state.h"
#include "server/core/event_bus.h"
#include "server/core/exchange_table.h"
#include "server/core/import.h"
#include "server/core/node_table.h"
#include "server/core/observer.h"
#include "server/core/placement.h"
#include "server/core/store.h"

namespace param {

struct CoordinatorOptions {
  absl::Duration lease = absl::Seconds(15);         // an agent not heard for so long is lost
  absl::Duration heartbeat = absl::Seconds(3);      // what agents are asked to keep
  absl::Duration cancel_grace = absl::Seconds(10);  // from cancel to abort
  absl::Duration stop_grace = absl::Seconds(30);    // from abort until the job ends regardless
  absl::Duration store_retry = absl::Seconds(1);    // between tries to store the end of a job
};

class Coordinator {
 public:
  using Post = std::function<void(std::function<void()>)>;
  template <typename T>
  using Reply = std::function<void(absl::StatusOr<T>)>;

  // Everything is borrowed and outlives the coordinator. `post` runs closures on the loop.
  Coordinator(CoordinatorOptions options, const Clock& clock, Random& random, Store& store,
              Post post, CoordinatorObserver& observer, const Log& log);
  ~Coordinator();

  // Loads what was open when the coordinator last stopped. Blocks; before anything else.
  absl::Status Recover();

  // ---- users ----
  // Idempotent by request_id. The reply comes once the job is stored. INVALID_ARGUMENT and
  // FAILED_PRECONDITION are rejections. With no_wait the job was placed when the reply is good.
  void Submit(const std::string& principal, const std::string& request_id, JobSpec spec,
              Reply<Job> reply);
  // Stores results of another tool as a job that has ended. Idempotent by request_id.
  // INVALID_ARGUMENT: see PlanImport.
  void Import(const std::string& principal, const std::string& request_id,
              const ImportRequest& request, Reply<Job> reply);
  // A job that ended is returned as it is. NOT_FOUND.
  void Cancel(const std::string& job_id, Reply<Job> reply);
  // NOT_FOUND when the job is not open (it may be in the store).
  absl::Status Watch(const std::string& job_id, std::uint64_t after_seq,
                     std::shared_ptr<JobWatcher> watcher);
  void Unwatch(const std::string& job_id, const JobWatcher* watcher);
  std::vector<NodeView> Nodes() const;
  void Drain(const std::string& node, const std::string& reason, Reply<NodeView> reply);
  void Resume(const std::string& node, Reply<NodeView> reply);
  void Label(const std::string& node, const std::map<std::string, std::string>& set,
             const std::vector<std::string>& remove, Reply<NodeView> reply);
  struct Counts {
    int nodes_ready = 0, nodes_total = 0, jobs_queued = 0, jobs_running = 0;
  };
  Counts counts() const;

  // ---- agents ----
  absl::StatusOr<Welcome> Register(std::shared_ptr<AgentSession> session,
                                   Registration registration);
  void Disconnected(const AgentSession* session);
  // False when the session is not a node's (any more).
  bool Heartbeat(const AgentSession* session);
  void RankEvents(const AgentSession* session, std::vector<RankEvent> events);
  void ExchangePart(const AgentSession* session, const AttemptKey& key, std::uint64_t round,
                    const std::vector<int>& ranks, std::vector<std::string> data);
  void AttemptEnded(const AgentSession* session, const AttemptKey& key);
  // The head of an attempt wants its launcher's daemon on a host of the attempt.
  void StartDaemon(const AgentSession* session, const AttemptKey& key, const std::string& host,
                   std::vector<std::string> args);
  // A daemon has ended or could not be started; `cause` of all but exit code 0.
  void DaemonEnded(const AgentSession* session, const AttemptKey& key, const std::string& host,
                   int exit_code, const std::string& cause);
  void InventoryChanged(const AgentSession* session, Inventory inventory, std::string json);

  // ---- time ----
  // Leases, timeouts, grace periods. To be called at least every second, or by NextDeadline().
  void Tick();

 private:
  struct OpenJob;

  // jobs (coordinator_jobs.cc)
  absl::Status Validate(const JobSpec& spec, Job& job, std::vector<CaseRecord>& cases,
                        Footprint& footprint) const;
  absl::Status CheckNoWait(const Job& job, const Footprint& footprint) const;
  void Submitted(std::unique_ptr<OpenJob> open, const Reply<Job>& reply);
  absl::StatusOr<Job> RejectNoWait(OpenJob& open);
  absl::StatusOr<Job> AnswerOfRequest(const std::string& request_id);
  void Enqueue(std::unique_ptr<OpenJob> open);
  void EndQueued(OpenJob& open, JobState state, const std::string& reason);
  void StopAttemptOf(OpenJob& open, JobState ending, const std::string& reason, bool graceful);
  void MaybeFinishAttempt(OpenJob& open);
  void FinishAttempt(OpenJob& open);
  void FinishJob(OpenJob& open, JobState state, std::vector<Write> writes);
  void Requeue(OpenJob& open, std::vector<Write> writes);
  void JudgeCases(const OpenJob& open, JobState& state, std::string& reason) const;
  void Publish(const OpenJob& open,
               std::variant<Job, std::shared_ptr<const CaseRecord>, Progress> kind,
               std::uint64_t seq);
  void PublishJob(const OpenJob& open);
  OpenJob* FindOpen(const std::string& job_id);
  OpenJob* FindOpen(const AttemptKey& key);
  void SaveIntent(OpenJob& open, const std::string& state);
  void SendStop(const OpenJob& open, bool graceful, const std::string& reason);
  void StoreEnd(OpenJob& open);
  // Fans out the ended cases up to `upto`, in order.
  void PublishCases(OpenJob& open, std::size_t upto);
  static std::uint64_t CaseSeq(const OpenJob& open, std::size_t cases);

  // schedule (coordinator_schedule.cc)
  void Schedule();
  void StartPlaced(const Placement& placement);
  void SendStart(OpenJob& open);
  void SendStartTo(OpenJob& open, NodeEntry& node);
  // Tells the nodes that came back without having begun. Where the start needs a plan that a
  // restarted coordinator has to make again: only when it has heard of all nodes of the attempt.
  void SendStartsDue(OpenJob& open);
  void SetReason(OpenJob& open, const std::string& reason);
  void ReportQueue();

  // agents and nodes (coordinator_agents.cc, coordinator_nodes.cc)
  void Reconcile(NodeEntry& node, Welcome& welcome);
  void LoseNode(OpenJob& open, const std::string& node, const std::string& cause);
  void EventsStored(const AttemptKey& key, const std::vector<RankEvent>& events,
                    const absl::Status& status);
  void Applied(OpenJob& open, const AttemptState::Effects& effects, std::vector<Write>& writes);
  static Failure RefusedEvent(const OpenJob& open, const RankEvent& event,
                              const absl::Status& status);
  void AckApplied(OpenJob& open, const std::set<int>& ranks);
  void StoreConcluded(OpenJob& open, const std::vector<int>& concluded, std::vector<Write> writes);
  void FreeNode(NodeEntry& node);
  void SaveNode(NodeEntry& node, Reply<NodeView> reply);
  void ShareCores();
  void ReportNode(const NodeEntry& node);

  // launchers with a head node (coordinator_launch.cc)
  absl::Status PlanLaunchOf(OpenJob& open);
  // Of the attempt; as far as its nodes have said which backends need which.
  std::string LauncherOf(const OpenJob& open) const;
  // Null for launchers without a head.
  LaunchRelay* RelayOf(OpenJob& open);
  // To a node that was away.
  void RepeatDaemons(OpenJob& open, const NodeEntry& node);
  void BlameLostNode(OpenJob& open);

  // recovery (coordinator_recovery.cc)
  absl::Status RecoverJob(Job job);
  void RefuseRecovered(const std::string& job_id, const absl::Status& status);
  absl::Status RecoverAttempt(OpenJob& open);

  std::int64_t Now() const { return absl::ToUnixNanos(clock_.Wall()); }

  const CoordinatorOptions options_;
  const Clock& clock_;
  Random& random_;
  Store& store_;
  const Post post_;
  CoordinatorObserver& observer_;
  const Log& log_;
  NodeTable nodes_;
  EventBus bus_;
  std::map<std::string, std::unique_ptr<OpenJob>> jobs_;
  // Accepted and on their way to the store: they count as waiting, so that of two jobs that cannot
  // wait only one is promised the last free node.
  std::map<std::string, const OpenJob*> submitting_;
};

}  // namespace param
