#pragma once
// Where a daemon's log goes: lines on standard error, as text or as JSON.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/log.h"

namespace param {

enum class LogFormat { kText, kJson };

// "debug", "info", "warn", "error"; "text", "json". Errors name what is allowed.
absl::StatusOr<Level> ParseLevel(absl::string_view text);
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text);

// One record as a line without its end: "2027-01-31T12:00:00.123Z info  MESSAGE" or
// {"time": ..., "level": ..., "program": ..., "message": ...}.
std::string FormatLogLine(LogFormat format, absl::string_view program, absl::string_view time,
                          Level level, absl::string_view message);

// A log that writes to standard error. Thread safe; each line is written at once.
Log StderrLog(absl::string_view program, Level threshold, LogFormat format);

}  // namespace param
