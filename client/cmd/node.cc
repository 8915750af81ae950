// paramctl node ...

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cmd/command.h"
#include "client/output/node_table.h"
#include "proto/base/text.h"
#include "proto/convert/json.h"

namespace param {
namespace {

void PrintNodeJson(const Context& context, const v1::Node& node) {
  Json document = Json::object();
  document["node"] = NodeJson(node);
  context.io.out << (context.format == Format::kJson ? JsonText(document) : JsonLine(document));
}

ExitCode PrintNodes(Context& context, const std::vector<v1::Node>& nodes) {
  if (context.format == Format::kJson || context.format == Format::kJsonl) {
    Json list = Json::array();
    for (const v1::Node& node : nodes) {
      if (context.format == Format::kJsonl) context.io.out << JsonLine(NodeJson(node));
      list.push_back(NodeJson(node));
    }
    Json document = Json::object();
    document["nodes"] = std::move(list);
    if (context.format == Format::kJson) context.io.out << JsonText(document);
    return ExitCode::kOk;
  }
  PrintTable(context, NodesTable(nodes, context.io.clock.Wall()), "nodes");
  return ExitCode::kOk;
}

ExitCode RunList(Context& context) {
  v1::ListNodesRequest request;
  const auto selector = context.args.Pairs("selector");
  if (!selector.ok()) return Fail(context, selector.status());
  request.mutable_selector()->insert(selector->begin(), selector->end());
  const absl::StatusOr<v1::ListNodesResponse> response = context.connection->ListNodes(request);
  if (!response.ok()) return Fail(context, response.status());
  PrintNodes(context, {response->nodes().begin(), response->nodes().end()});
  if (response->nodes().empty()) {
    Hint(context, absl::StrCat("no nodes; start an agent on one: param-agent --server ",
                               context.connection->address().target));
  }
  return ExitCode::kOk;
}

// NOT_FOUND with the names there are.
absl::StatusOr<v1::Node> FindNode(Context& context, const std::string& name) {
  const absl::StatusOr<v1::ListNodesResponse> all =
      context.connection->ListNodes(v1::ListNodesRequest());
  if (!all.ok()) return all.status();
  std::vector<std::string> names;
  for (const v1::Node& node : all->nodes()) {
    if (node.name() == name) return node;
    names.push_back(node.name());
  }
  return absl::NotFoundError(
      absl::StrCat("there is no node \"", name, "\"", DidYouMean(name, names)));
}

ExitCode RunShow(Context& context) {
  const absl::StatusOr<v1::Node> node = FindNode(context, context.args.words()[0]);
  if (!node.ok()) return Fail(context, node.status());
  if (context.format == Format::kCsv) return PrintNodes(context, {*node});
  if (!context.is_text()) {
    PrintNodeJson(context, *node);
    return ExitCode::kOk;
  }
  TextOptions facts = context.text_options();
  facts.header = false;
  RenderText(NodeFactsTable(*node, context.io.clock.Wall()), facts, context.io.out);
  context.io.out << "\n";
  RenderText(BackendsTable(*node), context.text_options(), context.io.out);
  if (node->inventory().nics_size() > 0) {
    context.io.out << "\n";
    RenderText(NicsTable(*node), context.text_options(), context.io.out);
  }
  return ExitCode::kOk;
}

ExitCode PrintChanged(Context& context, const absl::StatusOr<v1::NodeResponse>& response) {
  if (!response.ok()) return Fail(context, response.status());
  if (!context.is_text() && context.format != Format::kCsv) {
    PrintNodeJson(context, response->node());
    return ExitCode::kOk;
  }
  return PrintNodes(context, {response->node()});
}

template <typename Request>
Request ChangeOf(const Context& context) {
  Request request;
  request.mutable_principal()->set_name("local");
  request.set_request_id(MakeToken(context.io.random));
  request.set_node(context.args.words()[0]);
  return request;
}

ExitCode RunDrain(Context& context) {
  v1::DrainRequest request = ChangeOf<v1::DrainRequest>(context);
  request.set_reason(context.args.Text("reason"));
  return PrintChanged(context, context.connection->Drain(request));
}

ExitCode RunResume(Context& context) {
  return PrintChanged(context, context.connection->Resume(ChangeOf<v1::ResumeRequest>(context)));
}

ExitCode RunLabel(Context& context) {
  v1::LabelRequest request = ChangeOf<v1::LabelRequest>(context);
  for (std::size_t i = 1; i < context.args.words().size(); ++i) {
    const std::string& word = context.args.words()[i];
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && equals > 0) {
      (*request.mutable_set())[word.substr(0, equals)] = word.substr(equals + 1);
    } else if (word.size() > 1 && absl::EndsWith(word, "-")) {
      request.add_remove(word.substr(0, word.size() - 1));
    } else {
      return Fail(context, absl::InvalidArgumentError(absl::StrCat(
                               "\"", word, "\" is neither KEY=VALUE nor KEY- to remove it")));
    }
  }
  return PrintChanged(context, context.connection->Label(request));
}

Command NodeCommand(const char* verb, const char* summary, ExitCode (*run)(Context&)) {
  Command command;
  command.path = {"node", verb};
  command.summary = summary;
  command.arguments = "NODE";
  command.min_words = command.max_words = 1;
  command.examples = {absl::StrCat("paramctl node ", verb, " n1")};
  command.run = run;
  return command;
}

}  // namespace

std::vector<Command> NodeCommands() {
  Command list = NodeCommand("list", "List nodes with their state and backends", RunList);
  list.arguments = "";
  list.min_words = list.max_words = 0;
  list.examples = {"paramctl node list", "paramctl node list --selector rack=a -o wide"};
  list.flags = {{.name = "selector",
                 .value = "KEY=VALUE",
                 .help = "only nodes with this label",
                 .repeat = true}};
  Command drain = NodeCommand("drain", "Place no new jobs on a node", RunDrain);
  drain.description = "What runs there goes on.";
  drain.examples = {"paramctl node drain n3 --reason \"fan broken\""};
  drain.flags = {{.name = "reason", .value = "TEXT", .help = "why, shown in lists"}};
  Command label = NodeCommand("label", "Set and remove labels of a node", RunLabel);
  label.arguments = "NODE KEY=VALUE|KEY-...";
  label.min_words = 2;
  label.max_words = 64;
  label.examples = {"paramctl node label n1 rack=a class=gold", "paramctl node label n1 class-"};
  return {list,
          NodeCommand("show", "Show a node's hardware and the state of each backend", RunShow),
          drain, NodeCommand("resume", "Place jobs on a drained node again", RunResume), label};
}

}  // namespace param
