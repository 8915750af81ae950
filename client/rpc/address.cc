#include "client/rpc/address.h"

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace param {
namespace {

std::string Lookup(const EnvironmentVariables& env, absl::string_view name) {
  const auto it = env.find(std::string(name));
  return it == env.end() ? "" : it->second;
}

std::string WithPort(absl::string_view address) {
  const std::string text(absl::StripAsciiWhitespace(address));
  if (absl::StrContains(text, "//") || absl::StartsWith(text, "unix:")) return text;
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.rfind(':');
  if (bracket != std::string::npos) {  // [::1] or [::1]:7700
    return colon > bracket && colon != std::string::npos ? text : absl::StrCat(text, ":7700");
  }
  return colon == std::string::npos ? absl::StrCat(text, ":7700") : text;
}

}  // namespace

std::string StateFolder(const EnvironmentVariables& env) {
  if (const std::string state = Lookup(env, "PARAM_STATE"); !state.empty()) return state;
  if (const std::string xdg = Lookup(env, "XDG_STATE_HOME"); !xdg.empty()) {
    return absl::StrCat(xdg, "/param");
  }
  const std::string home = Lookup(env, "HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.local/state/param");
}

Address ResolveAddress(absl::string_view flag, const EnvironmentVariables& env) {
  if (!flag.empty()) return {WithPort(flag), "--server"};
  if (const std::string server = Lookup(env, "PARAM_SERVER"); !server.empty()) {
    return {WithPort(server), "PARAM_SERVER"};
  }
  if (const std::string folder = StateFolder(env); !folder.empty()) {
    const std::string path = absl::StrCat(folder, "/", kAddressFile);
    std::ifstream file(path);
    std::string line;
    if (std::getline(file, line) && !absl::StripAsciiWhitespace(line).empty()) {
      return {WithPort(line), path};
    }
  }
  return {std::string(kDefaultAddress), "default"};
}

}  // namespace param
