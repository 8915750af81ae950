// paramctl version and completion.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/cmd/command.h"
#include "client/cmd/doctor.h"
#include "client/cmd/help.h"
#include "proto/base/version.h"
#include "proto/convert/json.h"

namespace param {
namespace {

ExitCode RunVersion(Context& context) {
  const absl::StatusOr<v1::InfoResponse> info = context.connection->Info();
  if (!context.is_text()) {
    Json document = {{"client",
                      {{"version", std::string(Version())},
                       {"revision", std::string(Revision())},
                       {"compiler", std::string(Compiler())},
                       {"protocol", kProtocolVersion}}}};
    document["server"] = info.ok() ? ServerJson(*info) : Json(nullptr);
    const bool lines = context.format == Format::kJsonl;
    context.io.out << (lines ? JsonLine(document) : JsonText(document));
    return ExitCode::kOk;
  }
  context.io.out << "paramctl " << Version() << " (" << Revision() << "), protocol "
                 << kProtocolVersion << ", " << Compiler() << "\n";
  const std::string& target = context.connection->address().target;
  if (!info.ok()) {
    context.io.out << "server   not reachable at " << target << "\n";
    return ExitCode::kOk;
  }
  context.io.out << "server   " << SafeText(info->version()) << " (" << SafeText(info->revision())
                 << "), protocol " << info->protocol() << ", at " << target << "\n";
  if (info->insecure()) {
    Hint(context, "warning: the coordinator listens beyond this machine without TLS");
  }
  if (info->protocol() != kProtocolVersion) {
    Hint(context, "warning: client and server speak different protocol versions");
  }
  return ExitCode::kOk;
}

ExitCode RunCompletion(Context& context) {
  const absl::StatusOr<std::string> script = CompletionScript(context.args.words()[0]);
  if (!script.ok()) return Fail(context, script.status());
  context.io.out << *script;
  return ExitCode::kOk;
}

}  // namespace

std::vector<Command> AdminCommands() {
  Command doctor;
  doctor.path = {"doctor"};
  doctor.summary = "Check the fleet and say what to do";
  doctor.description = "Exits with 1 when something is broken; warnings do not count.";
  doctor.examples = {"paramctl doctor", "paramctl doctor -o json"};
  doctor.flags = {{.name = "state",
                   .value = "DIR",
                   .help = "the folder of the fleet on this machine (default: as for up)"}};
  doctor.run = RunDoctor;
  Command version;
  version.path = {"version"};
  version.summary = "Show the versions of paramctl and of the coordinator";
  version.examples = {"paramctl version"};
  version.run = RunVersion;
  Command completion;
  completion.path = {"completion"};
  completion.summary = "Print a completion script for a shell";
  completion.arguments = "bash|zsh|fish";
  completion.min_words = completion.max_words = 1;
  completion.examples = {"source <(paramctl completion bash)",
                         "paramctl completion fish > ~/.config/fish/completions/paramctl.fish"};
  completion.run = RunCompletion;
  return {doctor, version, completion};
}

}  // namespace param
