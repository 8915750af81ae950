#include "agent/worker/host.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/base/status.h"

namespace param {
namespace {

std::int32_t Fill(const absl::Status& status, param_error* err) {
  if (err == nullptr) return static_cast<std::int32_t>(status.code());
  err->code = static_cast<std::int32_t>(status.code());
  const std::size_t length = std::min(status.message().size(), sizeof(err->message) - 1);
  std::memcpy(err->message, status.message().data(), length);
  err->message[length] = '\0';
  return err->code;
}

}  // namespace

Host::Host(Channel& channel, SocketTeam& team, const PhaseTracker& phases,
           const line::Assignment& assignment, std::string script)
    : channel_(channel), team_(team), phases_(phases), script_(std::move(script)) {
  table_.struct_size = sizeof(table_);
  table_.user = this;
  table_.log = &Host::Log;
  table_.cancelled = &Host::Cancelled;
  table_.rank = assignment.rank;
  table_.size = assignment.ranks;
  table_.local_rank = assignment.local_rank;
  table_.local_size = assignment.local_ranks;
  table_.exchange = &Host::Exchange;
  table_.progress = &Host::Progress;
  table_.script = script_.c_str();
  table_.threads = assignment.threads;
  table_.phase = &Host::Phase;
}

void Host::Log(void* user, std::int32_t level, const char* text) {
  static constexpr const char* kLevels[] = {"debug", "info", "warn", "error"};
  const auto at = static_cast<std::size_t>(std::clamp<std::int32_t>(level, 0, 3));
  static_cast<Host*>(user)->channel_.Send(line::LogLine{kLevels[at], text});
}

std::int32_t Host::Cancelled(void* user) {
  return static_cast<Host*>(user)->channel_.cancelled() ? 1 : 0;
}

std::int32_t Host::Exchange(void* user, const void* mine, std::size_t bytes, void* all,
                            param_error* err) {
  SocketTeam& team = static_cast<Host*>(user)->team_;
  const auto parts = team.Exchange(absl::string_view(static_cast<const char*>(mine), bytes));
  if (!parts.ok()) return Fill(parts.status(), err);
  for (std::size_t rank = 0; rank < parts->size(); ++rank) {
    const std::string& part = (*parts)[rank];
    if (part.size() != bytes) {
      return Fill(absl::InternalError(absl::StrCat("rank ", rank, " gave ", part.size(),
                                                   " bytes to an exchange of ", bytes)),
                  err);
    }
    std::memcpy(static_cast<char*>(all) + rank * bytes, part.data(), bytes);
  }
  return 0;
}

void Host::Progress(void* user, const char* phase) {
  Host* const host = static_cast<Host*>(user);
  host->channel_.Send(
      line::LogLine{"info", absl::StrCat(line::PhaseName(host->phases_.phase()), ": ", phase)});
}

// The names are constants with their end: a view of a literal.
const char* Host::Phase(void* user) {
  return line::PhaseName(static_cast<Host*>(user)->phases_.phase()).data();
}

}  // namespace param
