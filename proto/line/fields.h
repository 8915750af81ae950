#pragma once
// Inside proto/line: what both directions of the codec share. JSON in and out with bounds.

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/catalog/spec.h"
#include "proto/line/messages.h"

namespace param::line {

using Json = nlohmann::json;

// Free text is cut to these on both sides; names that are longer are errors.
inline constexpr std::size_t kMaxNameBytes = 64;
inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::size_t kMaxLogBytes = 16 << 10;
// Entries in one map of facts, notes or scalars of a worker.
inline constexpr std::size_t kMaxEntries = 256;

// How much structure a line may have, checked before it is parsed: a parsed value costs far more
// memory than its text.
struct ShapeLimits {
  int depth;
  std::size_t separators;  // , : [ { outside strings
};

// The object that a line holds. INVALID_ARGUMENT when it is not JSON, not an object, or beyond the
// limits.
absl::StatusOr<Json> ParseObject(absl::string_view line, ShapeLimits limits);

// `text` cut to at most `limit` bytes, not inside a UTF-8 sequence.
std::string Clip(absl::string_view text, std::size_t limit);

std::string ToBase64(absl::string_view bytes);
std::string SamplesToBase64(const std::vector<double>& values);  // little-endian doubles
// A scalar as JSON; what is not finite is a string, since JSON has no such numbers.
Json ScalarToJson(double value);

// Reads the keys of one JSON object, each required. The first error sticks; readers go on with
// empty values, so that a message is read straight through and `status()` is looked at once.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  const absl::Status& status() const { return status_; }

  std::int64_t Int(const char* key, std::int64_t min, std::int64_t max);
  int Int32(const char* key, int min, int max = std::numeric_limits<int>::max());
  std::uint64_t Unsigned(const char* key);
  std::int64_t CaseIndex(std::int64_t min);              // key "case"
  std::string Text(const char* key, std::size_t limit);  // cut to the limit
  std::string Name(const char* key);                     // not empty, short, no blanks , or =
  std::string Bytes(const char* key, std::size_t limit);
  std::vector<double> Samples(const char* key);
  Labels LabelMap(const char* key);
  Scalars ScalarMap(const char* key);
  std::map<std::string, std::string> TextMap(const char* key, std::size_t max_entries);
  std::vector<std::string> TextList(const char* key);
  std::vector<std::string> BytesList(const char* key, std::size_t limit);
  std::vector<int> IntList(const char* key, int min);
  Params ParamMap(const char* key);
  const Json* Array(const char* key);  // null after an error

  void Fail(absl::string_view key, absl::string_view what);

 private:
  const Json* Find(const char* key);
  const Json* Object(const char* key, std::size_t max_entries);
  const std::string* String(const char* key);
  bool DecodeBytes(const char* key, const Json& value, std::size_t limit, std::string* bytes);

  const Json& object_;
  absl::Status status_;
};

}  // namespace param::line
