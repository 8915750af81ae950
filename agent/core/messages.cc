#include "agent/core/messages.h"

#include "absl/strings/str_cat.h"

namespace param::agent {

std::string ToString(const AttemptKey& key) { return absl::StrCat(key.job_id, "/", key.attempt); }

}  // namespace param::agent
