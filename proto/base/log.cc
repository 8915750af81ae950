#include "proto/base/log.h"

#include "absl/strings/escaping.h"

namespace param {

void Log::Write(Level level, absl::string_view message, std::initializer_list<Field> fields) const {
  if (level < threshold_) return;
  std::string line(message);
  for (const Field& field : fields) {
    absl::StrAppend(&line, " ", field.key, "=\"", absl::CEscape(field.value), "\"");
  }
  sink_(level, line);
}

}  // namespace param
