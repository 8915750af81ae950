#include "agent/rpc/grpc_uplink.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <utility>

#include "agent/rpc/wire.h"
#include "proto/base/status.h"
#include "proto/base/sync.h"
#include "proto/convert/status.h"

namespace param::agent {
namespace {

grpc::ChannelArguments ChannelArguments(std::size_t max_message_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Reconnecting is paced by the session, not by the channel.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // In spite of its name: how long a connection may take to come about. A coordinator under load is
  // slow to shake hands.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 20'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(max_message_bytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(max_message_bytes));
  return arguments;
}

}  // namespace

// One call. gRPC's threads and the agent's thread meet here and nowhere else.
class GrpcUplink::Call final : public grpc::ClientBidiReactor<v1::FromAgent, v1::ToAgent>,
                               public std::enable_shared_from_this<GrpcUplink::Call> {
 public:
  using Post = std::function<void(std::function<void()>)>;
  Call(GrpcUplink* uplink, Post post, std::size_t max_queued_bytes)
      : uplink_(uplink), post_(std::move(post)), max_queued_bytes_(max_queued_bytes) {}

  void Start(v1::AgentService::Stub& stub, v1::FromAgent hello) {
    self_ = shared_from_this();  // until OnDone()
    stub.async()->Session(&context_, this);
    // Writes start on the agent's thread, outside gRPC's reactions: the hold keeps the call from
    // being done under them. There is always a read in flight, and its failure lets go.
    AddHold();
    Write(std::move(hello));
    StartRead(&incoming_);
    StartCall();
  }

  void Write(v1::FromAgent message) {
    MutexLock lock(mu_);
    if (is_over_) return;
    const std::size_t bytes = message.ByteSizeLong();
    const bool is_full = queue_.size() >= kMaxQueued ||
                         (!queue_.empty() && queued_bytes_ + bytes > max_queued_bytes_);
    if (is_full) {
      is_over_ = true;
      context_.TryCancel();
      return;
    }
    queued_bytes_ += bytes;
    queue_.push_back(std::move(message));
    if (!is_writing_) WriteNext();
  }

  bool IsIdle() {
    MutexLock lock(mu_);
    return queue_.empty();
  }

  void Cancel() { context_.TryCancel(); }

  // On the agent's thread: nothing of this call reaches the uplink after it.
  void Forget() { uplink_ = nullptr; }

  // Until gRPC is done with the call: nothing is posted after it.
  void WaitDone() {
    MutexLock lock(mu_);
    while (!is_done_) done_.Wait(mu_);
  }

 private:
  void WriteNext() PARAM_REQUIRES(mu_) {
    is_writing_ = true;
    StartWrite(&queue_.front());  // stays in the queue until it was written
  }

  void OnWriteDone(bool ok) override {
    bool is_idle = false;
    {
      MutexLock lock(mu_);
      is_writing_ = false;
      queued_bytes_ -= queue_.front().ByteSizeLong();
      queue_.pop_front();
      if (!ok) {
        is_over_ = true;
        queue_.clear();
      } else if (!queue_.empty() && !is_over_) {
        WriteNext();
      } else {
        is_idle = !is_over_;
      }
    }
    if (is_idle) {
      ToAgentThread([](GrpcUplink& uplink, const Call* call) { uplink.OnIdle(call); });
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        MutexLock lock(mu_);
        is_over_ = true;
      }
      RemoveHold();  // OnDone() follows
      return;
    }
    auto message = std::make_shared<v1::ToAgent>(std::move(incoming_));
    incoming_.Clear();
    ToAgentThread([message](GrpcUplink& uplink, const Call* call) {
      uplink.OnRead(call, std::move(*message));
    });
    StartRead(&incoming_);
  }

  void OnDone(const grpc::Status& status) override {
    ToAgentThread([result = FromGrpc(status)](GrpcUplink& uplink, const Call* call) {
      uplink.OnDone(call, result);
    });
    {
      MutexLock lock(mu_);
      is_done_ = true;
      done_.NotifyAll();
    }
    self_.reset();  // may destroy this
  }

  void ToAgentThread(std::function<void(GrpcUplink&, const Call*)> what) {
    post_([self = shared_from_this(), what = std::move(what)] {
      if (self->uplink_ != nullptr) what(*self->uplink_, self.get());
    });
  }

  GrpcUplink* uplink_;  // the agent's thread only
  const Post post_;
  std::shared_ptr<Call> self_;
  grpc::ClientContext context_;
  v1::ToAgent incoming_;
  Mutex mu_;
  const std::size_t max_queued_bytes_;
  std::deque<v1::FromAgent> queue_ PARAM_GUARDED_BY(mu_);
  std::size_t queued_bytes_ PARAM_GUARDED_BY(mu_) = 0;
  bool is_writing_ PARAM_GUARDED_BY(mu_) = false;
  bool is_over_ PARAM_GUARDED_BY(mu_) = false;
  bool is_done_ PARAM_GUARDED_BY(mu_) = false;
  CondVar done_;
};

GrpcUplink::GrpcUplink(Options options, Parts parts)
    : options_(std::move(options)), parts_(std::move(parts)) {
  channel_ = grpc::CreateCustomChannel(options_.server, grpc::InsecureChannelCredentials(),
                                       ChannelArguments(options_.max_message_bytes));
  stub_ = v1::AgentService::NewStub(channel_);
}

GrpcUplink::~GrpcUplink() {
  if (call_ == nullptr) return;
  call_->Forget();
  call_->Cancel();
  call_->WaitDone();
}

void GrpcUplink::Open(const Register& hello) {
  call_ = std::make_shared<Call>(this, parts_.post, options_.max_queued_bytes);
  call_->Start(*stub_, ToWire(hello));
}

void GrpcUplink::Send(UpMessage message) {
  if (call_ != nullptr) call_->Write(ToWire(message));
}

bool GrpcUplink::IsIdle() const { return call_ != nullptr && call_->IsIdle(); }

void GrpcUplink::Close() {
  if (call_ != nullptr) call_->Cancel();
}

void GrpcUplink::OnRead(const Call* call, const v1::ToAgent& message) {
  if (call != call_.get()) return;
  absl::StatusOr<DownMessage> read = FromWire(message);
  if (read.ok()) {
    events_->OnMessage(*std::move(read));
  } else {
    parts_.log->Warn("a message of the coordinator was not understood",
                     {F("reason", read.status().message())});
  }
}

void GrpcUplink::OnIdle(const Call* call) {
  if (call == call_.get()) events_->OnDrained();
}

void GrpcUplink::OnDone(const Call* call, const absl::Status& status) {
  if (call != call_.get()) return;
  call_->Forget();
  call_.reset();
  // An orderly end of the call is the end of the connection all the same.
  events_->OnClosed(status.ok() ? absl::UnavailableError("the coordinator ended the session")
                                : status);
}

}  // namespace param::agent
