#include <algorithm>
#include <utility>

#include "proto/base/status.h"
#include "proto/base/text.h"
#include "server/core/coordinator.h"
#include "server/core/open_job.h"

namespace param {
namespace {

absl::Status UnknownNode(const std::string& name, const std::map<std::string, NodeEntry>& nodes) {
  std::vector<std::string> names;
  for (const auto& [each, node] : nodes) names.push_back(each);
  return absl::NotFoundError(absl::StrCat("no node \"", name, "\"", DidYouMean(name, names)));
}

absl::Status CheckLabel(const std::string& key, const std::string& value) {
  if (key.empty() || key.size() > 63 || value.size() > 63) {
    return absl::InvalidArgumentError(absl::StrCat(
        "label \"", key, "=", value, "\": keys take 1 to 63 characters, values up to 63"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<NodeView> Coordinator::Nodes() const {
  std::vector<NodeView> views;
  for (const auto& [name, node] : nodes_.nodes()) views.push_back(nodes_.View(node));
  std::sort(views.begin(), views.end(),
            [](const NodeView& a, const NodeView& b) { return NaturalLess(a.name, b.name); });
  return views;
}

void Coordinator::Drain(const std::string& name, const std::string& reason, Reply<NodeView> reply) {
  NodeEntry* node = nodes_.Find(name);
  if (node == nullptr) {
    reply(UnknownNode(name, nodes_.nodes()));
    return;
  }
  node->record.drained = true;
  node->record.drain_reason = reason;
  SaveNode(*node, std::move(reply));
}

void Coordinator::Resume(const std::string& name, Reply<NodeView> reply) {
  NodeEntry* node = nodes_.Find(name);
  if (node == nullptr) {
    reply(UnknownNode(name, nodes_.nodes()));
    return;
  }
  node->record.drained = false;
  node->record.drain_reason.clear();
  SaveNode(*node, std::move(reply));
  Schedule();
}

void Coordinator::Label(const std::string& name, const std::map<std::string, std::string>& set,
                        const std::vector<std::string>& remove, Reply<NodeView> reply) {
  NodeEntry* node = nodes_.Find(name);
  if (node == nullptr) {
    reply(UnknownNode(name, nodes_.nodes()));
    return;
  }
  for (const auto& [key, value] : set) {
    if (const absl::Status status = CheckLabel(key, value); !status.ok()) {
      reply(status);
      return;
    }
  }
  for (const auto& [key, value] : set) node->record.labels[key] = value;
  for (const std::string& key : remove) node->record.labels.erase(key);
  SaveNode(*node, std::move(reply));
  Schedule();
}

void Coordinator::SaveNode(NodeEntry& node, Reply<NodeView> reply) {
  ReportNode(node);
  const NodeView view = nodes_.View(node);
  store_.Submit({PutNode{node.record}}, [this, view, reply](absl::Status status) {
    if (!status.ok())
      log_.Error("cannot store a node", {F("node", view.name), F("error", status.message())});
    if (reply == nullptr) return;
    post_([view, reply, status] {
      if (status.ok()) {
        reply(view);
      } else {
        reply(Annotate(status, "storing node ", view.name));
      }
    });
  });
}

void Coordinator::FreeNode(NodeEntry& node) {
  node.job_id.clear();
  ReportNode(node);
}

void Coordinator::ShareCores() {
  for (NodeEntry* node : nodes_.SplitCores()) {
    if (node->session != nullptr) node->session->Send(ShareChanged{node->share});
  }
}

void Coordinator::ReportNode(const NodeEntry& node) {
  observer_.NodeState(node.record.node, NodeState(node), node.session != nullptr);
}

}  // namespace param
