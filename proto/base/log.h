#pragma once
// Logging: an object, passed down. One event, one line; what varies goes into fields.

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace param {

enum class Level { kDebug, kInfo, kWarn, kError };

struct Field {
  absl::string_view key;
  std::string value;
};
template <typename T>
Field F(absl::string_view key, const T& value) {
  return {key, absl::StrCat(value)};
}

// The sink is spdlog in a program and a vector in tests. Thread safe when the sink is.
// error: could not go on; warn: went on; info: a state changed; debug: per object. Nothing per
// sample, never a secret, never a whole command line.
class Log {
 public:
  using Sink = std::function<void(Level, absl::string_view line)>;  // called from any thread
  Log(Level threshold, Sink sink) : threshold_(threshold), sink_(std::move(sink)) {}

  // `message` is a constant that can be grepped and counted.
  void Write(Level level, absl::string_view message,
             std::initializer_list<Field> fields = {}) const;
  void Debug(absl::string_view m, std::initializer_list<Field> f = {}) const {
    Write(Level::kDebug, m, f);
  }
  void Info(absl::string_view m, std::initializer_list<Field> f = {}) const {
    Write(Level::kInfo, m, f);
  }
  void Warn(absl::string_view m, std::initializer_list<Field> f = {}) const {
    Write(Level::kWarn, m, f);
  }
  void Error(absl::string_view m, std::initializer_list<Field> f = {}) const {
    Write(Level::kError, m, f);
  }

 private:
  const Level threshold_;
  const Sink sink_;
};

}  // namespace param
