#include "proto/daemon/log_sink.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/status.h"

namespace param {
namespace {

absl::string_view LevelName(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      return "error";
  }
  return "error";
}

spdlog::level::level_enum SpdlogLevel(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", byte);
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

}  // namespace

absl::StatusOr<Level> ParseLevel(absl::string_view text) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError}) {
    if (LevelName(level) == text) return level;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("log level ", text, " is not one of debug, info, warn, error"));
}

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError(absl::StrCat("log format ", text, " is not text or json"));
}

std::string FormatLogLine(LogFormat format, absl::string_view program, absl::string_view time,
                          Level level, absl::string_view message) {
  if (format == LogFormat::kText) {
    return absl::StrFormat("%s %-5s %s", time, LevelName(level), message);
  }
  return absl::StrCat(
      "{\"time\": ", JsonString(time), ", \"level\": ", JsonString(LevelName(level)),
      ", \"program\": ", JsonString(program), ", \"message\": ", JsonString(message), "}");
}

Log StderrLog(absl::string_view program, Level threshold, LogFormat format) {
  auto logger = std::make_shared<spdlog::logger>(std::string(program),
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%v");
  logger->set_level(spdlog::level::debug);  // Log has the threshold
  logger->flush_on(spdlog::level::debug);
  return Log(threshold,
             [logger, format, program = std::string(program)](Level level, absl::string_view line) {
               const std::string time =
                   absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
               const std::string text = FormatLogLine(format, program, time, level, line);
               logger->log(SpdlogLevel(level), spdlog::string_view_t(text.data(), text.size()));
             });
}

}  // namespace param
