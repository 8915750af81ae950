// A peer that is not ours, for the tests: an agent of another protocol, a watcher that stops
// reading. Prints one JSON object a line; the last one holds how the call ended.
//
//   rpc_probe register --server ADDR --name NODE --protocol N
//   rpc_probe watch --server ADDR --job ID [--pause-after EVENTS] [--after-seq SEQ]
//
// With --pause-after it reads so many events, then none until its standard input ends.

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "param/v1/agent.grpc.pb.h"
#include "param/v1/job.grpc.pb.h"
#include "proto/base/status.h"
#include "proto/convert/json.h"
#include "proto/convert/names.h"
#include "proto/convert/status.h"

namespace param {
namespace {

struct Flags {
  std::string server;
  std::string name;
  std::int32_t protocol = 0;
  std::string job;
  std::int64_t pause_after = -1;
  std::uint64_t after_seq = 0;
};

void Print(const Json& line) { std::cout << JsonLine(line) << std::flush; }

void PrintEnd(const grpc::Status& ended) {
  const absl::Status status = FromGrpc(ended);
  Json line = Json::object();
  line["code"] = std::string(CodeName(status.code()));
  line["message"] = std::string(status.message());
  Print(line);
}

// Small windows that do not grow: what a reader leaves unread waits at the server.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 << 10);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

// Says hello as an agent would, and leaves once it was taken in.
void RunRegister(const Flags& flags) {
  const auto stub = v1::AgentService::NewStub(OpenChannel(flags.server));
  grpc::ClientContext context;
  const auto stream = stub->Session(&context);
  v1::FromAgent hello;
  hello.mutable_register_()->set_node(flags.name);
  hello.mutable_register_()->set_protocol(flags.protocol);
  hello.mutable_register_()->set_version("9.9.9");
  hello.mutable_register_()->set_instance("probe");
  stream->Write(hello);
  v1::ToAgent answer;
  bool registered = false;
  while (!registered && stream->Read(&answer)) registered = answer.has_registered();
  Json line = Json::object();
  line["registered"] = registered;
  Print(line);
  stream->WritesDone();
  while (stream->Read(&answer)) {
  }
  PrintEnd(stream->Finish());
}

Json EventJson(const v1::JobEvent& event) {
  Json line = Json::object();
  line["seq"] = event.seq();
  if (event.has_job()) line["state"] = WireJobStateName(event.job().state());
  if (event.has_case_done()) line["case"] = event.case_done().case_index();
  if (event.has_progress()) line["phase"] = event.progress().phase();
  return line;
}

void AwaitEndOfInput() {
  std::string ignored;
  while (std::getline(std::cin, ignored)) {
  }
}

void RunWatch(const Flags& flags) {
  const auto stub = v1::JobService::NewStub(OpenChannel(flags.server));
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_job_id(flags.job);
  request.set_after_seq(flags.after_seq);
  const auto reader = stub->Watch(&context, request);
  v1::JobEvent event;
  for (std::int64_t events = 1; reader->Read(&event); ++events) {
    Print(EventJson(event));
    if (events == flags.pause_after) AwaitEndOfInput();
  }
  PrintEnd(reader->Finish());
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("rpc_probe: a peer that is not ours, for tests");
  app.require_subcommand(1);
  CLI::App* const hello = app.add_subcommand("register", "connect as an agent");
  hello->add_option("--server", flags.server)->required();
  hello->add_option("--name", flags.name)->required();
  hello->add_option("--protocol", flags.protocol)->required();
  hello->callback([&flags] { RunRegister(flags); });
  CLI::App* const watch = app.add_subcommand("watch", "print a job's events");
  watch->add_option("--server", flags.server)->required();
  watch->add_option("--job", flags.job)->required();
  watch->add_option("--pause-after", flags.pause_after);
  watch->add_option("--after-seq", flags.after_seq);
  watch->callback([&flags] { RunWatch(flags); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return 0;
}

}  // namespace
}  // namespace param

int main(int argc, char** argv) {
  try {
    return param::Main(argc, argv);
  } catch (const std::exception& error) {  // CLI11 and JSON report by exception
    std::fprintf(stderr, "rpc_probe: %s\n", error.what());
    return 1;
  }
}
