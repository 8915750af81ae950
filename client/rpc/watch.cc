// Watching a job: one stream at a time, read through a completion queue so that the caller's thread
// can also see to an interrupt and to progress.

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/rpc/channel.h"
#include "proto/convert/names.h"
#include "proto/convert/status.h"

namespace param {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(2);

// One stream. Every operation started on the queue is waited for before the queue goes.
class EventStream {
 public:
  EventStream(v1::JobService::Stub& jobs, const v1::WatchRequest& request)
      : reader_(jobs.PrepareAsyncWatch(&context_, request, &queue_)) {
    reader_->StartCall(this);
    pending_ = true;
  }
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  ~EventStream() {
    context_.TryCancel();
    if (pending_) Next(absl::InfiniteDuration());
    queue_.Shutdown();
    void* tag = nullptr;
    bool good = false;
    while (queue_.Next(&tag, &good)) {
    }
  }

  enum class Step { kTimeout, kGood, kOver };
  // Waits for what was started.
  Step Next(absl::Duration wait) {
    void* tag = nullptr;
    bool good = false;
    const auto deadline = wait == absl::InfiniteDuration()
                              ? std::chrono::system_clock::time_point::max()
                              : After(wait);
    const auto got = queue_.AsyncNext(&tag, &good, deadline);
    if (got == grpc::CompletionQueue::TIMEOUT) return Step::kTimeout;
    pending_ = false;
    return got == grpc::CompletionQueue::GOT_EVENT && good ? Step::kGood : Step::kOver;
  }
  void StartRead(v1::JobEvent* event) {
    reader_->Read(event, this);
    pending_ = true;
  }
  absl::Status Finish() {
    grpc::Status status;
    reader_->Finish(&status, this);
    pending_ = true;
    Next(absl::InfiniteDuration());
    return FromGrpc(status);
  }

 private:
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::JobEvent>> reader_;
  bool pending_ = false;
};

bool Stopped(const WatchCallbacks& callbacks) { return callbacks.stop && callbacks.stop(); }

// Reads one stream to its end; an error is how the stream ended. Keeps `after_seq` up to date.
absl::StatusOr<WatchEnd> ReadStream(v1::JobService::Stub& jobs, v1::WatchRequest& request,
                                    const WatchCallbacks& callbacks) {
  v1::JobEvent event;  // outlives the stream, which may still write to it
  EventStream stream(jobs, request);
  bool reading = false;
  for (;;) {
    const EventStream::Step step = stream.Next(kTick);
    if (step == EventStream::Step::kOver) {
      const absl::Status status = stream.Finish();
      if (!status.ok()) return status;
      return WatchEnd::kEnded;
    }
    if (step == EventStream::Step::kGood) {
      if (reading) {
        request.set_after_seq(std::max(request.after_seq(), event.seq()));
        callbacks.on_event(event);
        event.Clear();
      }
      stream.StartRead(&event);
      reading = true;
    } else if (callbacks.on_tick) {
      callbacks.on_tick();
    }
    if (Stopped(callbacks)) return WatchEnd::kInterrupted;
  }
}

// A pause that an interrupt ends; false when interrupted.
bool Pause(absl::Duration pause, const WatchCallbacks& callbacks) {
  grpc::CompletionQueue nothing;
  const absl::Time until = absl::Now() + pause;
  bool stopped = false;
  while (!stopped && absl::Now() < until) {
    void* tag = nullptr;
    bool good = false;
    nothing.AsyncNext(&tag, &good, After(std::min(kTick, until - absl::Now())));
    stopped = Stopped(callbacks);
  }
  nothing.Shutdown();
  void* tag = nullptr;
  bool good = false;
  while (nothing.Next(&tag, &good)) {
  }
  return !stopped;
}

// The transport or the coordinator went away, or the reader was too slow; not the request's fault.
bool CanResume(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

absl::StatusOr<WatchEnd> Connection::Watch(const std::string& job_id,
                                           const WatchCallbacks& callbacks) {
  v1::WatchRequest request;
  request.set_job_id(job_id);
  absl::Time last_event = absl::Now();
  absl::Duration pause = kFirstPause;
  bool lost = false;
  bool final_seen = false;
  const auto note = [&callbacks](const std::string& line) {
    if (callbacks.on_note) callbacks.on_note(line);
  };
  WatchCallbacks counted = callbacks;
  counted.on_event = [&](const v1::JobEvent& event) {
    if (lost) note(absl::StrCat("connected to ", address_.target, " again"));
    lost = false;
    pause = kFirstPause;
    last_event = absl::Now();
    if (event.has_job()) final_seen = IsFinalState(event.job().state());
    callbacks.on_event(event);
  };
  for (;;) {
    absl::StatusOr<WatchEnd> end = ReadStream(channel_->jobs, request, counted);
    if (end.ok() && *end == WatchEnd::kEnded && !final_seen) {
      // A coordinator that stops closes its streams. All events again: what it counts from after a
      // restart is not known here.
      end = absl::UnavailableError("the stream was closed before the job ended");
      request.set_after_seq(0);
    }
    if (end.ok() || !CanResume(end.status())) return end;
    // The time without events counts from the loss, however long the job was silent before.
    if (!lost) last_event = absl::Now();
    if (absl::Now() - last_event >= options_.reconnect_for) {
      return Explain(end.status(), options_.reconnect_for);
    }
    if (!lost) {
      lost = true;
      note(absl::IsResourceExhausted(end.status())
               ? absl::StrCat("reading was too slow for ", address_.target, "; resuming")
               : absl::StrCat("connection to ", address_.target, " lost (", end.status().message(),
                              "); the job goes on, trying again for ",
                              absl::FormatDuration(options_.reconnect_for)));
    }
    if (!Pause(pause, callbacks)) return WatchEnd::kInterrupted;
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace param
