#pragma once
// What the worker offers to a backend.

#include <string>

#include "agent/backend/param_backend.h"
#include "agent/worker/channel.h"
#include "agent/worker/events.h"
#include "agent/worker/socket_team.h"

namespace param {

// Owns a param_host and what it points to; outlives every context that was given it. Everything
// passed in is borrowed.
class Host {
 public:
  // `script` is the text for the fake backend.
  Host(Channel& channel, SocketTeam& team, const PhaseTracker& phases,
       const line::Assignment& assignment, std::string script);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const param_host& table() const { return table_; }

 private:
  static void Log(void* user, std::int32_t level, const char* text);
  static std::int32_t Cancelled(void* user);
  static std::int32_t Exchange(void* user, const void* mine, std::size_t bytes, void* all,
                               param_error* err);
  static void Progress(void* user, const char* phase);
  static const char* Phase(void* user);

  Channel& channel_;
  SocketTeam& team_;
  const PhaseTracker& phases_;
  const std::string script_;
  param_host table_ = {};
};

}  // namespace param
