#pragma once
// The other end of AgentService, in process and over a real connection.

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "param/v1/agent.grpc.pb.h"
#include "proto/base/sync.h"

namespace param::agent {

// Registers whoever comes, answers exchanges of one-node attempts, acknowledges when told to.
// Thread safe.
class FakeCoordinator final : public v1::AgentService::Service {
 public:
  FakeCoordinator() { Listen("127.0.0.1:0"); }
  ~FakeCoordinator() override { Shutdown(); }
  FakeCoordinator(const FakeCoordinator&) = delete;
  FakeCoordinator& operator=(const FakeCoordinator&) = delete;

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  void Refuse(const grpc::Status& status) {
    MutexLock lock(mu_);
    refusal_ = status;
  }
  void SetAcking(bool acking) {
    MutexLock lock(mu_);
    is_acking_ = acking;
  }
  void Send(const v1::ToAgent& message) {
    MutexLock lock(mu_);
    if (stream_ != nullptr) stream_->Write(message);
  }
  void AckAll() {
    MutexLock lock(mu_);
    Ack(events_);
  }
  // Ends the present session.
  void Drop() {
    MutexLock lock(mu_);
    if (context_ != nullptr) context_->TryCancel();
  }
  // As of a restarted coordinator: the same address, nothing remembered of the session.
  void Restart() {
    Shutdown();
    Listen(address());
  }

  // What came, as a consistent copy; reset forgets the messages, not the count of sessions.
  struct Seen {
    int sessions = 0;
    std::vector<v1::Register> registers;
    std::vector<v1::RankEvent> events;
    std::vector<v1::AttemptKey> ended;
    int heartbeats = 0;
  };
  Seen seen() {
    MutexLock lock(mu_);
    return {sessions_, registers_, events_, ended_, heartbeats_};
  }
  void Forget() {
    MutexLock lock(mu_);
    registers_.clear();
    events_.clear();
    ended_.clear();
  }
  // False when it did not come true within a minute.
  [[nodiscard]] bool WaitFor(const std::function<bool(const Seen&)>& is_true) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      if (is_true(seen())) return true;
      MutexLock lock(mu_);
      changed_.WaitFor(mu_, std::chrono::milliseconds(100));
    }
    return false;
  }

 private:
  using Stream = grpc::ServerReaderWriter<v1::ToAgent, v1::FromAgent>;

  void Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  void Shutdown() {
    Drop();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override {
    {
      MutexLock lock(mu_);
      ++sessions_;
      stream_ = stream;
      context_ = context;
      if (!refusal_.ok()) {
        stream_ = nullptr;
        context_ = nullptr;
        changed_.NotifyAll();
        return refusal_;
      }
    }
    v1::FromAgent message;
    while (stream->Read(&message)) {
      MutexLock lock(mu_);
      Handle(message);
      changed_.NotifyAll();
    }
    MutexLock lock(mu_);
    if (stream_ == stream) {
      stream_ = nullptr;
      context_ = nullptr;
    }
    return grpc::Status::OK;
  }

  void Handle(const v1::FromAgent& message) PARAM_REQUIRES(mu_) {
    v1::ToAgent answer;
    if (message.has_register_()) {
      registers_.push_back(message.register_());
      answer.mutable_registered()->set_heartbeat_period_ns(200'000'000);
      answer.mutable_registered()->set_lease_ns(60'000'000'000);
    } else if (message.has_heartbeat()) {
      ++heartbeats_;
      answer.mutable_heartbeat()->set_time_ns(message.heartbeat().time_ns());
    } else if (message.has_events()) {
      const std::vector<v1::RankEvent> fresh(message.events().events().begin(),
                                             message.events().events().end());
      events_.insert(events_.end(), fresh.begin(), fresh.end());
      if (is_acking_) Ack(fresh);
      return;
    } else if (message.has_exchange()) {
      *answer.mutable_exchange()->mutable_key() = message.exchange().key();
      answer.mutable_exchange()->set_round(message.exchange().round());
      *answer.mutable_exchange()->mutable_data() = message.exchange().data();
    } else if (message.has_attempt_ended()) {
      ended_.push_back(message.attempt_ended().key());
      return;
    } else {
      return;
    }
    if (stream_ != nullptr) stream_->Write(answer);
  }
  void Ack(const std::vector<v1::RankEvent>& events) PARAM_REQUIRES(mu_) {
    v1::ToAgent answer;
    for (const v1::RankEvent& event : events) {
      v1::AckEntry* const entry = answer.mutable_ack()->add_entries();
      *entry->mutable_key() = event.key();
      entry->set_rank(event.rank());
      entry->set_seq(event.seq());
    }
    if (stream_ != nullptr) stream_->Write(answer);
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mu_;
  CondVar changed_;
  Stream* stream_ PARAM_GUARDED_BY(mu_) = nullptr;
  grpc::ServerContext* context_ PARAM_GUARDED_BY(mu_) = nullptr;
  grpc::Status refusal_ PARAM_GUARDED_BY(mu_);
  bool is_acking_ PARAM_GUARDED_BY(mu_) = true;
  int sessions_ PARAM_GUARDED_BY(mu_) = 0;
  std::vector<v1::Register> registers_ PARAM_GUARDED_BY(mu_);
  std::vector<v1::RankEvent> events_ PARAM_GUARDED_BY(mu_);
  std::vector<v1::AttemptKey> ended_ PARAM_GUARDED_BY(mu_);
  int heartbeats_ PARAM_GUARDED_BY(mu_) = 0;
};

}  // namespace param::agent
