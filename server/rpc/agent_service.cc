#include "server/rpc/agent_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/core/outbox.h"
#include "server/rpc/records.h"

namespace param {
namespace {

// What may wait for an agent; more than this and the session ends (it reconnects, and is told again
// what it has not answered).
constexpr std::size_t kAgentQueue = 65536;
constexpr std::size_t kAgentQueueBytes = 64 << 20;

using AgentOutbox = Outbox<v1::ToAgent>;
class SessionReactor;

// What the coordinator holds: outlives the reactor, and does nothing once that is gone.
class StreamSession final : public AgentSession {
 public:
  explicit StreamSession(SessionReactor* reactor) : reactor_(reactor) {}
  void Send(ToAgent message) override { SendProto(ToAgentToProto(message)); }
  void SendProto(v1::ToAgent message);
  void Close(absl::Status status) override;
  void ReadNext();
  void Detach() {
    MutexLock lock(mu_);
    reactor_ = nullptr;
  }

 private:
  Mutex mu_;
  SessionReactor* reactor_ PARAM_GUARDED_BY(mu_);
};

class SessionReactor final : public grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent>,
                             private AgentOutbox::Port {
 public:
  SessionReactor(const RpcContext& context, std::string peer)
      : context_(context),
        peer_(std::move(peer)),
        session_(std::make_shared<StreamSession>(this)),
        outbox_(*this,
                {.messages = kAgentQueue,
                 .bytes = kAgentQueueBytes,
                 .size = [](const v1::ToAgent& message) { return message.ByteSizeLong(); }},
                context.clock) {
    StartRead(&incoming_);
  }
  AgentOutbox& outbox() { return outbox_; }
  // The next message is read only when the loop has taken this one: that is the flow control.
  void ReadNext() {
    MutexLock lock(read_mu_);
    if (!finishing_) StartRead(&incoming_);
  }

 private:
  void Write(const v1::ToAgent& message) override { StartWrite(&message); }
  void Finish(const absl::Status& status) override {
    {
      MutexLock lock(read_mu_);  // no read starts once the call finishes
      finishing_ = true;
    }
    ServerBidiReactor::Finish(ToGrpc(status));
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      outbox_.Close(absl::OkStatus());
      return;
    }
    // Taken out before the loop hears of it: it starts the next read into the same place.
    auto message = std::make_shared<v1::FromAgent>();
    message->Swap(&incoming_);
    context_.loop.Post([&context = context_, session = session_, peer = peer_, message] {
      Handle(context, session, peer, *message);
      session->ReadNext();
    });
  }
  void OnWriteDone(bool ok) override { outbox_.WriteDone(ok); }
  void OnCancel() override { outbox_.Cancelled(); }
  void OnDone() override {
    session_->Detach();
    context_.loop.Post([&context = context_, session = session_] {
      context.coordinator.Disconnected(session.get());
    });
    delete this;
  }

  static void Handle(const RpcContext& context, const std::shared_ptr<StreamSession>& session,
                     const std::string& peer, v1::FromAgent& message);

  const RpcContext& context_;
  const std::string peer_;
  const std::shared_ptr<StreamSession> session_;
  v1::FromAgent incoming_;
  Mutex read_mu_;
  bool finishing_ PARAM_GUARDED_BY(read_mu_) = false;
  AgentOutbox outbox_;
};

void StreamSession::SendProto(v1::ToAgent message) {
  MutexLock lock(mu_);
  if (reactor_ == nullptr) return;
  reactor_->outbox().Push(std::make_shared<const v1::ToAgent>(std::move(message)),
                          AgentOutbox::Loss::kMustDeliver);
}

void StreamSession::Close(absl::Status status) {
  MutexLock lock(mu_);
  if (reactor_ != nullptr) reactor_->outbox().Close(std::move(status));
}

void StreamSession::ReadNext() {
  MutexLock lock(mu_);
  if (reactor_ != nullptr) reactor_->ReadNext();
}

void HandleRegister(const RpcContext& context, const std::shared_ptr<StreamSession>& session,
                    const std::string& peer, const v1::Register& message) {
  const auto welcome = context.coordinator.Register(session, RegistrationFromProto(message, peer));
  if (!welcome.ok()) {
    context.log.Warn("agent refused", {F("node", message.node()), F("address", peer),
                                       F("reason", welcome.status().message())});
    session->Close(welcome.status());
    return;
  }
  session->SendProto(WelcomeToProto(*welcome));
}

void HandleEvents(const RpcContext& context, const StreamSession& session,
                  const v1::RankEvents& message) {
  std::vector<RankEvent> events;
  events.reserve(static_cast<std::size_t>(message.events_size()));
  for (const v1::RankEvent& from : message.events()) {
    events.push_back(RankEvent{KeyFromProto(from.key()), from.rank(), from.seq(), 0, from.line()});
  }
  context.coordinator.RankEvents(&session, std::move(events));
}

void HandleHeartbeat(const RpcContext& context, StreamSession& session,
                     const v1::Heartbeat& message) {
  if (!context.coordinator.Heartbeat(&session)) return;
  v1::ToAgent reply;
  reply.mutable_heartbeat()->set_time_ns(message.time_ns());
  session.SendProto(std::move(reply));
}

void SessionReactor::Handle(const RpcContext& context,
                            const std::shared_ptr<StreamSession>& session, const std::string& peer,
                            v1::FromAgent& message) {
  switch (message.kind_case()) {
    case v1::FromAgent::kRegister:
      HandleRegister(context, session, peer, message.register_());
      break;
    case v1::FromAgent::kHeartbeat:
      HandleHeartbeat(context, *session, message.heartbeat());
      break;
    case v1::FromAgent::kEvents:
      HandleEvents(context, *session, message.events());
      break;
    case v1::FromAgent::kExchange: {
      const v1::ExchangePart& part = message.exchange();
      context.coordinator.ExchangePart(session.get(), KeyFromProto(part.key()), part.round(),
                                       {part.ranks().begin(), part.ranks().end()},
                                       {part.data().begin(), part.data().end()});
      break;
    }
    case v1::FromAgent::kAttemptEnded:
      context.coordinator.AttemptEnded(session.get(), KeyFromProto(message.attempt_ended().key()));
      break;
    case v1::FromAgent::kInventory:
      context.coordinator.InventoryChanged(session.get(), InventoryFromProto(message.inventory()),
                                           InventoryJson(message.inventory()));
      break;
    case v1::FromAgent::KIND_NOT_SET:
      break;  // a newer agent's message; it also speaks the older ones
  }
}

}  // namespace

grpc::ServerBidiReactor<v1::FromAgent, v1::ToAgent>* AgentServiceImpl::Session(
    grpc::CallbackServerContext* call) {
  return new SessionReactor(context_, std::string(call->peer()));  // deletes itself in OnDone
}

}  // namespace param
