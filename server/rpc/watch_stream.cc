#include "server/rpc/watch_stream.h"

#include <memory>
#include <utility>
#include <vector>

#include "server/core/outbox.h"
#include "server/rpc/records.h"

namespace param {
namespace {

class WatchReactor;

// What the coordinator holds: outlives the reactor, and does nothing once that is gone.
class StreamWatcher final : public JobWatcher {
 public:
  explicit StreamWatcher(WatchReactor* reactor) : reactor_(reactor) {}
  void Replay(std::vector<std::shared_ptr<const JobEvent>> events) override;
  bool Push(const std::shared_ptr<const JobEvent>& event, bool may_drop) override;
  void Close(absl::Status status) override;
  void Detach() {
    MutexLock lock(mu_);
    reactor_ = nullptr;
  }

 private:
  Mutex mu_;
  WatchReactor* reactor_ PARAM_GUARDED_BY(mu_);
};

class WatchReactor final : public grpc::ServerWriteReactor<v1::JobEvent>,
                           private Outbox<JobEvent>::Port {
 public:
  WatchReactor(const RpcContext& context, std::string job_id)
      : context_(context),
        job_id_(std::move(job_id)),
        started_(context.clock.Monotonic()),
        watcher_(std::make_shared<StreamWatcher>(this)),
        outbox_(*this, {.messages = kWatchQueue, .burst = kWatchBurst, .patience = kWatchPatience},
                context.clock) {}

  Outbox<JobEvent>& outbox() { return outbox_; }
  const std::shared_ptr<StreamWatcher>& watcher() const { return watcher_; }

 private:
  void Write(const JobEvent& event) override {
    message_ = EventToProto(event);
    StartWrite(&message_);
  }
  void Finish(const absl::Status& status) override {
    code_ = status.code();
    ServerWriteReactor::Finish(ToGrpc(status));
  }
  void OnWriteDone(bool ok) override { outbox_.WriteDone(ok); }
  void OnCancel() override { outbox_.Cancelled(); }
  void OnDone() override {
    watcher_->Detach();
    context_.loop.Post([&context = context_, job_id = job_id_, watcher = watcher_] {
      context.coordinator.Unwatch(job_id, watcher.get());
    });
    if (context_.observer) {
      context_.observer("JobService.Watch", CodeName(code_),
                        absl::ToDoubleSeconds(context_.clock.Monotonic() - started_));
    }
    delete this;
  }

  const RpcContext& context_;
  const std::string job_id_;
  const absl::Duration started_;
  const std::shared_ptr<StreamWatcher> watcher_;
  v1::JobEvent message_;  // the one in flight
  absl::StatusCode code_ = absl::StatusCode::kOk;
  Outbox<JobEvent> outbox_;
};

void StreamWatcher::Replay(std::vector<std::shared_ptr<const JobEvent>> events) {
  MutexLock lock(mu_);
  if (reactor_ != nullptr) reactor_->outbox().Preload(std::move(events));
}

bool StreamWatcher::Push(const std::shared_ptr<const JobEvent>& event, bool may_drop) {
  MutexLock lock(mu_);
  if (reactor_ == nullptr) return true;  // nobody is missing it
  return reactor_->outbox().Push(
      event, may_drop ? Outbox<JobEvent>::Loss::kMayDrop : Outbox<JobEvent>::Loss::kMustDeliver);
}

void StreamWatcher::Close(absl::Status status) {
  MutexLock lock(mu_);
  if (reactor_ != nullptr) reactor_->outbox().Close(std::move(status));
}

// The job ended before: its cases and its end come from the store.
absl::Status ReplayEnded(Store& store, const std::string& job_id, std::uint64_t after_seq,
                         JobWatcher& watcher) {
  PARAM_ASSIGN_OR_RETURN(const Job job, store.GetJob(job_id));
  PARAM_ASSIGN_OR_RETURN(std::vector<CaseRecord> cases, store.GetCases(job_id));
  std::vector<std::shared_ptr<const JobEvent>> events;
  const std::uint64_t base = static_cast<std::uint64_t>(job.attempt) << 20;
  std::uint64_t seq = base;
  const auto add = [&](auto kind) {
    auto event = std::make_shared<JobEvent>();
    event->seq = seq;
    event->job_id = job_id;
    event->time_ns = job.timeline.finished;
    event->kind = std::move(kind);
    events.push_back(std::move(event));
  };
  for (CaseRecord& record : cases) {
    if (!record.ended) continue;
    if (++seq > after_seq) add(std::make_shared<const CaseRecord>(std::move(record)));
  }
  add(job);
  watcher.Replay(std::move(events));
  return absl::OkStatus();
}

}  // namespace

grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(const RpcContext& context,
                                                   const std::string& job_id,
                                                   std::uint64_t after_seq) {
  auto* reactor = new WatchReactor(context, job_id);  // deletes itself in OnDone
  const auto watcher = reactor->watcher();
  context.loop.Post([&context, job_id, after_seq, watcher] {
    if (context.coordinator.Watch(job_id, after_seq, watcher).ok()) return;
    const bool queued = context.readers.Post([&context, job_id, after_seq, watcher] {
      watcher->Close(ReplayEnded(context.store, job_id, after_seq, *watcher));
    });
    if (!queued)
      watcher->Close(absl::ResourceExhaustedError("too many reads are waiting; try again"));
  });
  return reactor;
}

}  // namespace param
