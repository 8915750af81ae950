#pragma once
// A text file compiled into the program by param_embed().

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace param {

struct EmbeddedFile {
  absl::string_view path;  // from the repository root
  absl::string_view name;  // last component
  absl::string_view text;
};

}  // namespace param
