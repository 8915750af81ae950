#pragma once
// What every service has to work with, and how a unary call is answered from another thread.

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/convert/status.h"
#include "server/core/coordinator.h"
#include "server/rpc/loop.h"

namespace param {

// Called once per finished call: method, code, seconds.
using RpcObserver = std::function<void(absl::string_view, absl::string_view, double)>;

// Borrowed by the services; outlives them.
struct RpcContext {
  Coordinator& coordinator;  // touched on `loop` only
  Store& store;              // read on `readers`
  Loop& loop;
  ReaderPool& readers;
  const Clock& clock;
  const Log& log;
  RpcObserver observer;
};

// A unary call in progress: finishes its reactor once, and tells the observer.
class UnaryCall {
 public:
  UnaryCall(const RpcContext& context, absl::string_view method, grpc::ServerUnaryReactor* reactor)
      : context_(context),
        method_(method),
        reactor_(reactor),
        started_(context.clock.Monotonic()) {}
  void Finish(const absl::Status& status) const {
    if (context_.observer) {
      context_.observer(method_, CodeName(status.code()),
                        absl::ToDoubleSeconds(context_.clock.Monotonic() - started_));
    }
    reactor_->Finish(ToGrpc(status));
  }
  // The end of a call that changes something: one line says who asked, for what, and what came of
  // it. `request` has principal and request_id; `object` is what was to change, "job j-1".
  template <typename Request>
  void FinishChange(const Request& request, absl::string_view object,
                    const absl::Status& status) const {
    const auto cut = [](absl::string_view text) { return text.substr(0, kMaxLogged); };
    const std::string& principal = request.principal().name();
    context_.log.Info(
        "changing call",
        {F("call", method_),
         F("principal", principal.empty() ? absl::string_view("local") : cut(principal)),
         F("request_id", cut(request.request_id())), F("object", cut(object)),
         F("code", CodeName(status.code()))});
    Finish(status);
  }
  // Runs `work` on a reader thread and finishes with what it returns.
  void FinishOnReader(std::function<absl::Status()> work) const {
    const UnaryCall call = *this;
    const bool queued =
        context_.readers.Post([call, work = std::move(work)] { call.Finish(work()); });
    if (!queued) Finish(absl::ResourceExhaustedError("too many reads are waiting; try again"));
  }
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }

 private:
  static constexpr std::size_t kMaxLogged = 200;  // of what a client chose

  const RpcContext& context_;
  const absl::string_view method_;  // a literal
  grpc::ServerUnaryReactor* const reactor_;
  const absl::Duration started_;
};

}  // namespace param
