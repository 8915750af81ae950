#include "server/rpc/node_service.h"

#include <algorithm>
#include <utility>

#include "proto/base/text.h"
#include "proto/base/version.h"
#include "server/rpc/records.h"

namespace param {
namespace {

template <typename Request>
Coordinator::Reply<NodeView> AnswerNode(const UnaryCall& unary, const Request* request,
                                        v1::NodeResponse* response) {
  return [unary, request, response](absl::StatusOr<NodeView> node) {
    if (node.ok()) *response->mutable_node() = NodeToProto(*node);
    unary.FinishChange(*request, absl::StrCat("node ", request->node()), node.status());
  };
}

absl::Status FillNodes(const Coordinator& coordinator, const v1::ListNodesRequest& request,
                       v1::ListNodesResponse* response) {
  const std::vector<NodeView> nodes = coordinator.Nodes();
  std::vector<std::string> names;
  for (const NodeView& node : nodes) names.push_back(node.name);
  for (const std::string& wanted : request.names()) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      return absl::NotFoundError(
          absl::StrCat("no node \"", wanted, "\"", DidYouMean(wanted, names)));
    }
  }
  for (const NodeView& node : nodes) {
    const bool named = request.names().empty() ||
                       std::find(request.names().begin(), request.names().end(), node.name) !=
                           request.names().end();
    const bool selected = std::all_of(request.selector().begin(), request.selector().end(),
                                      [&node](const auto& want) {
                                        const auto it = node.labels.find(want.first);
                                        return it != node.labels.end() && it->second == want.second;
                                      });
    if (named && selected) *response->add_nodes() = NodeToProto(node);
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* NodeServiceImpl::List(grpc::CallbackServerContext* call,
                                                const v1::ListNodesRequest* request,
                                                v1::ListNodesResponse* response) {
  const UnaryCall unary(context_, "NodeService.List", call->DefaultReactor());
  context_.loop.Post([this, unary, request, response] {
    unary.Finish(FillNodes(context_.coordinator, *request, response));
  });
  return unary.reactor();
}

grpc::ServerUnaryReactor* NodeServiceImpl::Drain(grpc::CallbackServerContext* call,
                                                 const v1::DrainRequest* request,
                                                 v1::NodeResponse* response) {
  const UnaryCall unary(context_, "NodeService.Drain", call->DefaultReactor());
  context_.loop.Post([this, unary, request, response] {
    context_.coordinator.Drain(request->node(), request->reason(),
                               AnswerNode(unary, request, response));
  });
  return unary.reactor();
}

grpc::ServerUnaryReactor* NodeServiceImpl::Resume(grpc::CallbackServerContext* call,
                                                  const v1::ResumeRequest* request,
                                                  v1::NodeResponse* response) {
  const UnaryCall unary(context_, "NodeService.Resume", call->DefaultReactor());
  context_.loop.Post([this, unary, request, response] {
    context_.coordinator.Resume(request->node(), AnswerNode(unary, request, response));
  });
  return unary.reactor();
}

grpc::ServerUnaryReactor* NodeServiceImpl::Label(grpc::CallbackServerContext* call,
                                                 const v1::LabelRequest* request,
                                                 v1::NodeResponse* response) {
  const UnaryCall unary(context_, "NodeService.Label", call->DefaultReactor());
  context_.loop.Post([this, unary, request, response] {
    context_.coordinator.Label(request->node(), {request->set().begin(), request->set().end()},
                               {request->remove().begin(), request->remove().end()},
                               AnswerNode(unary, request, response));
  });
  return unary.reactor();
}

grpc::ServerUnaryReactor* FleetServiceImpl::Info(grpc::CallbackServerContext* call,
                                                 const v1::InfoRequest*,
                                                 v1::InfoResponse* response) {
  const UnaryCall unary(context_, "FleetService.Info", call->DefaultReactor());
  context_.loop.Post([this, unary, response] {
    const Coordinator::Counts counts = context_.coordinator.counts();
    response->set_version(std::string(Version()));
    response->set_revision(std::string(Revision()));
    response->set_protocol(kProtocolVersion);
    response->set_started_ns(facts_.started_ns);
    response->set_listen(facts_.listen);
    response->set_http(facts_.http);
    response->set_insecure(facts_.insecure);
    response->set_store(facts_.store);
    response->set_nodes_ready(counts.nodes_ready);
    response->set_nodes_total(counts.nodes_total);
    response->set_jobs_queued(counts.jobs_queued);
    response->set_jobs_running(counts.jobs_running);
    response->mutable_warnings()->Assign(facts_.warnings.begin(), facts_.warnings.end());
    unary.Finish(absl::OkStatus());
  });
  return unary.reactor();
}

}  // namespace param
